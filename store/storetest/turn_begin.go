package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// BeginTurn begins a turn without entries at the present end of its conversation.
func BeginTurn(ctx context.Context, store continuo.Store, turn continuo.Turn, lease time.Duration) (continuo.Turn, error) {
	for {
		conversation, err := store.Conversation(ctx, turn.ConversationID)
		if err != nil {
			return continuo.Turn{}, err
		}
		batch := continuo.Batch{ConversationID: turn.ConversationID, After: conversation.LastSeq, Begin: &continuo.TurnBegin{Turn: turn, Lease: lease}}
		err = store.Append(ctx, batch)
		if conflict := new(continuo.ConflictError); errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return continuo.Turn{}, err
		}
		return batch.Begin.Begun, nil
	}
}

// beginWith makes a batch of the entries after a seq that begins a turn.
func beginWith(conversationID, turnID string, after, count int64, events ...int64) continuo.Batch {
	begin := &continuo.TurnBegin{Turn: continuo.Turn{ID: turnID, ConversationID: conversationID, Owner: "one"}, Lease: long}
	for _, id := range events {
		begin.Events = append(begin.Events, event(id))
	}
	return continuo.Batch{ConversationID: conversationID, After: after, Entries: entries(conversationID, after+1, after+count), Begin: begin}
}

func testBeginWithEntries(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	batch := beginWith("a", "t1", 1, 2, 1, 3)
	batch.Begin.Mode, batch.Begin.Agent = continuo.ModeAgent, "writer"
	batch.Receipts = []continuo.Receipt{{Key: "k", Fingerprint: "f", First: 2, Last: 3}}
	noError(t, store.Append(ctx, batch))
	begun := batch.Begin.Begun
	same(t, "the turn, found", findTurn(t, store, "a", "t1"), begun)
	same(t, "its last event", begun.LastEvent, int64(3))
	expectEvents(t, "its events", store, begun, 1, 3)
	sameEntries(t, "the entries", readAll(t, store, "a"), entries("a", 1, 3))
	receipt, err := store.Receipt(ctx, "a", "k")
	noError(t, err)
	same(t, "the receipt", receipt, batch.Receipts[0])
	now, err := store.Conversation(ctx, "a")
	noError(t, err)
	same(t, "mode and agent", []string{string(now.ActiveMode), now.ActiveAgent}, []string{string(continuo.ModeAgent), "writer"})
	same(t, "its last entry and time", []any{now.LastSeq, now.UpdatedAt}, []any{int64(3), batch.Entries[1].CreatedAt})
	void := updateOf(begun, 5)
	void.State = continuo.TurnVoid
	updateTurn(t, store, void)
	again := beginWith("a", "t1", 3, 1, 1, 5) // replaces the void turn, also its event 5
	noError(t, store.Append(ctx, again))
	same(t, "the turn that replaces it", findTurn(t, store, "a", "t1"), again.Begin.Begun)
	expectEvents(t, "the events of the turn that replaces it", store, again.Begin.Begun, 1, 5)
	if again.Begin.Begun.Fence <= begun.Fence {
		t.Errorf("its fence is %d, after %d", again.Begin.Begun.Fence, begun.Fence)
	}
	updateTurn(t, store, updateOf(again.Begin.Begun, 6))
}

func testBeginWithEntriesRefused(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	create(t, store, "busy", 1)
	running := begin(t, store, "busy", "t1")
	elsewhere := beginWith("a", "t9", 1, 1, 1)
	elsewhere.Begin.Turn.ConversationID = "busy"
	withUpdate := beginWith("busy", "t9", 1, 1, 1)
	withUpdate.Turns = []continuo.TurnUpdate{updateOf(running, 1)}
	for what, refused := range map[string]struct {
		batch continuo.Batch
		want  error
	}{
		"at the wrong place":                  {beginWith("a", "t9", 2, 1, 1), &continuo.ConflictError{Want: 3, Have: 2}},
		"at the wrong place, without entries": {beginWith("a", "t9", 2, 0), &continuo.ConflictError{Want: 3, Have: 2}},
		"beside a running turn":               {beginWith("busy", "t9", 1, 1, 1), &continuo.BusyError{Turn: running}},
		"beside a turn, at the wrong place":   {beginWith("busy", "t9", 0, 1, 1), &continuo.BusyError{Turn: running}},
		"with the id of a running turn":       {beginWith("busy", "t1", 1, 1, 1), continuo.ErrExists},
		"in an unknown conversation":          {beginWith("none", "t9", 0, 1, 1), continuo.ErrNotFound},
		"with events that go back":            {beginWith("a", "t9", 1, 1, 2, 1), continuo.ErrInvalid},
		"in another conversation":             {elsewhere, continuo.ErrInvalid},
		"with an update of a turn":            {withUpdate, continuo.ErrInvalid},
	} {
		refused.batch.Begin.Mode = continuo.ModeAgent
		if err := store.Append(ctx, refused.batch); verdict(err) != verdict(refused.want) {
			t.Errorf("%s: %v, want: %v", what, err, refused.want)
		}
		for _, id := range []string{"a", "busy"} {
			sameEntries(t, what+": the entries of "+id, readAll(t, store, id), entries(id, 1, 1))
			expectError(t, what+": the turn", second(store.Turn(ctx, id, "t9")), continuo.ErrNotFound)
			expectEvents(t, what+": its events", store, continuo.Turn{ConversationID: id, ID: "t9"})
			now, err := store.Conversation(ctx, id)
			noError(t, err)
			same(t, what+": the mode of "+id, now.ActiveMode, continuo.ModeChat)
		}
		same(t, what+": the running turn", findTurn(t, store, "busy", "t1"), running)
	}
}
