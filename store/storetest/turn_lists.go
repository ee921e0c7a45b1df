package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// listTurns reads all pages.
func listTurns(t *testing.T, store maintenance.Store, conversationID string, limit int) []continuo.Turn {
	t.Helper()
	var all []continuo.Turn
	query := continuo.TurnQuery{ConversationID: conversationID, Limit: limit}
	for {
		page, err := store.Turns(t.Context(), query)
		noError(t, err)
		all = append(all, page...)
		if len(page) > limit || len(all) > 99 {
			t.Fatalf("a page of %d has %d turns, all until there have %d", limit, len(page), len(all))
		}
		if len(page) < limit {
			return all
		}
		last := page[len(page)-1]
		query.Before = continuo.TurnCursor{StartedAt: last.StartedAt, ID: last.ID}
	}
}

func testTurnList(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	create(t, store, "b", 0)
	begin(t, store, "b", "t3")
	var want []continuo.Turn
	for i := range 7 { // the ids ascend too, in case the clock does not advance
		turn := begin(t, store, "a", fmt.Sprint("t", i))
		switch i {
		case 2, 5:
			updateTurn(t, store, ending(turn, continuo.TurnVoid))
			continue
		case 3:
			updateTurn(t, store, ending(turn, continuo.TurnFailed))
		case 6: // runs
		default:
			updateTurn(t, store, ending(turn, continuo.TurnFinished))
		}
		want = append(want, findTurn(t, store, "a", turn.ID))
	}
	slices.Reverse(want)
	for limit := 1; limit <= len(want)+1; limit++ {
		same(t, fmt.Sprint("pages of ", limit), listTurns(t, store, "a", limit), want)
	}
	same(t, "turns of an unknown conversation", len(listTurns(t, store, "none", 1)), 0)
	expectError(t, "a limit of 0", second(store.Turns(ctx, continuo.TurnQuery{ConversationID: "a"})), continuo.ErrInvalid)
}

func testRunningTurns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	leases := map[string]time.Duration{"a": 3 * long, "b": -long, "c": long, "d": 2 * long, "e": 0}
	for id, lease := range leases {
		create(t, store, id, 0)
		turn, err := BeginTurn(ctx, store, continuo.Turn{ID: "t_" + id, ConversationID: id}, lease)
		noError(t, err)
		if id == "d" {
			update := updateOf(turn)
			update.Lease = 4 * long
			updateTurn(t, store, update)
		}
	}
	expect := func(limit int, want ...string) {
		t.Helper()
		running, err := store.RunningTurns(ctx, limit)
		noError(t, err)
		var got []string
		for _, turn := range running {
			got = append(got, turn.ConversationID)
			same(t, turn.ID, turn, findTurn(t, store, turn.ConversationID, turn.ID))
		}
		same(t, fmt.Sprintf("the first %d", limit), got, want)
	}
	expect(9, "b", "e", "c", "a", "d")
	expect(2, "b", "e")
	updateTurn(t, store, ending(findTurn(t, store, "b", "t_b"), continuo.TurnVoid))
	noError(t, store.Delete(ctx, "e"))
	expect(9, "c", "a", "d")
	expectError(t, "a limit of 0", second(store.RunningTurns(ctx, 0)), continuo.ErrInvalid)
}

// testDeletedTurns deletes a conversation that a fork begins with, and one without forks.
func testDeletedTurns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 2)
	create(t, store, "b", 2)
	noError(t, store.Create(ctx, forkOf("f", continuo.Segment{ConversationID: "a", Through: 2}), nil))
	for _, id := range []string{"a", "b"} {
		old := begin(t, store, id, "t1")
		end := updateOf(old, 1)
		end.State = continuo.TurnFinished
		updateTurn(t, store, end)
		turn := begin(t, store, id, "t2")
		updateTurn(t, store, updateOf(turn, 1, 2))
		noError(t, store.SignalTurn(ctx, id, "t2", continuo.TurnSignal{Kind: continuo.SignalCancel}))
		noError(t, store.Delete(ctx, id))
		expectError(t, "Turn", second(store.Turn(ctx, id, "t2")), continuo.ErrNotFound)
		expectError(t, "UpdateTurn", second(store.UpdateTurn(ctx, updateOf(turn, 3))), continuo.ErrLeaseLost)
		expectError(t, "TakeTurn", second(store.TakeTurn(ctx, turn, "two", long)), continuo.ErrLeaseLost)
		expectError(t, "SignalTurn", store.SignalTurn(ctx, id, "t2", continuo.TurnSignal{Kind: continuo.SignalCancel}), continuo.ErrNotFound)
		expectError(t, "BeginTurn", second(BeginTurn(ctx, store, continuo.Turn{ID: "t3", ConversationID: id}, long)), continuo.ErrNotFound)
		batch := continuo.Batch{ConversationID: id, After: 2, Entries: entries(id, 3, 3), Turns: []continuo.TurnUpdate{updateOf(turn, 3)}}
		expectError(t, "Append", store.Append(ctx, batch), continuo.ErrNotFound)
		same(t, "its turns", len(listTurns(t, store, id, 9)), 0)
		expectEvents(t, "its events", store, turn)
	}
	running, err := store.RunningTurns(ctx, 9)
	noError(t, err)
	same(t, "running turns", len(running), 0)
	pruned, err := store.PruneTurnEvents(ctx, time.Now().Add(24*time.Hour), 9)
	noError(t, err)
	same(t, "turns whose events are left", pruned, 0)
}

func testTurnsDurable(t *testing.T, opener Opener) {
	store, ctx := opener(t), t.Context()
	create(t, store, "a", 0)
	old := begin(t, store, "a", "t1")
	updateTurn(t, store, ending(old, continuo.TurnFinished))
	turn := begin(t, store, "a", "t2")
	noError(t, store.SignalTurn(ctx, "a", "t2", continuo.TurnSignal{Kind: continuo.SignalInterrupt}))
	updateTurn(t, store, updateOf(turn, 1, 2))
	want := listTurns(t, store, "a", 9)
	check := func(store maintenance.Store) {
		t.Helper()
		same(t, "turns", listTurns(t, store, "a", 9), want)
		expectEvents(t, "events", store, turn, 1, 2)
		signals, err := store.UpdateTurn(ctx, updateOf(turn))
		noError(t, err)
		same(t, "signals", signals, []continuo.TurnSignal{{Kind: continuo.SignalInterrupt}})
		expectError(t, "another turn", second(BeginTurn(ctx, store, continuo.Turn{ID: "t3", ConversationID: "a"}, long)), continuo.ErrBusy)
	}
	beside := opener(t)
	check(beside)
	closeStore(t, store)
	check(beside)
	closeStore(t, beside)
	check(open(t, opener))
}
