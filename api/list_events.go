package api

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// ListEvents is a request to follow the list of conversations.
type ListEvents struct {
	// The id of the last event that the client has received. It takes precedence over `since`.
	LastEventID string `header:"Last-Event-ID"`
	ConversationFilter
}

// Check reads the id of the last event, which is the time of a change.
func (in *ListEvents) Check() (err error) {
	if in.LastEventID == "" {
		return nil
	}
	if in.since, err = time.Parse(time.RFC3339, in.LastEventID); err != nil {
		return Refuse("Last-Event-ID", "Last-Event-ID must be the id of an event of this stream, not %q", Bounded(in.LastEventID))
	}
	return nil
}

// ListStream is the stream of the list of conversations.
type ListStream struct {
	// A row that is new or has changed; its `updated_at` is the `id`.
	Conversation ConversationRow `event:"conversation"`
	// One of the newest 1000 rows, or one that was sent, has left the list. It has no `id`.
	Removed RemovedEvent `event:"removed"`
	// The last event of a stream that broke off.
	Error Error `event:"error"`
}

// RemovedEvent names a conversation that has left the list.
type RemovedEvent struct {
	ID string `json:"id"`
	// Whether it is there still, but is now in the other list: archived, or restored.
	Archived bool `json:"archived"`
}

// ListChange is a change of the list: a row, or the conversation that has left it.
type ListChange struct {
	Row     *ConversationRow
	Removed *RemovedEvent
}

const (
	// listAudit is after how many looks the list is compared with what it was, because another process may have deleted a
	// conversation; deletions by this process are looked for at once.
	listAudit = 15
	// listPoll is how often the list is looked at: reports of changes are about single conversations.
	listPoll = time.Second
	// listPage bounds how many rows one look reads, maxKnownRows how many a stream remembers.
	listPage     = 100
	maxKnownRows = 1000
)

// FollowList yields what changes in the list from now on: the rows of conversations that changed, also since a time, those in
// which a turn or a run is in progress when their state changes, and the conversations that are deleted or archived. A row may
// come twice. It ends when ctx is done.
func (s *Service) FollowList(ctx context.Context, scope continuo.Scope, in ListEvents) (iter.Seq2[ListChange, error], error) {
	query, err := in.query(scope)
	if err != nil {
		return nil, err
	}
	f := listFollower{service: s, query: query, all: in.Kind == "all", state: valueOf(in.State), known: map[string]knownRow{}}
	f.query.State = "" // a row that leaves a state is a change, too
	if in.since.IsZero() {
		f.query.Since = s.Engine.Conversations.Now()
	}
	if err := f.begin(ctx); err != nil {
		return nil, err
	}
	return func(yield func(ListChange, error) bool) {
		ticker := time.NewTicker(listPoll)
		defer ticker.Stop()
		for {
			more, err := f.look(ctx, yield)
			if err != nil && ctx.Err() == nil {
				yield(ListChange{}, err)
			}
			if err != nil || !more {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}, nil
}

// listFollower is a reader of the list.
type listFollower struct {
	service *Service
	query   continuo.ConversationQuery
	all     bool   // of all kinds
	state   string // that rows had when they were first sent; "" for any
	known   map[string]knownRow
	listed  map[string]bool // the ids of the newest rows, and of those that were sent
	removed uint64          // of conversations.Removed, when listed was read
	looks   int             // since then
}

// knownRow is a row that was sent: a hash of it would do, but rows are short.
type knownRow struct {
	shown  []byte
	active *continuo.Conversation // nil where nothing is in progress
}

// begin reads which conversations the list has.
func (f *listFollower) begin(ctx context.Context) error {
	f.removed, f.looks = f.service.Engine.Conversations.Removed(), 0
	query := f.query
	query.Since = time.Time{}
	found, err := f.list(ctx, query)
	f.listed = map[string]bool{}
	for i := range found {
		f.listed[found[i].ID] = true
	}
	return err
}

// leave yields the conversations that the list had and that were deleted or archived since.
func (f *listFollower) leave(ctx context.Context, yield func(ListChange, error) bool) (more bool, err error) {
	if f.looks++; f.looks < listAudit && f.removed == f.service.Engine.Conversations.Removed() {
		return true, nil
	}
	before := f.listed
	if err := f.begin(ctx); err != nil {
		return false, err
	}
	for id := range before {
		if f.listed[id] {
			continue
		}
		// A row that newer ones have pushed out of what is read is still there.
		now, err := f.service.Engine.Conversations.Conversation(ctx, id)
		gone := errors.Is(err, continuo.ErrNotFound)
		if err != nil && !gone {
			return false, err
		}
		if !gone && now.ArchivedAt.IsZero() != f.query.Archived {
			continue
		}
		delete(f.known, id)
		if !yield(ListChange{Removed: &RemovedEvent{ID: id, Archived: !gone}}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// look yields what has changed since the last look; more is false where the reader has enough.
func (f *listFollower) look(ctx context.Context, yield func(ListChange, error) bool) (more bool, err error) {
	if more, err = f.leave(ctx, yield); err != nil || !more {
		return false, err
	}
	changed, err := f.changed(ctx)
	if err != nil {
		return false, err
	}
	rows, err := f.service.rows(ctx, changed, "")
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if row.UpdatedAt.After(f.query.Since) {
			f.query.Since = row.UpdatedAt
		}
		shown, before := rawjson.MustMarshal(row), f.known[row.ID]
		if bytes.Equal(shown, before.shown) || f.state != "" && row.State != f.state && before.shown == nil {
			continue
		}
		f.remember(row, shown)
		if !yield(ListChange{Row: &row}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// changed lists the conversations that changed since the last look, the oldest change first, and those in which something
// was in progress then.
func (f *listFollower) changed(ctx context.Context) ([]continuo.Conversation, error) {
	found, err := f.list(ctx, f.query)
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for i := range found {
		listed[found[i].ID] = true
	}
	for id, known := range f.known {
		if known.active != nil && !listed[id] {
			found = append(found, *known.active)
		}
	}
	slices.Reverse(found)
	return found, nil
}

// list reads the newest conversations that a query selects.
func (f *listFollower) list(ctx context.Context, query continuo.ConversationQuery) (found []continuo.Conversation, err error) {
	find := f.service.Engine.Conversations.List
	if f.all {
		find = f.service.Engine.Conversations.ListAll
	}
	query.Limit = listPage
	for {
		page, err := find(ctx, query)
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
		if len(page) < listPage || len(found) >= maxKnownRows {
			return found, nil
		}
		last := page[len(page)-1]
		query.Before = continuo.ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
	}
}

func (f *listFollower) remember(row ConversationRow, shown []byte) {
	if len(f.known) >= maxKnownRows {
		clear(f.known)
	}
	f.listed[row.ID] = true
	known := knownRow{shown: shown}
	if row.State == conversations.StateRunning || row.State == conversations.StateWaiting {
		known.active = &row.Conversation
	}
	f.known[row.ID] = known
}
