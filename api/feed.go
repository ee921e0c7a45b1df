package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// feedOperations list the turns that end in a project.
func (s *Service) feedOperations() []Operation {
	return []Operation{
		define(Operation{
			ID: "listFeed", Method: "GET", Path: "/api/feed", Tag: "turns", Summary: "list the turns of the project as they end",
			Answers: answers(ok("A page of turns.")),
		}, s.ListFeed),
		handled[FeedEvents, None](Operation{
			ID: "followFeed", Method: "GET", Path: "/api/feed/events", Tag: "turns", Summary: "follow the turns of the project as they end",
			Description: "The turns of `GET /api/feed` after a cursor, and those that end from now on, on whichever process, within about a " +
				"second. The `id` of each event is its cursor: a client that reconnects with `Last-Event-ID` misses none and gets none " +
				"twice. The stream has no end of its own; it breaks off as that of a conversation does.",
			Answers: answers(ok("The events.").as(events[FeedStream]())),
		}),
	}
}

// FeedFilter selects a page of the feed.
type FeedFilter struct {
	FeedCursor
	// The maximum number of turns.
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// FeedCursor is a position in the feed.
type FeedCursor struct {
	// A `cursor` or `next` of this feed: only turns that ended after it. `newest` is the end of the feed. `oldest`, the default,
	// is its beginning: the oldest turns that are kept.
	After string `query:"after" maxLength:"40"`

	position int64
}

// The cursors of the beginning and of the end of the feed.
const (
	oldest = "oldest"
	newest = "newest"
)

// Check reads the cursor.
func (c *FeedCursor) Check() (err error) {
	if c.After == "" || c.After == oldest || c.After == newest {
		c.position = -1
		return nil
	}
	if c.position, err = strconv.ParseInt(c.After, 10, 64); err != nil || c.position < 0 {
		return Refuse("after", "after must be a cursor of this feed, oldest or newest, not %q", Bounded(c.After))
	}
	return nil
}

// FinishedTurn is a turn that ended. It has none of the conversation's words.
type FinishedTurn struct {
	// The turn's place in the feed, for `after`.
	Cursor         string `json:"cursor"`
	ConversationID string `json:"conversation_id"`
	TurnID         string `json:"turn_id"`
	// The user of the conversation, and the API key of the caller who began the turn; empty for none.
	UserID string             `json:"user_id"`
	KeyID  string             `json:"key_id"`
	State  continuo.TurnState `json:"state" enum:"finished,failed"`
	// Of a failed turn.
	Reason  continuo.FailureReason `json:"reason,omitempty"`
	EndedAt time.Time              `json:"ended_at"`
	// What its requests to models used.
	Usage continuo.Usage `json:"usage"`
}

// FinishedTurnOf converts a turn that ended to the form for clients.
func FinishedTurnOf(t continuo.FinishedTurn) FinishedTurn {
	return FinishedTurn{
		Cursor: strconv.FormatInt(t.Position, 10), ConversationID: t.ConversationID, TurnID: t.TurnID, UserID: t.UserID, KeyID: t.KeyID,
		State: t.State, Reason: t.Reason, EndedAt: t.EndedAt, Usage: t.Usage,
	}
}

// Feed is a page of the feed.
type Feed struct {
	Data []FinishedTurn `json:"data"`
	// Whether more turns have ended already.
	HasMore bool `json:"has_more"`
	// The `after` of the next page, also where no more turns have ended yet.
	Next string `json:"next"`
}

// ListFeed lists the turns of the project that ended.
//
// In the order in which they ended, the oldest first, so that another system learns of each: ask again with `after` set to
// `next`. The order is the same for every reader, and a turn that ends later always comes later, whichever process it ends
// in: no turn is missed, and none comes twice. Turns stay in the feed when their conversation is deleted, for as long as the
// setting `retention.feed` says: where turns after `after` were removed that the caller would have seen, the answer is 410
// `feed_pruned`, and where the feed ends before `after`, as after an older state of the store was restored, 410 `feed_restored`.
// A key that is bound to a user sees that user's.
func (s *Service) ListFeed(ctx context.Context, scope continuo.Scope, in FeedFilter) (Feed, error) {
	query, err := s.FeedQuery(ctx, scope, in.FeedCursor)
	if err != nil {
		return Feed{}, err
	}
	next := query.After
	if next < 0 { // a reader that finds nothing now misses nothing of what comes
		if next, err = s.Engine.Ledger.LastFinished(ctx); err != nil {
			return Feed{}, err
		}
	}
	query.Limit = in.Limit + 1
	turns, err := s.Engine.Ledger.Finished(ctx, query)
	if err != nil {
		return Feed{}, explainPruned(err)
	}
	page := Feed{Data: []FinishedTurn{}, HasMore: len(turns) > in.Limit, Next: strconv.FormatInt(next, 10)}
	for _, turn := range turns[:min(len(turns), in.Limit)] {
		page.Data = append(page.Data, FinishedTurnOf(turn))
		page.Next = strconv.FormatInt(turn.Position, 10)
	}
	return page, nil
}

// errFeedRestored says that no turn of the feed has had the position of a reader.
var errFeedRestored = errors.New("the feed of finished turns ends before this position, as after an older state of the store was restored")

// otherwise is what a reader can do that has missed turns.
const otherwise = "go on with after=oldest, and learn from GET /api/conversations?since= what changed in between"

// explainPruned says what a reader can do whose turns were removed.
func explainPruned(err error) error {
	if !errors.Is(err, continuo.ErrFeedPruned) {
		return err
	}
	return fmt.Errorf("%w (retention.feed): %s", continuo.ErrFeedPruned, otherwise)
}

// FollowFeed yields the turns of a query as Ledger.Follow does; its errors say what a reader can do.
func (s *Service) FollowFeed(ctx context.Context, query continuo.FeedQuery) iter.Seq2[continuo.FinishedTurn, error] {
	return func(yield func(continuo.FinishedTurn, error) bool) {
		for turn, err := range s.Engine.Ledger.Follow(ctx, query) {
			if err != nil {
				err = explainPruned(err)
			}
			if !yield(turn, err) {
				return
			}
		}
	}
}

// FeedQuery selects the turns after a cursor that a caller may see. It refuses one beyond the end: its reader would miss all
// turns up to there.
func (s *Service) FeedQuery(ctx context.Context, scope continuo.Scope, from FeedCursor) (query continuo.FeedQuery, err error) {
	query = continuo.FeedQuery{ProjectID: scope.ProjectID, UserID: scope.UserID, After: from.position}
	if from.After != newest && from.position <= 0 {
		return query, nil
	}
	last, err := s.Engine.Ledger.LastFinished(ctx)
	switch {
	case err != nil:
		return query, err
	case from.After == newest:
		query.After = last
	case query.After > last:
		return query, fmt.Errorf("%w: %s", errFeedRestored, otherwise)
	}
	return query, nil
}

// FeedEvents is a request to follow the feed.
type FeedEvents struct {
	// The id of the last event that the client has received. It takes precedence over `after`.
	LastEventID string `header:"Last-Event-ID"`
	FeedCursor
}

// Check reads the id of the last event.
func (in *FeedEvents) Check() error {
	if in.LastEventID == "" {
		return in.FeedCursor.Check()
	}
	in.After = in.LastEventID
	if err := in.FeedCursor.Check(); err != nil || in.position < 0 {
		return Refuse("Last-Event-ID", "Last-Event-ID must be the id of an event of this stream, not %q", Bounded(in.LastEventID))
	}
	return nil
}

// FeedStream is the stream of the feed.
type FeedStream struct {
	// A turn that ended; its `cursor` is the `id`.
	Turn FinishedTurn `event:"turn"`
	// The last event of a stream that broke off.
	Error Error `event:"error"`
}
