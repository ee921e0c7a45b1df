package conversations

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Row is a conversation in a list, with its activity.
type Row struct {
	continuo.Conversation
	// State is `waiting` where a person has to decide, `running` where a turn or a run is in progress, `failed` where the
	// newest turn failed, else `idle`.
	State string `json:"state" enum:"idle,running,waiting,failed"`
	// Last is the newest message of a person or a model that has text; absent where none of the newest entries is one, and in
	// archived conversations.
	Last *LastMessage `json:"last,omitempty"`
	// Model is the one that answered last, as its provider names it.
	Model string `json:"model,omitempty"`
	// Client is the program whose session it records, such as codex or claude-code.
	Client string `json:"client,omitempty"`
	// Usage is that of the conversation's own entries: a fork's does not count what it inherited.
	Usage Usage `json:"usage"`
	// CachedShares are the parts of the input that the provider had cached, from 0 to 1, of the newest 24 requests, the oldest
	// first; -1 where it reported none.
	CachedShares []float64 `json:"cached_shares"`
	// Children counts its forks and the calls beside it.
	Children int `json:"children"`

	// Turn and Run are those in progress, else the newest turn.
	Turn continuo.Turn `json:"-"`
	Run  continuo.Run  `json:"-"`
}

// Usage adds up what requests to models used.
type Usage struct {
	Requests         int64 `json:"requests"`
	InputTokens      int64 `json:"input_tokens"` // with the cached ones
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	// Cost is what the requests with a known price cost together; absent where none has one.
	Cost *continuo.Cost `json:"cost,omitempty"`
	// UnpricedRequests counts those without a known price, which are not in `cost`.
	UnpricedRequests int64 `json:"unpriced_requests"`
}

