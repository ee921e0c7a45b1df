package storetest

import (
	"fmt"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// expectNoRuns expects that a run is no longer found.
func expectNoRuns(t *testing.T, what string, store maintenance.Store, conversationID, runID string) {
	t.Helper()
	expectRuns(t, what, store, conversationID)
	expectError(t, what+": the run", second(store.Run(t.Context(), "p", runID)), continuo.ErrNotFound)
	running, err := store.RunningRuns(t.Context(), at(1000), 99)
	noError(t, err)
	if slices.ContainsFunc(running, func(r continuo.Run) bool { return r.ConversationID == conversationID }) {
		t.Errorf("%s: it has running runs: %+v", what, running)
	}
}

// testDeletedRuns deletes a conversation that a fork begins with, and one without forks.
func testDeletedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for _, id := range []string{"a", "b"} {
		create(t, store, id, 0)
		appendRunEvents(t, store, id, 1, runEvent{"r_" + id, continuo.RunBegan})
	}
	noError(t, store.Create(ctx, forkOf("fork", continuo.Segment{ConversationID: "a", Through: 1}), nil))
	for _, id := range []string{"a", "b"} {
		noError(t, store.Delete(ctx, id))
		expectNoRuns(t, "deleted: "+id, store, id, "r_"+id)
	}
	kept := records(t, store, "a", 9)
	noError(t, store.PutRecords(ctx, "a", kept))
	expectNoRuns(t, "copied as what is deleted", store, "a", "r_a")
	noError(t, store.PutRecords(ctx, "a", kept[1:]))
	expectNoRuns(t, "an entry of what is deleted", store, "a", "r_a")
	// A conversation that is restored unchanged has its runs again.
	kept[0].Conversation.Deleted = false
	noError(t, store.PutRecords(ctx, "a", kept[:1]))
	expectRuns(t, "not deleted any more", store, "a", runOf("a", "r_a", 1, 1, continuo.RunRunning))
}

func testArchivedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	appendRunEvents(t, store, "a", 1, runEvent{"r1", continuo.RunBegan}, runEvent{"r1", continuo.RunEventWaiting}, runEvent{"r2", continuo.RunBegan}, runEvent{"r2", continuo.RunEventFinished}, runEvent{"r2", continuo.RunNodeBegan})
	appendRunEvents(t, store, "a", 6, runEvent{"r3", continuo.RunBegan})
	over := runOf("a", "r2", 3, 5, continuo.RunFinished)
	over.EndedAt = at(4)
	want := []continuo.Run{runOf("a", "r3", 6, 6, continuo.RunRunning), over, runOf("a", "r1", 1, 2, continuo.RunWaiting)}
	noError(t, store.Create(ctx, forkOf("fork", continuo.Segment{ConversationID: "a", Through: 2}), nil))
	whole := records(t, store, "a", 99)
	noError(t, store.Archive(ctx, seenAs(t, store, "a", 6), at(77)))
	expectNoRuns(t, "archived", store, "a", "r3")
	for some := range slices.Chunk(whole[1:], 2) {
		for range 2 { // an interrupted restore starts again
			noError(t, store.PutArchived(ctx, "a", at(77), some))
			expectNoRuns(t, "before all of it is back", store, "a", "r3")
		}
	}
	noError(t, store.Restore(ctx, "a"))
	expectRuns(t, "restored", store, "a", want...)
	appendRunEvents(t, store, "a", 7, runEvent{"r3", continuo.RunEventWaiting})
	want[0] = runOf("a", "r3", 6, 7, continuo.RunWaiting)
	expectRuns(t, "and gone on with", store, "a", want...)

	// A copy that is marked as archived, and one that no longer is.
	all := records(t, store, "a", 99)
	noError(t, store.Archive(ctx, seenAs(t, store, "a", 7), at(78)))
	noError(t, store.PutRecords(ctx, "a", all[1:]))
	expectNoRuns(t, "entries of what is archived", store, "a", "r3")
	noError(t, store.PutRecords(ctx, "a", all[:1]))
	expectRuns(t, "a copy that is not archived", store, "a", want...)
	own := *all[0].Conversation
	own.ArchivedAt = at(79)
	noError(t, store.PutRecords(ctx, "a", []maintenance.Record{{Conversation: &own}}))
	expectNoRuns(t, "a copy that is archived", store, "a", "r3")
}

