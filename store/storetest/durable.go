package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// testDurable checks everything that was acknowledged: from a second store beside the one that wrote it, as
// after a crash, and after that store is closed.
func testDurable(t *testing.T, opener Opener) {
	store, ctx := opener(t), t.Context()
	create(t, store, "a", 3)
	noError(t, store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "a", Through: 2}), nil))
	appendEntries(t, store, "b", 3, 5)
	title := "changed"
	changed, err := store.Update(ctx, "a", continuo.ConversationChange{Title: &title, UpdatedAt: at(9)})
	noError(t, err)
	noError(t, store.PutBlob(ctx, "h", []byte("blob")))
	create(t, store, "c", 1)
	noError(t, store.Delete(ctx, "c"))
	check := func(store maintenance.Store) {
		t.Helper()
		got, err := store.Conversation(ctx, "a")
		noError(t, err)
		same(t, "conversation", got, changed)
		sameEntries(t, "entries", readAll(t, store, "a"), entries("a", 1, 3))
		readLineage(t, store, "b")
		blob, err := store.Blob(ctx, "h")
		noError(t, err)
		same(t, "blob", string(blob), "blob")
		expectGone(t, store, "c")
	}
	beside := opener(t)
	check(beside)
	closeStore(t, store)
	check(beside)
	closeStore(t, beside)
	again := open(t, opener)
	check(again)
	appendEntries(t, again, "b", 6, 6)
}

func testClosed(t *testing.T, opener Opener) {
	store, ctx := opener(t), t.Context()
	create(t, store, "a", 1)
	var closers sync.WaitGroup
	for range 4 {
		closers.Go(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closers.Wait()
	for what, err := range map[string]error{
		"Append":       store.Append(ctx, continuo.Batch{ConversationID: "a", After: 1, Entries: entries("a", 2, 2)}),
		"Entries":      second(store.Entries(ctx, "a", continuo.EntryQuery{From: 1, To: 1, Limit: 1})),
		"Conversation": second(store.Conversation(ctx, "a")),
		"PutBlob":      store.PutBlob(ctx, "h", nil),
		"BeginTurn":    second(BeginTurn(ctx, store, continuo.Turn{ID: "t1", ConversationID: "a"}, long)),
		"UpdateTurn":   second(store.UpdateTurn(ctx, continuo.TurnUpdate{ConversationID: "a", TurnID: "t1"})),
		"Turn":         second(store.Turn(ctx, "a", "t1")),
	} {
		if !errors.Is(err, continuo.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", what, err)
		}
	}
	sameEntries(t, "entries", readAll(t, open(t, opener), "a"), entries("a", 1, 1))
}

// testMixedGroup sends valid and invalid changes concurrently and repeatedly: each must get its own answer.
func testMixedGroup(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	const writers, rounds = 64, 4
	for i := range writers {
		create(t, store, fmt.Sprint("c", i), 1)
	}
	var done sync.WaitGroup
	for i := range writers {
		done.Go(func() {
			id := fmt.Sprint("c", i)
			for round := range int64(rounds) {
				if err := mixedChange(t, store, i, round); err != nil {
					t.Errorf("writer %d: %v", i, err)
				}
				batch := continuo.Batch{ConversationID: id, After: round + 1, Entries: entries(id, round+2, round+2)}
				if err := store.Append(ctx, batch); err != nil {
					t.Errorf("writer %d: %v", i, err)
				}
			}
		})
	}
	done.Wait()
	for i := range writers {
		id := fmt.Sprint("c", i)
		sameEntries(t, id, readAll(t, store, id), entries(id, 1, rounds+1))
	}
}

// mixedChange makes a change that must be refused, or one of another kind that must not be.
func mixedChange(t *testing.T, store maintenance.Store, i int, round int64) error {
	ctx, id := t.Context(), fmt.Sprint("c", i)
	switch i % 6 {
	case 0:
		err := store.Append(ctx, continuo.Batch{ConversationID: id, After: 50, Entries: entries(id, 51, 51)})
		var conflict *continuo.ConflictError
		if !errors.As(err, &conflict) || conflict.Have != round+2 {
			return fmt.Errorf("a batch after seq 50: %w", err)
		}
	case 1:
		if err := store.Create(ctx, conversation(id), nil); !errors.Is(err, continuo.ErrExists) {
			return fmt.Errorf("an id that is taken: %w", err)
		}
	case 2:
		if err := store.Delete(ctx, "none"); !errors.Is(err, continuo.ErrNotFound) {
			return fmt.Errorf("no such conversation: %w", err)
		}
	case 3:
		receipts := []continuo.Receipt{{Key: "k"}, {Key: "k"}}
		if err := store.Append(ctx, continuo.Batch{ConversationID: id, After: round + 1, Entries: entries(id, round+2, round+2), Receipts: receipts}); err == nil {
			return errors.New("one receipt twice was accepted")
		}
	case 4:
		return store.PutBlob(ctx, fmt.Sprint("h", i, round), []byte("blob"))
	}
	return nil
}
