package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// charge is what one request of a user used.
func charge(key, user, day, model string, tokens int64) continuo.Spending {
	return continuo.Spending{
		ProjectID: "p", KeyID: key, UserID: user, Day: day, Provider: "v", Model: model, Spent: continuo.Spent{
			Requests: 1, InputTokens: tokens, CachedTokens: 3, CacheWriteTokens: 4, OutputTokens: 5, ReasoningTokens: 2, CostNano: 10 * tokens, Priced: 1,
		},
	}
}

func times(s continuo.Spending, count int64) continuo.Spending {
	one := s.Spent
	for range count - 1 {
		s.Add(one)
	}
	return s
}

func testSpending(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	spent := func(query continuo.SpendingQuery, want ...continuo.Spending) {
		t.Helper()
		got, err := store.Spent(ctx, query)
		noError(t, err)
		same(t, fmt.Sprintf("what %+v selects", query), got, want)
	}
	spent(continuo.SpendingQuery{})
	ada1, ada2 := charge("k1", "ada", "2026-03-01", "m", 100), charge("k1", "ada", "2026-03-02", "m", 7)
	bob, nobody := charge("k2", "bob", "2026-03-01", "m", 1), charge("", "", "2026-03-01", "n", 30)
	nobody.CostNano, nobody.Priced = 0, 0
	other := charge("k1", "ada", "2026-03-01", "m", 1000)
	other.ProjectID = "q"
	noError(t, store.Charge(ctx, nil))
	noError(t, store.Charge(ctx, []continuo.Spending{ada1, bob, ada1, nobody}))
	noError(t, store.Charge(ctx, []continuo.Spending{ada2, other}))
	noError(t, store.Charge(ctx, []continuo.Spending{ada1}))
	all := []continuo.SpendingGroup{continuo.SpendingByDay, continuo.SpendingByKey, continuo.SpendingByUser, continuo.SpendingByModel}
	spent(continuo.SpendingQuery{By: all}, nobody, times(ada1, 3), bob, ada2, other)
	spent(continuo.SpendingQuery{ProjectID: "p", By: all, From: "2026-03-02"}, ada2)
	spent(continuo.SpendingQuery{ProjectID: "p", By: all, To: "2026-03-01"}, nobody, times(ada1, 3), bob)
	spent(continuo.SpendingQuery{ProjectID: "p", By: all, KeyID: new("k2")}, bob)
	spent(continuo.SpendingQuery{ProjectID: "p", By: all, KeyID: new("")}, nobody)
	spent(continuo.SpendingQuery{ProjectID: "p", By: all, UserID: new("ada"), From: "2026-03-01", To: "2026-03-01"}, times(ada1, 3))
	spent(continuo.SpendingQuery{ProjectID: "p", By: all, UserID: new("")}, nobody)
	byModel := func(provider, model string, of ...continuo.Spending) continuo.Spending {
		sum := continuo.Spending{ProjectID: "p", Provider: provider, Model: model}
		for _, one := range of {
			sum.Add(one.Spent)
		}
		return sum
	}
	spent(continuo.SpendingQuery{ProjectID: "p", By: []continuo.SpendingGroup{continuo.SpendingByModel}},
		byModel("v", "m", times(ada1, 3), ada2, bob), byModel("v", "n", nobody))
	spent(continuo.SpendingQuery{ProjectID: "p"}, byModel("", "", times(ada1, 3), ada2, bob, nobody))
	bad := ada1
	bad.Model = "a\x00b"
	expectError(t, "a charge that cannot be stored", store.Charge(ctx, []continuo.Spending{ada1, bad}), continuo.ErrInvalid)
	spent(continuo.SpendingQuery{ProjectID: "p", By: all, KeyID: new("k1"), To: "2026-03-01"}, times(ada1, 3))
}

// testSpendingStays charges turns: what is refused is not charged, and what was charged stays when the conversation goes.
func testSpendingStays(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	turn := begin(t, store, "a", "t1")
	one := charge("k1", "ada", "2026-03-01", "m", 100)
	spent := func(what string, count int64) {
		t.Helper()
		got, err := store.Spent(ctx, continuo.SpendingQuery{By: []continuo.SpendingGroup{
			continuo.SpendingByKey, continuo.SpendingByDay, continuo.SpendingByUser, continuo.SpendingByModel,
		}})
		noError(t, err)
		same(t, what, got, []continuo.Spending{times(one, count)})
	}
	update := updateOf(turn, 1)
	update.Charges = []continuo.Spending{one, one}
	updateTurn(t, store, update)
	spent("an update", 2)
	expectError(t, "the same update again", second(store.UpdateTurn(ctx, update)), continuo.ErrInvalid)
	spent("a refused update", 2)
	last := updateOf(turn, 3)
	last.State, last.Charges = continuo.TurnFinished, []continuo.Spending{one}
	stale := continuo.Batch{ConversationID: "a", After: 0, Entries: entries("a", 1, 1), Turns: []continuo.TurnUpdate{last}}
	if conflict := new(continuo.ConflictError); !errors.As(store.Append(ctx, stale), &conflict) {
		t.Error("a batch that lost the race was not refused")
	}
	spent("a refused batch", 2)
	middle := updateOf(turn, 2)
	middle.Charges = []continuo.Spending{one}
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: 1, Entries: entries("a", 2, 2), Turns: []continuo.TurnUpdate{middle, last}}))
	spent("a batch", 4)
	finished, err := store.FinishedTurns(ctx, continuo.FeedQuery{Limit: 10})
	noError(t, err)
	noError(t, store.Delete(ctx, "a"))
	spent("the conversation is deleted", 4)
	left, err := store.FinishedTurns(ctx, continuo.FeedQuery{Limit: 10})
	noError(t, err)
	same(t, "the turns that ended, after the deletion", left, finished)
	if len(left) != 1 || left[0].TurnID != "t1" {
		t.Errorf("turns that ended: %+v", left)
	}
}

