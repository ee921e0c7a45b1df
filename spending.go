package continuo

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Spending is what requests to models used and cost, for the caller, the user, the model and the day that it names. It stays
// when conversations are redacted or deleted, and has none of their words.
type Spending struct {
	ProjectID string `json:"project_id"`
	// Day is the day of the answers, in UTC, as 2006-01-02.
	Day string `json:"day"`
	// KeyID is the API key of the caller, UserID the user of the conversation; "" for none.
	KeyID    string `json:"key_id"`
	UserID   string `json:"user_id"`
	Provider string `json:"provider"`
	Model    string `json:"model"` // as the provider names it
	Spent
}

// Spent are sums over requests to models.
type Spent struct {
	Requests         int64 `json:"requests"`
	InputTokens      int64 `json:"input_tokens"` // with the cached ones
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	OutputTokens     int64 `json:"output_tokens"` // with the reasoning ones
	ReasoningTokens  int64 `json:"reasoning_tokens"`
	// CostNano is what the requests with a price cost, in billionths of a US dollar; Priced counts them.
	CostNano int64 `json:"cost_nano"`
	Priced   int64 `json:"priced"`
}

// Add adds other sums.
func (s *Spent) Add(other Spent) {
	s.Requests += other.Requests
	s.InputTokens += other.InputTokens
	s.CachedTokens += other.CachedTokens
	s.CacheWriteTokens += other.CacheWriteTokens
	s.OutputTokens += other.OutputTokens
	s.ReasoningTokens += other.ReasoningTokens
	s.CostNano += other.CostNano
	s.Priced += other.Priced
}

// Minus returns the difference to other sums.
func (s Spent) Minus(other Spent) Spent {
	return Spent{
		Requests: s.Requests - other.Requests, InputTokens: s.InputTokens - other.InputTokens, CachedTokens: s.CachedTokens - other.CachedTokens,
		CacheWriteTokens: s.CacheWriteTokens - other.CacheWriteTokens, OutputTokens: s.OutputTokens - other.OutputTokens,
		ReasoningTokens: s.ReasoningTokens - other.ReasoningTokens, CostNano: s.CostNano - other.CostNano, Priced: s.Priced - other.Priced,
	}
}

// Tokens is what budgets count: input and output together.
func (s *Spent) Tokens() int64 { return s.InputTokens + s.OutputTokens }

// NewSpending is what one request used that was answered at a time. A request without any usage counts as priced where free
// is true: it was refused, and costs nothing.
func NewSpending(at time.Time, provider, model string, used *Usage, free bool) Spending {
	one := Spending{Day: DayOf(at), Provider: provider, Model: model, Spent: Spent{Requests: 1}}
	if used == nil || *used == (Usage{}) {
		if free {
			one.Priced = 1
		}
		return one
	}
	one.InputTokens, one.CachedTokens, one.CacheWriteTokens = int64(used.InputTokens), int64(used.CachedTokens), int64(used.CacheWriteTokens)
	one.OutputTokens, one.ReasoningTokens = int64(used.OutputTokens), int64(used.ReasoningTokens)
	if used.Cost.Currency == USD {
		one.CostNano, one.Priced = used.Cost.Nano, 1
	}
	return one
}

const (
	bytesPerToken = 4
	// tokensPerFile is a guess for an image or another file in a request.
	tokensPerFile = 1000
)

// EstimateUsage estimates what a request used whose provider reported nothing: a token for each four bytes of its body and of
// the answer's text. Files in the body, as data URLs, count as 1000 tokens each, whatever their size.
func EstimateUsage(body []byte, answer int) Usage {
	input := len(body)
	for {
		_, after, found := bytes.Cut(body, []byte(";base64,"))
		end := bytes.IndexByte(after, '"')
		if !found || end < 0 {
			break
		}
		input += tokensPerFile*bytesPerToken - end
		body = after[end:]
	}
	return Usage{InputTokens: max(input, 0) / bytesPerToken, OutputTokens: answer / bytesPerToken}
}

// DayOf is the day of a time, in UTC, as 2006-01-02.
func DayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// SpendingGroup is a field of [Spending] by which sums are grouped.
type SpendingGroup string

