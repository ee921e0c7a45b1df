package api

import (
	"bytes"
	"context"
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
	// The last event of a stream that broke off.
	Error Error `event:"error"`
}

const (
	// listPoll is how often the list is looked at: reports of changes are about single conversations.
	listPoll = time.Second
	// listPage bounds how many rows one look reads, maxKnownRows how many a stream remembers.
	listPage     = 100
	maxKnownRows = 1000
)

// FollowList yields the rows that change from now on, or since a time: those of conversations that changed, and those in
// which a turn or a run is in progress when their state changes. A row may come twice. It ends when ctx is done.
func (s *Service) FollowList(ctx context.Context, scope continuo.Scope, in ListEvents) (iter.Seq2[ConversationRow, error], error) {
	query, err := in.query(scope)
	if err != nil {
		return nil, err
	}
	f := listFollower{service: s, query: query, all: in.Kind == "all", state: valueOf(in.State), known: map[string]knownRow{}}
	f.query.State = "" // a row that leaves a state is a change, too
	if in.since.IsZero() {
		f.query.Since = s.Engine.Conversations.Now()
	}
	return func(yield func(ConversationRow, error) bool) {
		ticker := time.NewTicker(listPoll)
		defer ticker.Stop()
		for {
			more, err := f.look(ctx, yield)
			if err != nil && ctx.Err() == nil {
				yield(ConversationRow{}, err)
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
}

// knownRow is a row that was sent: a hash of it would do, but rows are short.
type knownRow struct {
	shown  []byte
	active *continuo.Conversation // nil where nothing is in progress
}

// look yields the rows that have changed since the last look; more is false where the reader has enough.
func (f *listFollower) look(ctx context.Context, yield func(ConversationRow, error) bool) (more bool, err error) {
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
		if !yield(row, nil) {
			return false, nil
		}
	}
	return true, nil
}

// changed lists the conversations that changed since the last look, the oldest change first, and those in which something
// was in progress then.
func (f *listFollower) changed(ctx context.Context) ([]continuo.Conversation, error) {
	find := f.service.Engine.Conversations.List
	if f.all {
		find = f.service.Engine.Conversations.ListAll
	}
	var found []continuo.Conversation
	query := f.query
	query.Limit = listPage
	for {
		page, err := find(ctx, query)
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
		if len(page) < listPage || len(found) >= maxKnownRows {
			break
		}
		last := page[len(page)-1]
		query.Before = continuo.ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
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

func (f *listFollower) remember(row ConversationRow, shown []byte) {
	if len(f.known) >= maxKnownRows {
		clear(f.known)
	}
	known := knownRow{shown: shown}
	if row.State == conversations.StateRunning || row.State == conversations.StateWaiting {
		known.active = &row.Conversation
	}
	f.known[row.ID] = known
}