func testFinishedTurns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	end := func(id, turnID, key string, state continuo.TurnState, after int64) continuo.Turn {
		t.Helper()
		request := continuo.Turn{ID: turnID, ConversationID: id, TurnRequest: continuo.TurnRequest{KeyID: key}, Owner: "one"}
		begin := &continuo.TurnBegin{Turn: request, Lease: long}
		noError(t, store.Append(ctx, continuo.Batch{ConversationID: id, After: after, Begin: begin}))
		updateTurn(t, store, ending(begin.Begun, state))
		return findTurn(t, store, id, turnID)
	}
	last := func(want int64) {
		t.Helper()
		got, err := store.LastFinished(ctx)
		noError(t, err)
		same(t, "the last position", got, want)
	}
	last(0)
	_, err := store.FinishedTurns(ctx, continuo.FeedQuery{})
	expectError(t, "a page of nothing", err, continuo.ErrInvalid)
	create(t, store, "a", 1)
	ada := conversation("b")
	ada.UserID = "ada"
	noError(t, store.Create(ctx, ada, nil))
	other := conversation("c")
	other.ProjectID = "q"
	noError(t, store.Create(ctx, other, nil))
	turns := []continuo.Turn{
		end("a", "t1", "k1", continuo.TurnFinished, 1), end("b", "t2", "", continuo.TurnFailed, 0), end("c", "t3", "k2", continuo.TurnFinished, 0),
	}
	end("a", "t4", "k1", continuo.TurnVoid, 1)
	turns = append(turns, end("a", "t5", "k1", continuo.TurnFailed, 1))
	read := func(query continuo.FeedQuery, want ...int) (position int64) {
		t.Helper()
		query.Limit = max(query.Limit, 1)
		var got []continuo.FinishedTurn
		for {
			page, err := store.FinishedTurns(ctx, query)
			noError(t, err)
			if len(page) == 0 {
				break
			}
			got, query.After = append(got, page...), page[len(page)-1].Position
		}
		if len(got) != len(want) {
			t.Fatalf("%+v finds %+v, want %v", query, got, want)
		}
		for i, at := range want {
			turn, finished := turns[at], got[i]
			if finished.Position <= position {
				t.Errorf("position %d after %d", finished.Position, position)
			}
			position = finished.Position
			same(t, "the turn", finished, continuo.FinishedTurn{
				Position: position, ProjectID: map[string]string{"a": "p", "b": "p", "c": "q"}[turn.ConversationID], ConversationID: turn.ConversationID, TurnID: turn.ID,
				UserID: map[string]string{"b": "ada"}[turn.ConversationID], KeyID: turn.KeyID, State: turn.State, EndedAt: turn.EndedAt, TurnEnd: turn.TurnEnd,
			})
		}
		return position
	}
	last(read(continuo.FeedQuery{}, 0, 1, 2, 3))
	read(continuo.FeedQuery{ProjectID: "p", Limit: 2}, 0, 1, 3)
	read(continuo.FeedQuery{ProjectID: "q"}, 2)
	newest := read(continuo.FeedQuery{ProjectID: "p", UserID: "ada"}, 1)
	read(continuo.FeedQuery{ProjectID: "p", After: newest}, 3)
}

