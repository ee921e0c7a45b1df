package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// turnTests is the part of the suite that is about turns. No test waits for a lease to end: a lease of no
// time has ended when it begins.
func turnTests() []test {
	return []test{
		{"a turn is found as it was started and ended", testTurn},
		{"what may not begin does not", testBeginRefused},
		{"a turn begins with entries and events", testBeginWithEntries},
		{"a turn that may not begin writes no entries", testBeginWithEntriesRefused},
		{"a turn begins with its conversation", testBeginCreates},
		{"a conversation that may not be created begins no turn", testBeginCreatesRefused},
		{"a key creates one conversation", testBeginCreatesOnce},
		{"an update of a turn stores blobs", testUpdateWithBlobs},
		{"of many turns at once one begins", testOneBegins},
		{"each lease has a higher fence", testFences},
		{"of many at once one takes a turn", testOneTakes},
		{"a lease ends and is renewed", testLeases},
		{"who lost the lease writes nothing", testZombies},
		{"entries and turns are committed together", testBatchTurns},
		{"a batch with a bad update writes nothing", testBatchTurnsRefused},
		{"a turn switches mode and agent", testSwitches},
		{"a void turn may begin again", testVoid},
		{"turns are listed page by page", testTurnList},
		{"running turns are listed, the first lease to end first", testRunningTurns},
		{"a deleted conversation has no turns", testDeletedTurns},
		{"turns are durable", testTurnsDurable},
		{"64 updates of turns at once do not harm each other", testMixedUpdates},
		{"events come back as they came", testEvents},
		{"events are read after any id", testEventsAfter},
		{"a page of events is bounded by bytes", testLargeEvents},
		{"events that do not follow are refused", testEventsRefused},
		{"signals reach the owner", testSignals},
		{"old events are removed, turns stay", testPrune},
	}
}

const long = time.Hour

// begin begins a turn of an idle conversation.
func begin(t *testing.T, store maintenance.Store, conversationID, id string) continuo.Turn {
	t.Helper()
	turn, err := BeginTurn(t.Context(), store, continuo.Turn{ID: id, ConversationID: conversationID, Owner: "one"}, long)
	noError(t, err)
	return turn
}

// updateOf makes an update by the owner of a turn that adds events.
func updateOf(turn continuo.Turn, events ...int64) continuo.TurnUpdate {
	update := continuo.TurnUpdate{ConversationID: turn.ConversationID, TurnID: turn.ID, Fence: turn.Fence}
	for _, id := range events {
		update.Events = append(update.Events, event(id))
	}
	return update
}

func event(id int64) continuo.TurnEvent {
	return continuo.TurnEvent{ID: id, Data: fmt.Appendf(nil, `{"event":%d}`, id)}
}

func ending(turn continuo.Turn, state continuo.TurnState) continuo.TurnUpdate {
	update := updateOf(turn)
	update.State = state
	return update
}

func updateTurn(t *testing.T, store maintenance.Store, update continuo.TurnUpdate) {
	t.Helper()
	noError(t, second(store.UpdateTurn(t.Context(), update)))
}

func findTurn(t *testing.T, store maintenance.Store, conversationID, id string) continuo.Turn {
	t.Helper()
	turn, err := store.Turn(t.Context(), conversationID, id)
	noError(t, err)
	return turn
}

func expectError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want: %v", what, err, want)
	}
}

func testTurn(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	asked := continuo.Turn{
		ID: "t1", ConversationID: "a", Owner: "one",
		TurnRequest: continuo.TurnRequest{Mode: continuo.ModeChat, AgentID: "agent", View: "view <&>", Model: "m", Resumes: "t0", Fingerprint: "f"},
		// Fields that the caller cannot set:
		State: continuo.TurnFinished, Fence: 99, LastEvent: 7, LeaseUntil: day, LeaseExpired: true, StartedAt: day, EndedAt: day,
		TurnEnd: continuo.TurnEnd{Reason: continuo.ReasonCancelled},
	}
	begun, err := BeginTurn(ctx, store, asked, long)
	noError(t, err)
	want := asked
	want.State, want.LastEvent, want.LeaseExpired, want.EndedAt, want.TurnEnd = continuo.TurnRunning, 0, false, time.Time{}, continuo.TurnEnd{}
	want.Fence, want.LeaseUntil, want.StartedAt = begun.Fence, begun.LeaseUntil, begun.StartedAt
	same(t, "the turn", begun, want)
	if begun.Fence < 1 || begun.Fence == 99 || begun.StartedAt.Equal(day) || begun.StartedAt.IsZero() || !begun.LeaseUntil.After(begun.StartedAt) {
		t.Errorf("fence %d, start %v and end of the lease %v are the store's to set", begun.Fence, begun.StartedAt, begun.LeaseUntil)
	}
	same(t, "the turn, found", findTurn(t, store, "a", "t1"), begun)
	end := updateOf(begun, 1, 4)
	end.State, end.End = continuo.TurnFailed, continuo.TurnEnd{Reason: continuo.ReasonCancelled, Usage: continuo.Usage{InputTokens: 3, OutputTokens: 4}}
	updateTurn(t, store, end)
	ended := findTurn(t, store, "a", "t1")
	if ended.EndedAt.Before(begun.StartedAt) {
		t.Errorf("it ended at %v, before it began at %v", ended.EndedAt, begun.StartedAt)
	}
	want.State, want.TurnEnd, want.LastEvent, want.EndedAt = continuo.TurnFailed, end.End, 4, ended.EndedAt
	want.LeaseUntil = time.Time{}
	same(t, "the turn, ended", ended, want)
	expectError(t, "an unknown turn", second(store.Turn(ctx, "a", "t2")), continuo.ErrNotFound)
	expectError(t, "a turn of another conversation", second(store.Turn(ctx, "b", "t1")), continuo.ErrNotFound)
}

