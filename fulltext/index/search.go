package index

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// Request is what to look for, and where.
type Request struct {
	ProjectID string
	// UserID and Labels narrow the conversations of the project to those of a user ("": all users), and to
	// those whose metadata have the labels; see continuo.LabelsOf.
	UserID string
	Labels map[string]string
	// Conversation is the conversation to search. Default: all of the project.
	Conversation *continuo.Conversation
	// Kinds restricts a search without Conversation to conversations of some kinds; see KindsOf. Default:
	// all.
	Kinds []continuo.Kind
	// Query is in the syntax of fulltext.ParseQuery.
	Query string
	// Role restricts the search to entries of one role. Default: all, and titles.
	Role continuo.Role
	// From and To bound the seqs in one conversation. Default 0: no bound.
	From, To int64
	// Limit is the maximum number of matches, up to MaxLimit. Default 20.
	Limit int
	// Cursor continues after the page that returned it.
	Cursor string
	// Skip leaves matches out that the caller has. Default: none.
	Skip func(conversationID string, seq int64) bool
	// Patience bounds how long missing entries are indexed first; negative: not at all. Default 2 s.
	Patience time.Duration
}

// The bounds of a search.
const (
	DefaultLimit = 20
	MaxLimit     = 200

	ranked   = 200  // matches that are ranked together
	examined = 2000 // maximum number of candidates read for a page
)

// Result is a page of matches.
type Result struct {
	// Items are the matches, the best first. The newest 200 of a search are ranked together; when all of
	// those were shown, NextCursor continues with the next 200. A page may have few matches or none although
	// more follow: a page reads at most 2 000 candidates.
	Items []Item `json:"data"`
	// NextCursor is the Request.Cursor of the page after this one; "" on the last.
	NextCursor string `json:"next_cursor,omitempty"`
	// Incomplete says that not all of the project was indexed in time: there may be more matches, in Waiting
	// conversations (counted up to 1 000). A search of one conversation is always complete.
	Incomplete bool `json:"incomplete"`
	Waiting    int  `json:"waiting,omitempty"`
	// Problem is the error for which the index could not be updated; nil for none, or when the time was up.
	Problem error `json:"-"`
}

// Item is a matching entry, or a matching conversation title.
type Item struct {
	ConversationID string           `json:"conversation_id"`
	Key            string           `json:"key,omitempty"`
	Title          string           `json:"title"`
	Seq            int64            `json:"seq"` // 0: the title
	Role           continuo.Role    `json:"role,omitempty"`
	CreatedAt      time.Time        `json:"created_at"` // of the entry, or of the conversation
	Score          int64            `json:"score"`      // more is better
	Snippet        fulltext.Snippet `json:"snippet"`
	// Deleted says that a client of the gateway deleted an item of the entry or of its group: the log has it, and no model is
	// shown it any more.
	Deleted bool `json:"deleted,omitempty"`
}

// rank is the sort key of items.
type rank struct {
	Score int64  `json:"s"`
	At    int64  `json:"t"` // Unix nanoseconds
	ID    string `json:"c"`
	Seq   int64  `json:"n"`
}

func (i *Item) rank() rank { return rank{i.Score, nanoseconds(i.CreatedAt), i.ConversationID, i.Seq} }

// compare orders by falling score, then newer before older.
func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(other.Score, r.Score), cmp.Compare(other.At, r.At), cmp.Compare(r.ID, other.ID), cmp.Compare(other.Seq, r.Seq))
}

// Searcher searches a log with an index of it.
type Searcher struct {
	Log *continuo.Log
	// Store is the index. Default nil: only single conversations can be searched, by reading them from the log.
	Store Store
}

// Search finds entries. An invalid request is continuo.ErrInvalid, an archived conversation
// continuo.ErrArchived. The same log and request give the same result in every store.
func (s Searcher) Search(ctx context.Context, request Request) (Result, error) {
	query, at, err := request.check()
	if err != nil {
		return Result{}, err
	}
	result, err := s.Prepare(ctx, &request)
	if err != nil {
		return Result{}, err
	}
	candidates := s.candidates(ctx, &request, query, at.Start)
	stretch, err := request.collect(candidates, query, at)
	if err != nil {
		return Result{}, err
	}
	result.Items, result.NextCursor = stretch.page(at, request.Limit)
	return result, nil
}

