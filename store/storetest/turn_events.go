package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

func readEvents(t *testing.T, store maintenance.Store, turn continuo.Turn) []continuo.TurnEvent {
	t.Helper()
	events, err := store.TurnEvents(t.Context(), turn.ConversationID, turn.ID, 0, 99)
	noError(t, err)
	return events
}

func expectEvents(t *testing.T, what string, store maintenance.Store, turn continuo.Turn, ids ...int64) {
	t.Helper()
	var got []int64
	for _, e := range readEvents(t, store, turn) {
		got = append(got, e.ID)
		same(t, what, string(e.Data), string(event(e.ID).Data))
	}
	same(t, what, got, ids)
}

func testEvents(t *testing.T, opener Opener) {
	store := open(t, opener)
	create(t, store, "a", 0)
	turn := begin(t, store, "a", "t1")
	var want []continuo.TurnEvent
	update := updateOf(turn)
	for i, data := range []string{
		`{}`, `{"b": 1.0,  "a":2}`, `{"html":"<a href='x'>&amp;</a>"}`, "{\n\t\"lines\": [\r\n]}", `{"a":1,"a":2}`, `{"n":1e400,"big":123456789012345678901234567890}`,
		"{\"u\":\"\u2028 \U0001f600 \x7f\",\"e\":\"\\u2028\\ud800\\u0000\"}", `{"nested":[[[{"x":[]}]]],"},2,{":"]"}`,
	} {
		update.Events = append(update.Events, continuo.TurnEvent{ID: int64(1)<<(7*i) + 2, Data: json.RawMessage(data)})
	}
	want = append(want, update.Events...)
	updateTurn(t, store, update)
	same(t, "the events", readEvents(t, store, turn), want)
	for i := range update.Events { // the caller may reuse them
		update.Events[i] = continuo.TurnEvent{}
	}
	same(t, "the events", readEvents(t, store, turn), want)
	same(t, "the newest event", findTurn(t, store, "a", "t1").LastEvent, want[len(want)-1].ID)
}

// testEventsAfter reads after each id, whether it is an event's or between two.
func testEventsAfter(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	other := begin(t, store, "a", "t0")
	updateTurn(t, store, updateOf(other, 1, 2, 30))
	updateTurn(t, store, ending(other, continuo.TurnFinished))
	turn := begin(t, store, "a", "t1")
	var all []continuo.TurnEvent
	for _, ids := range [][]int64{{2}, {3, 5, 6}, {7}, {9, 12}, {13, 14, 15, 16}} {
		update := updateOf(turn, ids...)
		updateTurn(t, store, update)
		all = append(all, update.Events...)
	}
	for after := int64(0); after <= 17; after++ {
		want := all
		for len(want) > 0 && want[0].ID <= after {
			want = want[1:]
		}
		for limit := 1; limit <= len(all)+1; limit++ {
			what := fmt.Sprintf("%d events after %d", limit, after)
			got, err := store.TurnEvents(ctx, "a", "t1", after, limit)
			noError(t, err)
			if len(got) > len(want) || len(got) < min(limit, len(want)) {
				t.Errorf("%s are %d", what, len(got))
				continue
			}
			for i := range got {
				same(t, what, got[i], want[i])
			}
		}
	}
	expectEvents(t, "events of an unknown turn", store, continuo.Turn{ConversationID: "a", ID: "t2"})
	expectEvents(t, "events in an unknown conversation", store, continuo.Turn{ConversationID: "b", ID: "t1"})
	expectError(t, "a limit of 0", second(store.TurnEvents(ctx, "a", "t1", 0, 0)), continuo.ErrInvalid)
}

func testEventsRefused(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	turn := begin(t, store, "a", "t1")
	updateTurn(t, store, updateOf(turn, 1, 5))
	before := findTurn(t, store, "a", "t1")
	bad := map[string]continuo.TurnUpdate{
		"an id that there is":   updateOf(turn, 5),
		"an id between":         updateOf(turn, 3, 6),
		"an id twice":           updateOf(turn, 6, 6),
		"an id that goes back":  updateOf(turn, 7, 6),
		"no id":                 updateOf(turn, 0, 6),
		"an id below 0":         updateOf(turn, -1),
		"a state that is none":  ending(turn, "gone"),
		"the state that it has": ending(turn, continuo.TurnRunning),
	}
	for _, data := range []string{"", "null", "[1]", `"x"`, "{", "{}, 9, {}", " {}", "{}\n", "{'a':1}"} {
		update := updateOf(turn, 6, 7)
		update.Events[1].Data = json.RawMessage(data)
		bad[fmt.Sprintf("the data %q", data)] = update
	}
	for what, update := range bad {
		update.Lease = -1
		expectError(t, what, second(store.UpdateTurn(ctx, update)), continuo.ErrInvalid)
		same(t, "the turn after "+what, findTurn(t, store, "a", "t1"), before)
		expectEvents(t, "its events after "+what, store, turn, 1, 5)
	}
	updateTurn(t, store, updateOf(turn, 6))
}