// testFinishedAtOnce ends turns from two stores while a reader follows: it gets each of them, in an order that a later reader
// finds again.
func testFinishedAtOnce(t *testing.T, opener Opener) {
	const writers, each = 8, 12
	stores := []continuo.Store{open(t, opener), open(t, opener)}
	for w := range writers {
		noError(t, stores[0].Create(t.Context(), conversation(fmt.Sprint("c", w)), nil))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				if err := endTurn(ctx, stores[w%2], fmt.Sprint("c", w), fmt.Sprintf("t%d.%d", w, n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); all.Wait() }()
	var got []continuo.FinishedTurn
	next := map[string]int{}
	for ended := false; ; {
		after := int64(0)
		if len(got) > 0 {
			after = got[len(got)-1].Position
		}
		page, err := stores[1].FinishedTurns(ctx, continuo.FeedQuery{After: after, Limit: 7})
		noError(t, err)
		for _, turn := range page {
			want := fmt.Sprintf("t%s.%d", turn.ConversationID[1:], next[turn.ConversationID])
			if next[turn.ConversationID]++; turn.TurnID != want || turn.Position <= after {
				t.Errorf("%s at %d after %d, want %s", turn.TurnID, turn.Position, after, want)
			}
			after = turn.Position
		}
		if got = append(got, page...); len(page) == 0 {
			if ended {
				break
			}
			select {
			case <-done:
				ended = true
			default:
			}
		}
	}
	if len(got) != writers*each {
		t.Errorf("the reader got %d turns of %d", len(got), writers*each)
	}
	again, err := stores[0].FinishedTurns(ctx, continuo.FeedQuery{Limit: 1000})
	noError(t, err)
	same(t, "what a later reader gets", again, got)
}

// endTurn begins a turn and ends it.
func endTurn(ctx context.Context, store continuo.Store, conversationID, turnID string) error {
	begin := &continuo.TurnBegin{Turn: continuo.Turn{ID: turnID, ConversationID: conversationID, Owner: "one"}, Lease: time.Hour}
	if err := store.Append(ctx, continuo.Batch{ConversationID: conversationID, Begin: begin}); err != nil {
		return err
	}
	_, err := store.UpdateTurn(ctx, continuo.TurnUpdate{
		ConversationID: conversationID, TurnID: turnID, Fence: begin.Begun.Fence, State: continuo.TurnFinished,
	})
	return err
}

// testPrunedFeed removes the beginning of the feed: a reader that has not read what was removed is refused, others are not,
// and positions are never used again.
func testPrunedFeed(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for id, c := range map[string]continuo.Conversation{"a": {ProjectID: "p"}, "b": {ProjectID: "p", UserID: "ada"}, "c": {ProjectID: "q"}} {
		c.ID = id
		noError(t, store.Create(ctx, c, nil))
	}
	for i, id := range []string{"a", "c", "b", "a", "c"} {
		noError(t, endTurn(ctx, store, id, fmt.Sprint("t", i)))
	}
	all, err := store.FinishedTurns(ctx, continuo.FeedQuery{Limit: 9})
	noError(t, err)
	if len(all) != 5 {
		t.Fatalf("turns that ended: %+v", all)
	}
	later := all[4].EndedAt.Add(time.Hour)
	prune := func(what string, before time.Time, through int64, limit, want int) {
		t.Helper()
		removed, err := store.PruneFinished(ctx, before, through, limit)
		noError(t, err)
		same(t, what, removed, want)
	}
	read := func(what string, query continuo.FeedQuery, want ...continuo.FinishedTurn) {
		t.Helper()
		query.Limit = 9
		got, err := store.FinishedTurns(ctx, query)
		noError(t, err)
		same(t, what, got, want)
	}
	refused := func(what string, query continuo.FeedQuery) {
		t.Helper()
		query.Limit = 9
		expectError(t, what, second(store.FinishedTurns(ctx, query)), continuo.ErrFeedPruned)
	}
	prune("none is that old", all[0].EndedAt, math.MaxInt64, 9, 0)
	prune("none has been read", later, 0, 9, 0)
	prune("one at once", later, all[2].Position, 1, 1)
	refused("a reader from the beginning", continuo.FeedQuery{})
	refused("a reader of the project", continuo.FeedQuery{ProjectID: "p"})
	read("a reader of another project", continuo.FeedQuery{ProjectID: "q"}, all[1], all[4])
	read("a reader of another user", continuo.FeedQuery{ProjectID: "p", UserID: "ada"}, all[2])
	read("a reader that has read it", continuo.FeedQuery{After: all[0].Position}, all[1:]...)
	prune("what was read", later, all[2].Position, 9, 2)
	refused("a reader of the project behind the user's turn", continuo.FeedQuery{ProjectID: "p", After: all[0].Position})
	refused("a reader of the user behind it", continuo.FeedQuery{ProjectID: "p", UserID: "ada", After: all[0].Position})
	read("a reader of the user after it", continuo.FeedQuery{ProjectID: "p", UserID: "ada", After: all[2].Position})
	read("the oldest that are kept", continuo.FeedQuery{After: -1}, all[3:]...)
	prune("the rest", later, math.MaxInt64, 9, 2)
	read("the oldest of an empty feed", continuo.FeedQuery{After: -1})
	last, err := open(t, opener).LastFinished(ctx)
	noError(t, err)
	same(t, "the last position", last, all[4].Position)
	noError(t, endTurn(ctx, store, "a", "t5"))
	newest, err := store.FinishedTurns(ctx, continuo.FeedQuery{After: all[4].Position, Limit: 9})
	noError(t, err)
	if len(newest) != 1 || newest[0].Position <= all[4].Position {
		t.Errorf("after the feed was empty: %+v", newest)
	}
}

func testFeedPositions(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	expectError(t, "a position that was not set", second(store.FeedPosition(ctx, "a")), continuo.ErrNotFound)
	for _, position := range []int64{7, 9} {
		noError(t, store.SetFeedPosition(ctx, "a", position))
		got, err := open(t, opener).FeedPosition(ctx, "a")
		noError(t, err)
		same(t, "the position", got, position)
	}
	expectError(t, "the position of another", second(store.FeedPosition(ctx, "b")), continuo.ErrNotFound)
}