// Prepare checks a request but its query and its cursor, fills in its defaults, and updates the index. The result says
// whether the index is complete; it has no items.
func (s Searcher) Prepare(ctx context.Context, request *Request) (result Result, err error) {
	if err := request.checkBounds(); err != nil {
		return result, err
	}
	if s.Store == nil && request.Conversation == nil {
		return result, fmt.Errorf("search: %w: without an index only one conversation can be searched", continuo.ErrInvalid)
	}
	err = s.catchUp(ctx, *request, &result)
	return result, err
}

// check parses the query and the cursor, and fills in defaults.
func (r *Request) check() (fulltext.Query, cursor, error) {
	if err := r.checkBounds(); err != nil {
		return fulltext.Query{}, cursor{}, err
	}
	query, err := fulltext.ParseQuery(r.Query)
	if err != nil {
		return query, cursor{}, fmt.Errorf("%w: %w", continuo.ErrInvalid, err)
	}
	at, err := parseCursor(r.Cursor, r.Fingerprint())
	return query, at, err
}

func (r *Request) checkBounds() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("search: %w: %s", continuo.ErrInvalid, fmt.Sprintf(format, args...))
	}
	switch r.Role {
	case "", continuo.User, continuo.Assistant, continuo.Tool, continuo.System:
	default:
		return wrong("role is %.100q; give user, assistant, tool or system, or none for all", r.Role)
	}
	switch {
	case r.Limit < 0 || r.Limit > MaxLimit:
		return wrong("limit is %d; give 1 to %d", r.Limit, MaxLimit)
	case r.From < 0 || r.To < 0:
		return wrong("from is %d and to is %d; seqs begin with 1", r.From, r.To)
	case r.To > 0 && r.To < r.From:
		return wrong("from is %d and to is %d: from must not come after to", r.From, r.To)
	case r.Conversation != nil && len(r.Labels) > 0:
		return wrong("labels choose among conversations: leave them out where one is named")
	case r.Conversation == nil && (r.From > 0 || r.To > 0):
		return wrong("from and to are seqs of one conversation: name it")
	case r.Conversation != nil && !(continuo.Scope{ProjectID: r.ProjectID, UserID: r.UserID}).Has(*r.Conversation):
		return fmt.Errorf("search: conversation %s: %w", r.Conversation.ID, continuo.ErrNotFound)
	}
	if r.Limit == 0 {
		r.Limit = DefaultLimit
	}
	return nil
}

// maxWaiting bounds how many unindexed conversations are counted.
const maxWaiting = 1000

// CatchUp indexes a conversation and those that it was forked from, for at most a given time.
func (s Searcher) CatchUp(ctx context.Context, conversation continuo.Conversation, patience time.Duration) error {
	if s.Store == nil {
		return nil
	}
	until := time.Now().Add(patience)
	scopes := []Scope{{ConversationID: conversation.ID}}
	for _, segment := range slices.Backward(conversation.Lineage) {
		scopes = append(scopes, Scope{ConversationID: segment.ConversationID})
	}
	for _, scope := range scopes {
		if done, err := (Indexer{Log: s.Log, Store: s.Store}).Run(ctx, scope, until); !done || err != nil {
			return err
		}
	}
	return nil
}

// catchUp indexes the log, within the time limit. A failure does not end the search: the existing index is
// searched.
func (s Searcher) catchUp(ctx context.Context, request Request, r *Result) error {
	patience, done := request.Patience, false
	if patience == 0 {
		patience = 2 * time.Second
	}
	switch {
	case patience < 0:
	case request.Conversation != nil:
		r.Problem = s.CatchUp(ctx, *request.Conversation, patience)
	default:
		done, r.Problem = (Indexer{Log: s.Log, Store: s.Store}).Run(ctx, Scope{ProjectID: request.ProjectID}, time.Now().Add(patience))
	}
	if ctx.Err() != nil {
		return fmt.Errorf("search: %w", ctx.Err())
	}
	if done || request.Conversation != nil {
		return nil
	}
	waiting, err := s.Store.Unindexed(ctx, UnindexedQuery{ProjectID: request.ProjectID, Limit: maxWaiting})
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	r.Waiting, r.Incomplete = len(waiting), len(waiting) > 0
	return nil
}