func testSignals(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	turn := begin(t, store, "a", "t1")
	sent := []continuo.TurnSignal{
		{Kind: continuo.SignalAllow, ToolCallID: "call_1"},
		{Kind: continuo.SignalDeny, ToolCallID: "call_2", Reason: "<no> & \"no\""},
		{Kind: continuo.SignalInterrupt},
		{Kind: continuo.SignalInterrupt},
	}
	expect := func(what string, owner continuo.Turn, seen int, want []continuo.TurnSignal) {
		t.Helper()
		update := updateOf(owner)
		update.SignalsSeen = seen
		got, err := store.UpdateTurn(ctx, update)
		noError(t, err)
		same(t, what, append([]continuo.TurnSignal{}, got...), append([]continuo.TurnSignal{}, want...))
	}
	expect("before there are any", turn, 0, nil)
	for i, signal := range sent {
		noError(t, store.SignalTurn(ctx, "a", "t1", signal))
		expect("one that is new", turn, i, sent[i:i+1])
	}
	for seen := range sent {
		expect(fmt.Sprintf("after %d", seen), turn, seen, sent[seen:])
	}
	expect("after all", turn, len(sent), nil)
	expect("after more than there are", turn, len(sent)+1, nil)
	taken, err := store.TakeTurn(ctx, turn, "two", long)
	noError(t, err)
	expect("of the new owner", taken, 0, sent)
	end := ending(taken, continuo.TurnFinished)
	end.SignalsSeen = 3
	last, err := store.UpdateTurn(ctx, end)
	noError(t, err)
	same(t, "at the end", last, sent[3:])
	expectError(t, "after the end", store.SignalTurn(ctx, "a", "t1", sent[0]), continuo.ErrNotRunning)
	expectError(t, "to an unknown turn", store.SignalTurn(ctx, "a", "t2", sent[0]), continuo.ErrNotFound)
	expectError(t, "in an unknown conversation", store.SignalTurn(ctx, "b", "t1", sent[0]), continuo.ErrNotFound)
	expect("of another turn", begin(t, store, "a", "t2"), 0, nil)
}

func testPrune(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	create(t, store, "b", 0)
	ended := map[string]continuo.Turn{}
	for i, state := range []continuo.TurnState{continuo.TurnFinished, continuo.TurnFailed, continuo.TurnVoid} {
		turn := begin(t, store, "a", fmt.Sprint("t", i))
		updateTurn(t, store, updateOf(turn, 1, 2))
		updateTurn(t, store, ending(turn, state))
		ended[turn.ID] = findTurn(t, store, "a", turn.ID)
	}
	updateTurn(t, store, ending(begin(t, store, "a", "none"), continuo.TurnFinished)) // without events
	running := begin(t, store, "b", "t0")
	updateTurn(t, store, updateOf(running, 1, 2))
	prune := func(before time.Time, limit, want int) {
		t.Helper()
		pruned, err := store.PruneTurnEvents(ctx, before, limit)
		noError(t, err)
		same(t, fmt.Sprintf("the turns pruned, at most %d", limit), pruned, want)
	}
	prune(ended["t0"].EndedAt, 9, 0)
	for id, turn := range ended {
		same(t, id, findTurn(t, store, "a", id), turn)
		expectEvents(t, "events of "+id, store, turn, 1, 2)
	}
	afterAll := ended["t2"].EndedAt.Add(time.Nanosecond)
	prune(afterAll, 2, 2)
	prune(afterAll, 2, 1)
	prune(afterAll.Add(long), 2, 0)
	for id, turn := range ended {
		turn.LastEvent = 0
		same(t, id, findTurn(t, store, "a", id), turn)
		expectEvents(t, "events of "+id, store, turn)
	}
	expectEvents(t, "events of the running turn", store, running, 1, 2)
	sameEntries(t, "the entries", readAll(t, store, "a"), entries("a", 1, 1))
	updateTurn(t, store, updateOf(running, 3))
	expectError(t, "a limit of 0", second(store.PruneTurnEvents(ctx, afterAll, 0)), continuo.ErrInvalid)
}

// testLargeEvents: a page is bounded by bytes, and successive pages give every event.
func testLargeEvents(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	turn := begin(t, store, "a", "t1")
	const size, number = 100 << 10, 12
	for id := int64(1); id <= number; id++ {
		update := updateOf(turn, id)
		update.Events[0].Data = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", size))
		updateTurn(t, store, update)
	}
	for after := int64(0); after < number; {
		page, err := store.TurnEvents(ctx, "a", "t1", after, 99)
		noError(t, err)
		if len(page) == 0 || len(page) > 3 {
			t.Fatalf("a page after %d has %d events of 100 KiB, want 1 to 3", after, len(page))
		}
		for _, event := range page {
			after++
			same(t, "the next id", event.ID, after)
		}
	}
}