func testBeginRefused(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	create(t, store, "b", 0)
	refused := func(what, conversationID, id string, want error) {
		t.Helper()
		_, err := BeginTurn(ctx, store, continuo.Turn{ID: id, ConversationID: conversationID, Owner: "two"}, long)
		expectError(t, what, err, want)
	}
	refused("in an unknown conversation", "none", "t1", continuo.ErrNotFound)
	finished := begin(t, store, "a", "t1")
	updateTurn(t, store, ending(finished, continuo.TurnFinished))
	refused("with the id of a finished turn", "a", "t1", continuo.ErrExists)
	running, err := BeginTurn(ctx, store, continuo.Turn{ID: "t2", ConversationID: "a", Owner: "one"}, 0)
	noError(t, err)
	refused("with the id of the running turn", "a", "t2", continuo.ErrExists)
	refused("with the id of a finished turn, beside a running one", "a", "t1", continuo.ErrExists)
	_, err = BeginTurn(ctx, store, continuo.Turn{ID: "t3", ConversationID: "a"}, long)
	expectError(t, "beside a turn whose lease has ended", err, continuo.ErrBusy)
	if busy := (*continuo.BusyError)(nil); !errors.As(err, &busy) {
		t.Errorf("beside a running turn: %v, want a *BusyError", err)
	} else {
		same(t, "the turn that is in the way", busy.Turn, running)
	}
	begin(t, store, "b", "t1") // turns belong to one conversation
	updateTurn(t, store, ending(running, continuo.TurnFailed))
	begin(t, store, "a", "t3")
}

// testOneBegins has two stores' callers begin turns of one conversation, several times.
func testOneBegins(t *testing.T, opener Opener) {
	stores := []maintenance.Store{open(t, opener), open(t, opener)}
	create(t, stores[0], "a", 0)
	const callers, rounds = 16, 4
	for round := range rounds {
		won, errs := atOnce(callers, func(i int) (continuo.Turn, error) {
			return BeginTurn(t.Context(), stores[i%2], continuo.Turn{ID: fmt.Sprint("t", round, "_", i), ConversationID: "a"}, long)
		})
		if len(won) != 1 {
			t.Fatalf("%d turns began", len(won))
		}
		for _, err := range errs {
			var busy *continuo.BusyError
			if !errors.As(err, &busy) || busy.Turn.ID != won[0].ID {
				t.Errorf("%v, want that it is busy with %s", err, won[0].ID)
			}
		}
		updateTurn(t, stores[1], ending(won[0], continuo.TurnFinished))
	}
}

// atOnce makes concurrent calls and returns their results.
func atOnce[T any](calls int, call func(i int) (T, error)) (results []T, errs []error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for i := range calls {
		running.Go(func() {
			result, err := call(i)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else {
				results = append(results, result)
			}
		})
	}
	running.Wait()
	return results, errs
}

func testFences(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	last := int64(0)
	higher := func(what string, turn continuo.Turn) continuo.Turn {
		t.Helper()
		if turn.Fence <= last {
			t.Errorf("%s has the fence %d, after %d", what, turn.Fence, last)
		}
		last = turn.Fence
		return turn
	}
	first := higher("the first turn", begin(t, store, "a", "t9"))
	updateTurn(t, store, ending(first, continuo.TurnFinished))
	void := higher("the second", begin(t, store, "a", "t2"))
	taken, err := store.TakeTurn(ctx, void, "two", long)
	noError(t, err)
	taken = higher("the second, taken", taken)
	updateTurn(t, store, ending(taken, continuo.TurnVoid))
	again := higher("the second, begun again", begin(t, store, "a", "t2"))
	updateTurn(t, store, ending(again, continuo.TurnVoid))
	higher("one after a void turn", begin(t, store, "a", "t1"))
}

