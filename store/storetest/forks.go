package storetest

import (
	"errors"
	"fmt"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// forkOf returns a conversation that begins with the given segments.
func forkOf(id string, lineage ...continuo.Segment) continuo.Conversation {
	c := conversation(id)
	last := lineage[len(lineage)-1]
	c.ParentID, c.ForkSeq, c.LastSeq, c.Lineage = last.ConversationID, last.Through, last.Through, lineage
	return c
}

// testForks deletes a family from the oldest down, and then the other way round.
func testForks(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for _, order := range [][]string{{"a", "b", "c", "d"}, {"c", "b", "d", "a"}, {"d", "c", "b", "a"}, {"b", "a", "d", "c"}} {
		name := func(id string) string { return fmt.Sprint(order, id) }
		segment := func(id string, through int64) continuo.Segment {
			return continuo.Segment{ConversationID: name(id), Through: through}
		}
		root := create(t, store, name("a"), 10)
		noError(t, store.Create(ctx, forkOf(name("b"), segment("a", 6)), nil))
		appendEntries(t, store, name("b"), 7, 9)
		noError(t, store.Create(ctx, forkOf(name("c"), segment("a", 6), segment("b", 8)), nil))
		appendEntries(t, store, name("c"), 9, 9)
		noError(t, store.Create(ctx, forkOf(name("d"), segment("a", 3)), nil))
		appendEntries(t, store, root.ID, 11, 11) // does not show in the forks

		deleted := map[string]bool{}
		for _, id := range order {
			noError(t, store.Delete(ctx, name(id)))
			deleted[id] = true
			expectGone(t, store, name(id))
			for _, fork := range []string{"a", "b", "c", "d"} {
				if !deleted[fork] {
					readLineage(t, store, name(fork))
				}
			}
		}
		for _, id := range order {
			sameEntries(t, "entries of "+name(id)+" when all are deleted", readAll(t, store, name(id)), nil)
		}
	}
}

// readLineage expects all entries that a fork begins with to be there.
func readLineage(t *testing.T, store maintenance.Store, id string) {
	t.Helper()
	fork, err := store.Conversation(t.Context(), id)
	noError(t, err)
	from := int64(1)
	for _, s := range fork.Lineage {
		got := read(t, store, s.ConversationID, continuo.EntryQuery{From: from, To: s.Through, Limit: 100})
		sameEntries(t, id+" through "+s.ConversationID, got, entries(s.ConversationID, from, s.Through))
		from = s.Through + 1
	}
	got := read(t, store, id, continuo.EntryQuery{From: from, To: fork.LastSeq, Limit: 100})
	sameEntries(t, "own entries of "+id, got, entries(id, from, fork.LastSeq))
}

// testForkOfDeleted tests a parent that is deleted while a fork of it is being created.
func testForkOfDeleted(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 4)
	fork := forkOf("b", continuo.Segment{ConversationID: "a", Through: 2})
	noError(t, store.Delete(ctx, "a"))
	if err := store.Create(ctx, fork, nil); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("a fork without the entries that it begins with: %v", err)
	}
	expectGone(t, store, "b")

	// A new fork can still begin with a deleted conversation that another fork keeps, through that fork.
	create(t, store, "c", 4)
	noError(t, store.Create(ctx, forkOf("d", continuo.Segment{ConversationID: "c", Through: 4}), nil))
	noError(t, store.Delete(ctx, "c"))
	noError(t, store.Create(ctx, forkOf("e", continuo.Segment{ConversationID: "c", Through: 3}), nil))
	noError(t, store.Delete(ctx, "d"))
	readLineage(t, store, "e")
}