// testCopiedRuns copies a conversation with runs in pages of all sizes.
func testCopiedRuns(t *testing.T, opener Opener) {
	from, store, ctx := NewMemory(), open(t, opener), t.Context()
	create(t, from, "a", 0)
	appendRunEvents(t, from, "a", 1, runEvent{"r1", continuo.RunBegan}, runEvent{"r1", continuo.RunNodeBegan}, runEvent{"r2", continuo.RunBegan})
	appendEntries(t, from, "a", 4, 9)
	appendRunEvents(t, from, "a", 10, runEvent{"r1", continuo.RunEventWaiting}, runEvent{"r2", continuo.RunEventFinished}, runEvent{"none", continuo.RunEventFinished})
	want := []continuo.Run{runOf("a", "r2", 3, 11, continuo.RunFinished), runOf("a", "r1", 1, 10, continuo.RunWaiting)}
	whole := records(t, from, "a", 99)
	for size := 1; size <= len(whole); size++ {
		for some := range slices.Chunk(whole, size) {
			noError(t, store.PutRecords(ctx, "a", some))
		}
		expectRuns(t, fmt.Sprintf("copied in pages of %d", size), store, "a", want...)
		for some := range slices.Chunk(whole, size) { // records that exist already change nothing
			noError(t, store.PutRecords(ctx, "a", some))
			expectRuns(t, fmt.Sprintf("copied once more in pages of %d", size), store, "a", want...)
		}
		noError(t, store.Delete(ctx, "a"))
	}
	backward := slices.Clone(whole)
	slices.Reverse(backward)
	noError(t, store.PutRecords(ctx, "a", backward))
	expectRuns(t, "in another order", store, "a", want...)
	moved := *whole[0].Conversation
	moved.ProjectID = "q"
	noError(t, store.PutRecords(ctx, "a", []maintenance.Record{{Conversation: &moved}}))
	expectError(t, "in the project that it was in", second(store.Run(ctx, "p", "r1")), continuo.ErrNotFound)
	same(t, "in another project", listRuns(t, store, continuo.RunQuery{ProjectID: "q", Limit: 9}), []string{"r2", "r1"})
}

// testReplacedRuns copies one conversation over another one with a different continuation.
func testReplacedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	appendRunEvents(t, store, "a", 1, runEvent{"r1", continuo.RunBegan}, runEvent{"r1", continuo.RunEventWaiting}, runEvent{"r1", continuo.RunEventFinished}, runEvent{"r2", continuo.RunBegan})
	put := func(made ...continuo.Entry) {
		t.Helper()
		var put []maintenance.Record
		for i := range made {
			put = append(put, maintenance.Record{Entry: &made[i]})
		}
		noError(t, store.PutRecords(ctx, "a", put))
	}
	put(eventEntries("a", 3, runEvent{"r1", continuo.RunEventFailed}, runEvent{"r3", continuo.RunBegan})...)
	want := []continuo.Run{runOf("a", "r3", 4, 4, continuo.RunRunning), runOf("a", "r1", 1, 3, continuo.RunFailed)}
	expectRuns(t, "another end, and another run", store, "a", want...)
	expectError(t, "the run that was replaced", second(store.Run(ctx, "p", "r2")), continuo.ErrNotFound)
	put(entries("a", 3, 4)...)
	expectRuns(t, "entries without a run event", store, "a", runOf("a", "r1", 1, 2, continuo.RunWaiting))
	put(eventEntries("a", 3, runEvent{"r1", continuo.RunEventCancelled})...)
	expectRuns(t, "an end in the middle", store, "a", runOf("a", "r1", 1, 3, continuo.RunCancelled))
	put(entries("a", 1, 1)...)
	expectRuns(t, "without its beginning", store, "a")
}

func testRedactedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	appendRunEvents(t, store, "a", 1, runEvent{"r1", continuo.RunBegan}, runEvent{"r1", continuo.RunNodeFinished}, runEvent{"r1", continuo.RunEventFinished})
	want := runOf("a", "r1", 1, 3, continuo.RunFinished)
	all := readAll(t, store, "a")
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(all[0]), redacted(all[1])}))
	expectRuns(t, "redacted", store, "a", want)
	same(t, "the event of a redacted entry", readAll(t, store, "a")[1].RunEvent, all[1].RunEvent)
	// A copy writes only the differences.
	middle := redacted(all[1])
	noError(t, store.PutRecords(ctx, "a", []maintenance.Record{{Entry: &middle}}))
	expectRuns(t, "a redaction that was copied", store, "a", want)
}

func testForkedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	appendRunEvents(t, store, "a", 1, runEvent{"r1", continuo.RunBegan}, runEvent{"r1", continuo.RunNodeBegan})
	noError(t, store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "a", Through: 2}), nil))
	expectRuns(t, "of the fork", store, "b")
	appendRunEvents(t, store, "b", 3, runEvent{"r1", continuo.RunEventFinished}, runEvent{"r2", continuo.RunBegan})
	of := map[string]continuo.Run{"a": runOf("a", "r1", 1, 2, continuo.RunRunning), "b": runOf("b", "r2", 4, 4, continuo.RunRunning)}
	for id, run := range of {
		expectRuns(t, "of "+id, store, id, run)
	}
	noError(t, store.Archive(ctx, seenAs(t, store, "a", 2), at(9)))
	noError(t, store.Restore(ctx, "a")) // the fork kept all of its entries
	noError(t, store.PutRecords(ctx, "b", records(t, store, "b", 99)))
	for id, run := range of {
		expectRuns(t, "rebuilt, of "+id, store, id, run)
	}
	noError(t, store.Delete(ctx, "a"))
	expectRuns(t, "of the fork that is left", store, "b", of["b"])
}