// The groups.
const (
	SpendingByDay   SpendingGroup = "day"
	SpendingByKey   SpendingGroup = "key"
	SpendingByUser  SpendingGroup = "user"
	SpendingByModel SpendingGroup = "model" // the provider and the model
)

// SpendingQuery selects what is added up.
type SpendingQuery struct {
	ProjectID string // "": of all projects
	// KeyID and UserID narrow the sums to one key or user; nil: all.
	KeyID, UserID *string
	// From and To are the first and the last day; "" for no bound.
	From, To string
	// By are the groups, in the order in which the rows are sorted. A field of no group is empty in the rows; ProjectID is
	// always set, and sorts first. Without groups there is one row for each project.
	By []SpendingGroup
}

// Key returns the fields of a row by which a query groups; the others are empty.
func (q SpendingQuery) Key(row Spending) Spending {
	key := Spending{ProjectID: row.ProjectID}
	for _, by := range q.By {
		switch by {
		case SpendingByDay:
			key.Day = row.Day
		case SpendingByKey:
			key.KeyID = row.KeyID
		case SpendingByUser:
			key.UserID = row.UserID
		case SpendingByModel:
			key.Provider, key.Model = row.Provider, row.Model
		}
	}
	return key
}

// Compare orders rows as the query sorts them.
func (q SpendingQuery) Compare(a, b Spending) int {
	order := cmp.Compare(a.ProjectID, b.ProjectID)
	for _, by := range q.By {
		switch by {
		case SpendingByDay:
			order = cmp.Or(order, cmp.Compare(a.Day, b.Day))
		case SpendingByKey:
			order = cmp.Or(order, cmp.Compare(a.KeyID, b.KeyID))
		case SpendingByUser:
			order = cmp.Or(order, cmp.Compare(a.UserID, b.UserID))
		case SpendingByModel:
			order = cmp.Or(order, cmp.Compare(a.Model, b.Model), cmp.Compare(a.Provider, b.Provider))
		}
	}
	return order
}

// FinishedTurn is a turn that ended, in the order in which turns ended. It has none of the conversation's words, and stays
// when that is deleted.
type FinishedTurn struct {
	// Position is above that of every turn that a reader could see before. There are gaps.
	Position       int64     `json:"position"`
	ProjectID      string    `json:"project_id"`
	ConversationID string    `json:"conversation_id"`
	TurnID         string    `json:"turn_id"`
	UserID         string    `json:"user_id"`
	KeyID          string    `json:"key_id"`
	State          TurnState `json:"state"` // TurnFinished or TurnFailed
	EndedAt        time.Time `json:"ended_at"`
	TurnEnd
}

// FeedQuery selects a page of the turns that ended.
type FeedQuery struct {
	ProjectID string // "": of all projects
	UserID    string // "": of all users
	// After is a Position: the turns after it are found. Negative: the oldest that are kept, and those after them.
	After int64
	Limit int // at least 1
}

// LedgerStore keeps what was spent, and which turns ended. Both are written in the commit of what they are about, with
// TurnUpdate.Charges and TurnUpdate.State.
type LedgerStore interface {
	// Charge adds what requests used that belong to no update of a turn.
	Charge(ctx context.Context, charges []Spending) error
	// Spent adds up; see [SpendingQuery].
	Spent(ctx context.Context, query SpendingQuery) ([]Spending, error)
	// FinishedTurns lists turns by their Position, ascending. A turn that ends later gets a higher Position than all that
	// were returned, in whichever process it ends: a reader that continues after the last one misses none. It fails with
	// ErrFeedPruned where a turn after query.After was removed that the query would have found.
	FinishedTurns(ctx context.Context, query FeedQuery) ([]FinishedTurn, error)
	// FeedPosition is how far a receiver of the feed is; ErrNotFound. SetFeedPosition changes it.
	FeedPosition(ctx context.Context, name string) (int64, error)
	SetFeedPosition(ctx context.Context, name string, position int64) error
	// LastFinished is the highest Position that a turn of any project ever had; 0 when no turn has ended.
	LastFinished(ctx context.Context) (int64, error)
	// PruneFinished removes turns from the beginning of the feed, of all projects: up to limit of those that ended before a
	// time and have a Position of at most through. It stops at the first other one, and returns how many it removed.
	PruneFinished(ctx context.Context, before time.Time, through int64, limit int) (int, error)
}