// LastMessage is the newest message of a conversation.
type LastMessage struct {
	Seq       int64            `json:"seq"`
	Role      continuo.Role    `json:"role"`
	Author    *continuo.Author `json:"author,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	// Text is the beginning of its text, at most 200 characters.
	Text string `json:"text"`
}

// The states of rows.
const (
	StateIdle    = "idle"
	StateRunning = "running"
	StateWaiting = "waiting"
	StateFailed  = "failed"
)

const (
	// lastScan bounds how many of the newest entries are searched for a message: each page of a list reads so many at most.
	lastScan      = 8
	maxLastText   = 200
	sessionPrefix = "session " // of the keys that package gateway/match gives
)

// ClientPrefix is what the keys of a client's sessions begin with.
func ClientPrefix(client string) string { return sessionPrefix + client + ":" }

// clientOf is the client whose session a key names; "" for every other key.
func clientOf(key string) string {
	session, ok := strings.CutPrefix(key, sessionPrefix)
	if !ok {
		return ""
	}
	client, _, named := strings.Cut(session, ":")
	if !named {
		return ""
	}
	return client
}

// Rows are conversations with their activity, in their order. A conversation that was deleted meanwhile is left out.
// Whether a turn waits for a person is not known here: its row says that it runs.
func (cv *Conversations) Rows(ctx context.Context, found []continuo.Conversation) ([]Row, error) {
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	activities, err := cv.log.Activities(ctx, ids)
	if err != nil {
		return nil, err
	}
	of := map[string]*continuo.Activity{}
	for i := range activities {
		of[activities[i].ConversationID] = &activities[i]
	}
	rows := []Row{}
	for _, conversation := range found {
		activity := of[conversation.ID]
		if activity == nil {
			continue
		}
		row := rowOf(conversation, activity)
		if row.Last, err = cv.lastMessage(ctx, conversation); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func rowOf(conversation continuo.Conversation, activity *continuo.Activity) Row {
	row := Row{
		Conversation: conversation, State: StateIdle, Client: clientOf(conversation.Key), Usage: SumOf(activity.Usage),
		CachedShares: continuo.SharesOf(activity.Usage), Children: activity.Children, Turn: activity.Turn, Run: activity.Run,
	}
	if n := len(activity.Usage); n > 0 {
		row.Model = activity.Usage[n-1].Model
	}
	switch {
	case activity.Run.State == continuo.RunWaiting && activity.Turn.State != continuo.TurnRunning:
		row.State = StateWaiting
	case activity.Turn.State == continuo.TurnRunning, activity.Run.State == continuo.RunRunning:
		row.State = StateRunning
	case activity.Turn.State == continuo.TurnFailed:
		row.State = StateFailed
	}
	return row
}

// SumOf adds up counts.
func SumOf(counts []continuo.UsageCount) (sum Usage) {
	for _, c := range counts {
		sum.Requests += c.Requests
		sum.InputTokens += c.InputTokens
		sum.CachedTokens += c.CachedTokens
		sum.CacheWriteTokens += c.CacheWriteTokens
		sum.OutputTokens += c.OutputTokens
		sum.UnpricedRequests += c.Requests - c.Priced
		if c.Priced > 0 {
			if sum.Cost == nil {
				sum.Cost = &continuo.Cost{Currency: continuo.USD}
			}
			sum.Cost.Nano += c.CostNano
		}
	}
	return sum
}

// UsageOf converts what was spent to the form for clients.
func UsageOf(spent continuo.Spent) Usage {
	return SumOf([]continuo.UsageCount{{
		Requests: spent.Requests, InputTokens: spent.InputTokens, CachedTokens: spent.CachedTokens, CacheWriteTokens: spent.CacheWriteTokens,
		OutputTokens: spent.OutputTokens, CostNano: spent.CostNano, Priced: spent.Priced,
	}})
}

// lastMessage finds the newest message that has text among the newest entries.
func (cv *Conversations) lastMessage(ctx context.Context, conversation continuo.Conversation) (*LastMessage, error) {
	if !conversation.ArchivedAt.IsZero() || conversation.LastSeq == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	within := continuo.Range{From: max(1, conversation.LastSeq-lastScan+1), Backward: true}
	for entry, err := range cv.log.ReadShared(ctx, conversation, within) {
		if err != nil {
			return nil, err
		}
		if entry.Hidden || entry.Role != continuo.User && entry.Role != continuo.Assistant {
			continue
		}
		if text := beginningOf(entry.Content.String()); text != "" {
			return &LastMessage{Seq: entry.Seq, Role: entry.Role, Author: entry.Author, CreatedAt: entry.CreatedAt, Text: text}, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// beginningOf is the beginning of a text, without white space around it.
func beginningOf(text string) string {
	text = strings.TrimSpace(text)
	count := 0
	for i := range text {
		if count++; count > maxLastText {
			return text[:i]
		}
	}
	return text
}

// listedKinds are the kinds of conversations that a list of all kinds has: branches of runs are parts of their runs.
var listedKinds = []continuo.Kind{continuo.KindUser, continuo.KindTask, continuo.KindAgent, continuo.KindSide}

// ListAll lists conversations of every kind in the query's order; its Kind is not read.
func (cv *Conversations) ListAll(ctx context.Context, query continuo.ConversationQuery) ([]continuo.Conversation, error) {
	var all []continuo.Conversation
	for _, kind := range listedKinds {
		query.Kind = kind
		found, err := cv.log.Conversations(ctx, query)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	values, err := cv.sortValues(ctx, query.Sort, all)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b continuo.Conversation) int {
		if query.Sort == continuo.SortUpdated {
			return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.ID, a.ID))
		}
		return cmp.Or(cmp.Compare(values[b.ID], values[a.ID]), cmp.Compare(b.ID, a.ID))
	})
	return all[:min(len(all), query.Limit)], nil
}

// Position is the position of a conversation in a list of an order.
func (cv *Conversations) Position(ctx context.Context, order continuo.ConversationSort, conversation continuo.Conversation) (continuo.ConversationCursor, error) {
	if order == continuo.SortUpdated {
		return continuo.ConversationCursor{UpdatedAt: conversation.UpdatedAt, ID: conversation.ID}, nil
	}
	values, err := cv.sortValues(ctx, order, []continuo.Conversation{conversation})
	return continuo.ConversationCursor{ID: conversation.ID, Value: values[conversation.ID]}, err
}

// sortValues are what conversations are sorted by, by their ids; empty where that is the newest change.
func (cv *Conversations) sortValues(ctx context.Context, order continuo.ConversationSort, found []continuo.Conversation) (map[string]int64, error) {
	values := map[string]int64{}
	usage := map[string][]continuo.UsageCount{}
	if order == continuo.SortTokens || order == continuo.SortCost {
		var ids []string
		for i := range found {
			ids = append(ids, found[i].ID)
		}
		activities, err := cv.log.Activities(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, activity := range activities {
			usage[activity.ConversationID] = activity.Usage
		}
	}
	if order != continuo.SortUpdated {
		for i := range found {
			values[found[i].ID] = order.SortValue(found[i], usage[found[i].ID])
		}
	}
	return values, nil
}

// Totals counts the conversations of kinds, of all with none, and adds up their usage by day and model.
func (cv *Conversations) Totals(ctx context.Context, query continuo.ConversationQuery, kinds ...continuo.Kind) (continuo.Totals, error) {
	if len(kinds) == 0 {
		kinds = listedKinds
	}
	var sum continuo.Totals
	for _, kind := range kinds {
		query.Kind = kind
		totals, err := cv.log.Totals(ctx, query)
		if err != nil {
			return sum, err
		}
		sum.Conversations += totals.Conversations
		for _, count := range totals.Usage {
			sum.Usage = continuo.AddUsage(sum.Usage, count)
		}
	}
	slices.SortFunc(sum.Usage, func(a, b continuo.UsageCount) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model))
	})
	return sum, nil
}
