package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// testZombies has an owner that lost the lease try everything.
func testZombies(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 2)
	lost := begin(t, store, "a", "t1")
	taken, err := store.TakeTurn(ctx, lost, "two", long)
	noError(t, err)
	future := taken
	future.Fence++
	for what, turn := range map[string]continuo.Turn{"who lost the lease": lost, "whose lease is still to come": future} {
		end := updateOf(turn, 1)
		end.State, end.Lease, end.Mode, end.Agent = continuo.TurnFinished, -1, continuo.ModeRun, "thief"
		expectError(t, "an update by one "+what, second(store.UpdateTurn(ctx, end)), continuo.ErrLeaseLost)
		batch := continuo.Batch{ConversationID: "a", After: 2, Entries: entries("a", 3, 4), Turns: []continuo.TurnUpdate{end}, Receipts: []continuo.Receipt{{Key: "k"}}}
		expectError(t, "a batch by one "+what, store.Append(ctx, batch), continuo.ErrLeaseLost)
	}
	same(t, "the turn", findTurn(t, store, "a", "t1"), taken)
	expectEvents(t, "its events", store, taken)
	sameEntries(t, "the entries", readAll(t, store, "a"), entries("a", 1, 2))
	expectError(t, "the receipt", second(store.Receipt(ctx, "a", "k")), continuo.ErrNotFound)
	conversation, err := store.Conversation(ctx, "a")
	noError(t, err)
	if conversation.ActiveMode == continuo.ModeRun || conversation.ActiveAgent != "" {
		t.Error("who may not write has switched the mode or the agent")
	}
	updateTurn(t, store, updateOf(taken, 1))
	updateTurn(t, store, ending(taken, continuo.TurnFinished))
	ended := findTurn(t, store, "a", "t1")
	expectError(t, "an update after the end", second(store.UpdateTurn(ctx, updateOf(taken, 2))), continuo.ErrLeaseLost)
	expectError(t, "a second end", second(store.UpdateTurn(ctx, ending(taken, continuo.TurnFailed))), continuo.ErrLeaseLost)
	same(t, "the turn that has ended", findTurn(t, store, "a", "t1"), ended)
	taken.ID = "t2"
	expectError(t, "an update of an unknown turn", second(store.UpdateTurn(ctx, updateOf(taken))), continuo.ErrLeaseLost)
}

func testBatchTurns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	turn := begin(t, store, "a", "t1")
	first, last := updateOf(turn, 1, 2), updateOf(turn, 4)
	first.Lease, first.Mode, first.Agent = -1, continuo.ModeAgent, "writer"
	last.State, last.End = continuo.TurnFinished, continuo.TurnEnd{Usage: continuo.Usage{OutputTokens: 5}}
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: 1, Entries: entries("a", 2, 3), Turns: []continuo.TurnUpdate{first}}))
	now := findTurn(t, store, "a", "t1")
	same(t, "the newest event and whether the lease has ended", []any{now.LastEvent, now.LeaseExpired}, []any{int64(2), true})
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: 3, Entries: entries("a", 4, 4), Turns: []continuo.TurnUpdate{updateOf(turn, 3), last}}))
	want := now
	want.State, want.TurnEnd, want.LastEvent, want.LeaseExpired = continuo.TurnFinished, last.End, 4, false
	now = findTurn(t, store, "a", "t1")
	want.EndedAt = now.EndedAt
	same(t, "the turn", now, want)
	expectEvents(t, "its events", store, turn, 1, 2, 3, 4)
	sameEntries(t, "the entries", readAll(t, store, "a"), entries("a", 1, 4))
	conversation, err := store.Conversation(ctx, "a")
	noError(t, err)
	same(t, "the conversation's mode", conversation.ActiveMode, continuo.ModeAgent)
	same(t, "the conversation's agent", conversation.ActiveAgent, "writer")
}

// testSwitches has turns switch the mode and the agent of their conversation, separately and together.
func testSwitches(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for id, carryOut := range map[string]func(batch continuo.Batch, update continuo.TurnUpdate) error{
		"alone": func(batch continuo.Batch, update continuo.TurnUpdate) error {
			return errors.Join(second(store.UpdateTurn(ctx, update)), store.Append(ctx, batch))
		},
		"with entries": func(batch continuo.Batch, update continuo.TurnUpdate) error {
			batch.Turns = []continuo.TurnUpdate{update}
			return store.Append(ctx, batch)
		},
		"the first of two updates": func(batch continuo.Batch, update continuo.TurnUpdate) error {
			idle := update
			idle.Mode, idle.Agent = "", ""
			batch.Turns = []continuo.TurnUpdate{update, idle}
			return store.Append(ctx, batch)
		},
		"the second of two updates": func(batch continuo.Batch, update continuo.TurnUpdate) error {
			idle := update
			idle.Mode, idle.Agent = "", ""
			batch.Turns = []continuo.TurnUpdate{idle, update}
			return store.Append(ctx, batch)
		},
	} {
		create(t, store, id, 0)
		update := updateOf(begin(t, store, id, "t1"))
		want := []string{string(continuo.ModeChat), ""}
		for i, step := range []continuo.TurnUpdate{
			{},
			{Agent: "one"},
			{Mode: continuo.ModeAgent},
			{Mode: continuo.ModeRun, Agent: "two"},
			{Mode: continuo.ModeRun, Agent: "three"},
			{Mode: continuo.ModeChat, Agent: "three"},
			{Mode: continuo.ModeChat, Agent: "three"},
			{},
		} {
			want[0], want[1] = cmp.Or(string(step.Mode), want[0]), cmp.Or(step.Agent, want[1])
			update.Mode, update.Agent = step.Mode, step.Agent
			seq := int64(i)
			noError(t, carryOut(continuo.Batch{ConversationID: id, After: seq, Entries: entries(id, seq+1, seq+1)}, update))
			now, err := store.Conversation(ctx, id)
			noError(t, err)
			same(t, fmt.Sprintf("%s: mode and agent after step %d", id, i), []string{string(now.ActiveMode), now.ActiveAgent}, want)
		}
	}
}