// SumSpending adds up the rows that have the same fields, so that each is written once. The order of the result does not
// depend on that of the rows: two writers lock rows in the same order.
func SumSpending(rows []Spending) []Spending {
	if len(rows) < 2 {
		return rows
	}
	all := SpendingQuery{By: []SpendingGroup{SpendingByKey, SpendingByDay, SpendingByUser, SpendingByModel}}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, all.Compare)
	sums := sorted[:1]
	for _, row := range sorted[1:] {
		if last := &sums[len(sums)-1]; all.Compare(*last, row) == 0 {
			last.Add(row.Spent)
		} else {
			sums = append(sums, row)
		}
	}
	return sums
}

// Charge adds what requests to models used that belong to no turn; see [LedgerStore].
func (l *Log) Charge(ctx context.Context, charges ...Spending) error {
	if len(charges) == 0 {
		return nil
	}
	if err := l.store.Charge(ctx, charges); err != nil {
		return fmt.Errorf("charge requests: %w", err)
	}
	l.options.Charged(charges)
	return nil
}

// Spent adds up what requests to models used; see [LedgerStore].
func (l *Log) Spent(ctx context.Context, query SpendingQuery) ([]Spending, error) {
	rows, err := l.store.Spent(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("add up what was spent: %w", err)
	}
	return rows, nil
}

// FinishedTurns lists turns in the order in which they ended; see [LedgerStore].
func (l *Log) FinishedTurns(ctx context.Context, query FeedQuery) ([]FinishedTurn, error) {
	turns, err := l.store.FinishedTurns(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("list finished turns: %w", err)
	}
	return turns, nil
}

// FeedPosition is how far a receiver of the feed is; see [LedgerStore].
func (l *Log) FeedPosition(ctx context.Context, name string) (int64, error) {
	position, err := l.store.FeedPosition(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("position of %s in the feed: %w", name, err)
	}
	return position, nil
}

// SetFeedPosition changes how far a receiver of the feed is; see [LedgerStore].
func (l *Log) SetFeedPosition(ctx context.Context, name string, position int64) error {
	if err := l.store.SetFeedPosition(ctx, name, position); err != nil {
		return fmt.Errorf("set the position of %s in the feed: %w", name, err)
	}
	return nil
}

// LastFinished is the position of the turn that ended last; see [LedgerStore].
func (l *Log) LastFinished(ctx context.Context) (int64, error) {
	last, err := l.store.LastFinished(ctx)
	if err != nil {
		return 0, fmt.Errorf("position of the newest finished turn: %w", err)
	}
	return last, nil
}

// PruneFinished removes old turns from the feed; see [LedgerStore].
func (l *Log) PruneFinished(ctx context.Context, before time.Time, through int64, limit int) (int, error) {
	removed, err := l.store.PruneFinished(ctx, before, through, limit)
	if err != nil {
		return removed, fmt.Errorf("prune the feed of finished turns: %w", err)
	}
	return removed, nil
}

// Payer is whom requests to models are charged to.
type Payer struct {
	ProjectID string
	UserID    string // "": nobody's in particular
	KeyID     string // the caller's API key; "" for none
}

type payerKey struct{}

// WithPayer adds the payer of requests to a context.
func WithPayer(ctx context.Context, payer Payer) context.Context {
	return context.WithValue(ctx, payerKey{}, payer)
}

// WithOwner adds whose conversations requests are made for to a context: they are charged to that project and user, and to the key that
// the context's payer has.
func WithOwner(ctx context.Context, projectID, userID string) context.Context {
	payer, _ := PayerOf(ctx)
	return WithPayer(ctx, Payer{ProjectID: projectID, UserID: userID, KeyID: payer.KeyID})
}

// PayerOf is the payer of a context's requests; ok is false where there is none.
func PayerOf(ctx context.Context) (payer Payer, ok bool) {
	payer, ok = ctx.Value(payerKey{}).(Payer)
	return payer, ok
}