func (s Searcher) candidates(ctx context.Context, r *Request, query fulltext.Query, after Hit) iter.Seq2[Candidate, error] {
	if r.Conversation == nil {
		return s.inProject(ctx, r, query, after)
	}
	to := int64(math.MaxInt64)
	if r.To > 0 {
		to = r.To
	}
	return s.inConversation(ctx, *r.Conversation, query, max(r.From, 1), to, after)
}

// stretch is the matches that are ranked together, without those already shown.
type stretch struct {
	items []Item
	end   Hit  // last candidate
	last  bool // no candidates follow
}

// collect matches candidates until the stretch is full, or reaches the end that it had for its first page.
func (r *Request) collect(candidates iter.Seq2[Candidate, error], query fulltext.Query, at cursor) (stretch, error) {
	s, seen, most := stretch{last: true}, 0, examined
	if at.inside() {
		most *= 10 // entries added meanwhile precede the stretch
	}
	for candidate, err := range candidates {
		if err != nil {
			return s, err
		}
		if at.passes(candidate.Hit, r.Conversation != nil) {
			s.last = at.Last
			break
		}
		seen++
		s.end = candidate.Hit
		isSkipped := r.Skip != nil && r.Skip(candidate.Conversation.ID, candidate.Hit.Seq)
		if item, ok := r.match(&candidate, query); ok && !isSkipped && (!at.inside() || item.rank().compare(at.Shown) > 0) {
			s.items = append(s.items, item)
		}
		if candidate.Hit == at.End || seen == most {
			s.last = at.Last
			break
		}
		if !at.inside() && len(s.items) == ranked {
			s.last = false
			break
		}
	}
	slices.SortFunc(s.items, func(a, b Item) int { return a.rank().compare(b.rank()) })
	return s, nil
}

// match checks a candidate.
func (r *Request) match(candidate *Candidate, query fulltext.Query) (Item, bool) {
	entry := &candidate.Entry
	if r.Role != "" && entry.Role != r.Role {
		return Item{}, false
	}
	texts := candidate.Texts()
	match, ok := query.Match(texts...)
	if !ok {
		return Item{}, false
	}
	item := Item{
		ConversationID: candidate.Conversation.ID, Key: candidate.Conversation.Key, Title: candidate.Conversation.Title,
		Seq: entry.Seq, Role: entry.Role, CreatedAt: entry.CreatedAt, Score: match.Score, Snippet: match.Snippet(texts, 0),
	}
	if entry.Seq == 0 {
		item.CreatedAt = candidate.Conversation.CreatedAt
	}
	return item, true
}

// KindNames lists the names for kinds of conversations to search: users' own conversations (the default),
// tasks, the work of agents, clients' calls beside their
// conversations, what is known of users, or all of them.
func KindNames() []string {
	return []string{"user", string(continuo.KindTask), string(continuo.KindAgent), string(continuo.KindSide), string(continuo.KindMemory), "all"}
}

// KindsOf returns the Request.Kinds of one of KindNames; "" is the default.
func KindsOf(name string) []continuo.Kind {
	switch name {
	case "all":
		return nil
	case "", "user":
		return []continuo.Kind{continuo.KindUser}
	}
	return []continuo.Kind{continuo.Kind(name)}
}

// page returns the best of the stretch, and the cursor of the next page, "" when there is none.
func (s *stretch) page(at cursor, limit int) (items []Item, next string) {
	items = s.items
	continuing := cursor{CursorHead: at.CursorHead}
	switch {
	case len(items) > limit:
		items = items[:limit]
		continuing.Start, continuing.End, continuing.Shown, continuing.Last = at.Start, s.end, items[limit-1].rank(), s.last
		if at.inside() {
			continuing.End, continuing.Last = at.End, at.Last
		}
	case s.last:
		return items, ""
	default:
		continuing.Start = s.end
		if at.inside() {
			continuing.Start = at.End
		}
	}
	return items, EncodeCursor(continuing)
}