func testOneTakes(t *testing.T, opener Opener) {
	stores, ctx := []maintenance.Store{open(t, opener), open(t, opener)}, t.Context()
	create(t, stores[0], "a", 0)
	seen := begin(t, stores[0], "a", "t1")
	updateTurn(t, stores[0], updateOf(seen, 1, 2))
	const callers = 16
	won, errs := atOnce(callers, func(i int) (continuo.Turn, error) {
		return stores[i%2].TakeTurn(ctx, seen, fmt.Sprint("taker", i), long)
	})
	if len(won) != 1 {
		t.Fatalf("%d have taken the turn", len(won))
	}
	for _, err := range errs {
		expectError(t, "another one", err, continuo.ErrLeaseLost)
	}
	want := seen
	want.Owner, want.Fence, want.LastEvent, want.LeaseUntil = won[0].Owner, won[0].Fence, 2, won[0].LeaseUntil
	same(t, "the turn, taken", won[0], want)
	same(t, "the turn, found", findTurn(t, stores[0], "a", "t1"), want)
	expectEvents(t, "its events", stores[0], won[0], 1, 2)
	updateTurn(t, stores[0], ending(won[0], continuo.TurnFinished))
	expectError(t, "taking a turn that has ended", second(stores[0].TakeTurn(ctx, won[0], "x", long)), continuo.ErrLeaseLost)
	won[0].ID = "t2"
	expectError(t, "taking an unknown turn", second(stores[0].TakeTurn(ctx, won[0], "x", long)), continuo.ErrLeaseLost)
}

func testLeases(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	turn, err := BeginTurn(ctx, store, continuo.Turn{ID: "t1", ConversationID: "a"}, 0)
	noError(t, err)
	until := turn.LeaseUntil
	expect := func(what string, expired, renewed bool) {
		t.Helper()
		now := findTurn(t, store, "a", "t1")
		if now.LeaseExpired != expired {
			t.Errorf("%s: expired is %v, want %v", what, now.LeaseExpired, expired)
		}
		if now.LeaseUntil.Equal(until) == renewed {
			t.Errorf("%s: it lasts until %v, and before until %v", what, now.LeaseUntil, until)
		}
		until = now.LeaseUntil
	}
	renew := func(lease time.Duration) {
		t.Helper()
		update := updateOf(turn)
		update.Lease = lease
		updateTurn(t, store, update)
	}
	if !turn.LeaseExpired {
		t.Error("a lease of no time lasts")
	}
	updateTurn(t, store, updateOf(turn, 1)) // no other owner has taken it
	expect("a lease of no time", true, false)
	renew(long)
	expect("after it was renewed", false, true)
	renew(0)
	expect("after an update that leaves it", false, false)
	renew(long + time.Minute)
	expect("after it was renewed again", false, true)
	renew(-1)
	expect("after it was given back", true, true)
	if !until.IsZero() {
		t.Errorf("a lease that was given back lasts until %v", until)
	}
	taken, err := store.TakeTurn(ctx, turn, "two", long)
	noError(t, err)
	turn = taken
	expect("after it was taken", false, true)
	back := updateOf(turn)
	back.Lease = -1
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", Entries: entries("a", 1, 1), Turns: []continuo.TurnUpdate{back}}))
	expect("after it was given back with an entry", true, true)
	if !until.IsZero() {
		t.Errorf("a lease that was given back with an entry lasts until %v", until)
	}
	updateTurn(t, store, ending(turn, continuo.TurnFinished))
	expect("after the end", false, false)
}

func testVoid(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	void, err := BeginTurn(ctx, store, continuo.Turn{ID: "t1", ConversationID: "a", TurnRequest: continuo.TurnRequest{Model: "old"}}, long)
	noError(t, err)
	noError(t, store.SignalTurn(ctx, "a", "t1", continuo.TurnSignal{Kind: continuo.SignalCancel}))
	end := updateOf(void, 5, 6)
	end.State, end.End = continuo.TurnVoid, continuo.TurnEnd{Reason: continuo.ReasonCancelled}
	updateTurn(t, store, end)
	if now := findTurn(t, store, "a", "t1"); now.State != continuo.TurnVoid || now.EndedAt.IsZero() {
		t.Errorf("the void turn is found as %+v", now)
	}
	expectError(t, "a signal to it", store.SignalTurn(ctx, "a", "t1", continuo.TurnSignal{Kind: continuo.SignalCancel}), continuo.ErrNotRunning)
	again, err := BeginTurn(ctx, store, continuo.Turn{ID: "t1", ConversationID: "a", Owner: "two", TurnRequest: continuo.TurnRequest{View: "new"}}, long)
	noError(t, err)
	same(t, "the turn that replaces it", again, continuo.Turn{
		ID: "t1", ConversationID: "a", State: continuo.TurnRunning, Owner: "two", Fence: again.Fence, StartedAt: again.StartedAt, LeaseUntil: again.LeaseUntil,
		TurnRequest: continuo.TurnRequest{View: "new"},
	})
	expectEvents(t, "its events", store, again)
	signals, err := store.UpdateTurn(ctx, updateOf(again, 1))
	noError(t, err)
	same(t, "its signals", len(signals), 0)
	expectEvents(t, "its own events", store, again, 1)
	expectError(t, "an update by the void turn's owner", second(store.UpdateTurn(ctx, updateOf(void, 7))), continuo.ErrLeaseLost)
}