func testBatchTurnsRefused(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	create(t, store, "b", 1)
	turn := begin(t, store, "a", "t1")
	updateTurn(t, store, updateOf(turn, 5))
	before := findTurn(t, store, "a", "t1")
	elsewhere, unknown := updateOf(begin(t, store, "b", "t1"), 1), updateOf(turn, 7)
	unknown.TurnID = "none"
	for what, refused := range map[string]struct {
		after   int64
		updates []continuo.TurnUpdate
		want    error
	}{
		"the wrong place":           {2, []continuo.TurnUpdate{updateOf(turn, 6)}, &continuo.ConflictError{Want: 3, Have: 2}},
		"a second update too many":  {1, []continuo.TurnUpdate{ending(turn, continuo.TurnFinished), updateOf(turn, 6)}, continuo.ErrLeaseLost},
		"an unknown turn":           {1, []continuo.TurnUpdate{updateOf(turn, 6), unknown}, continuo.ErrLeaseLost},
		"events that do not follow": {1, []continuo.TurnUpdate{updateOf(turn, 6), updateOf(turn, 6)}, continuo.ErrInvalid},
		"events that go back":       {1, []continuo.TurnUpdate{updateOf(turn, 8, 7)}, continuo.ErrInvalid},
		"another conversation":      {1, []continuo.TurnUpdate{updateOf(turn, 6), elsewhere}, continuo.ErrInvalid},
	} {
		err := store.Append(ctx, continuo.Batch{ConversationID: "a", After: refused.after, Entries: entries("a", refused.after+1, refused.after+1), Turns: refused.updates})
		if verdict(err) != verdict(refused.want) {
			t.Errorf("%s: %v, want: %v", what, err, refused.want)
		}
		same(t, what+": the turn", findTurn(t, store, "a", "t1"), before)
		expectEvents(t, what+": its events", store, turn, 5)
		sameEntries(t, what+": the entries", readAll(t, store, "a"), entries("a", 1, 1))
		expectEvents(t, what+": the other turn's events", store, continuo.Turn{ConversationID: "b", ID: "t1"})
	}
}

// testMixedUpdates has owners and others update turns concurrently and repeatedly: each must get its own
// answer.
func testMixedUpdates(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	const writers, rounds = 64, 4
	turns := make([]continuo.Turn, writers)
	for i := range turns {
		id := fmt.Sprint("c", i)
		create(t, store, id, 0)
		turns[i] = begin(t, store, id, "t1")
	}
	_, errs := atOnce(writers, func(i int) (any, error) {
		for round := range int64(rounds) {
			if err := mixedUpdate(ctx, store, turns[i], i, round); err != nil {
				return nil, fmt.Errorf("writer %d: %w", i, err)
			}
		}
		return nil, nil
	})
	noError(t, errors.Join(errs...))
	for i, turn := range turns {
		expectEvents(t, fmt.Sprint("events of writer ", i), store, turn, 1, 2, 3, 4)
		last := int64(0)
		if i%4 == 1 {
			last = rounds
		}
		sameEntries(t, turn.ConversationID, readAll(t, store, turn.ConversationID), entries(turn.ConversationID, 1, last))
	}
}

// mixedUpdate makes an update that must be refused and one that must not be.
func mixedUpdate(ctx context.Context, store maintenance.Store, turn continuo.Turn, i int, round int64) error {
	zombie := updateOf(turn, round+1)
	zombie.Fence--
	batch := continuo.Batch{ConversationID: turn.ConversationID, After: round, Entries: entries(turn.ConversationID, round+1, round+1)}
	switch i % 4 {
	case 0:
		if _, err := store.UpdateTurn(ctx, zombie); !errors.Is(err, continuo.ErrLeaseLost) {
			return fmt.Errorf("an update without the lease: %w", err)
		}
	case 1:
		batch.Turns = []continuo.TurnUpdate{updateOf(turn, round+1)}
		return store.Append(ctx, batch)
	case 2:
		batch.After, batch.Entries = 0, entries(turn.ConversationID, 1, 1)
		batch.Turns = []continuo.TurnUpdate{updateOf(turn, round+1), zombie}
		if err := store.Append(ctx, batch); !errors.Is(err, continuo.ErrLeaseLost) {
			return fmt.Errorf("a batch without the lease: %w", err)
		}
	default:
		if err := store.SignalTurn(ctx, turn.ConversationID, "none", continuo.TurnSignal{}); !errors.Is(err, continuo.ErrNotFound) {
			return fmt.Errorf("a signal to an unknown turn: %w", err)
		}
	}
	_, err := store.UpdateTurn(ctx, updateOf(turn, round+1))
	return err
}
