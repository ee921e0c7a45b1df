package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// runTests is the part of the suite that is about the index of runs.
func runTests() []test {
	return []test{
		{"a run is as its events say", testRuns},
		{"a run that begins again continues", testRunBeginsAgain},
		{"entries and runs are committed together", testBatchRuns},
		{"runs are listed page by page", testRunList},
		{"running runs are listed, the longest quiet first", testRunningRuns},
		{"a deleted conversation has no runs", testDeletedRuns},
		{"runs are archived and come back", testArchivedRuns},
		{"runs are copied with their entries", testCopiedRuns},
		{"runs are those of the entries that are put in the place of others", testReplacedRuns},
		{"a redaction leaves runs alone", testRedactedRuns},
		{"a fork has no runs but its own", testForkedRuns},
		{"runs are durable", testRunsDurable},
		{"64 runs at once do not harm each other", testRunsAtOnce},
	}
}

// runEvent is an event of a run.
type runEvent struct {
	run  string
	kind continuo.RunEventKind
}

// eventEntries makes an entry for each event, with seqs from first on.
func eventEntries(conversationID string, first int64, events ...runEvent) []continuo.Entry {
	var made []continuo.Entry
	for i, event := range events {
		e := entry(conversationID, first+int64(i))
		e.RunID, e.WorkflowID, e.RunEvent = event.run, "workflow of "+event.run, &continuo.RunEvent{Kind: event.kind}
		if event.kind == continuo.RunBegan {
			e.RunEvent.KeyID = "key of " + event.run
		}
		made = append(made, e)
	}
	return made
}

// appendRunEvents appends an entry for each event.
func appendRunEvents(t *testing.T, store maintenance.Store, conversationID string, first int64, events ...runEvent) {
	t.Helper()
	noError(t, store.Append(t.Context(), runEventBatch(conversationID, first, events...)))
}

func runEventBatch(conversationID string, first int64, events ...runEvent) continuo.Batch {
	made := eventEntries(conversationID, first, events...)
	return continuo.Batch{ConversationID: conversationID, After: first - 1, Entries: made, Runs: continuo.RunChanges(made)}
}

// runOf is a run of the project p that began at one seq and had its newest event at another.
func runOf(conversationID, id string, first, newest int64, state continuo.RunState) continuo.Run {
	run := continuo.Run{
		ID: id, ConversationID: conversationID, ProjectID: "p", WorkflowID: "workflow of " + id, KeyID: "key of " + id, State: state,
		FirstSeq: first, StartedAt: at(int(first)), UpdatedAt: at(int(newest)),
	}
	if state.IsOver() {
		run.EndedAt = run.UpdatedAt
	}
	return run
}

// expectRuns expects a conversation to have just these runs, the newest first.
func expectRuns(t *testing.T, what string, store maintenance.Store, conversationID string, want ...continuo.Run) {
	t.Helper()
	found, err := store.Runs(t.Context(), continuo.RunQuery{ProjectID: "p", ConversationID: conversationID, Limit: 99})
	noError(t, err)
	same(t, what, append([]continuo.Run(nil), found...), want)
	for _, run := range want {
		byID, err := store.Run(t.Context(), "p", run.ID)
		noError(t, err)
		same(t, what+", by id", byID, run)
	}
}

func testRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	appendRunEvents(t, store, "a", 1, runEvent{"r1", continuo.RunBegan})
	expectRuns(t, "begun", store, "a", runOf("a", "r1", 1, 1, continuo.RunRunning))
	seq := int64(1)
	state := continuo.RunRunning
	for _, step := range []struct {
		kind  continuo.RunEventKind
		state continuo.RunState // "": unchanged
	}{
		{continuo.RunNodeBegan, ""},
		{continuo.RunNodeRefused, ""},
		{continuo.RunNodeFinished, ""},
		{continuo.RunNodeAsked, ""},
		{continuo.RunEventWaiting, continuo.RunWaiting},
		{continuo.RunNodeAsked, ""},
		{continuo.RunNodeFinished, ""},
		{continuo.RunResumed, continuo.RunRunning},
		{continuo.RunEventFailed, continuo.RunFailed},
		{continuo.RunResumed, continuo.RunRunning},
		{continuo.RunEventStopped, continuo.RunStopped},
		{continuo.RunEventCancelled, continuo.RunCancelled},
	} {
		seq++
		appendRunEvents(t, store, "a", seq, runEvent{"r1", step.kind})
		if step.state != "" {
			state = step.state
		}
		expectRuns(t, fmt.Sprintf("after %s at %d", step.kind, seq), store, "a", runOf("a", "r1", 1, seq, state))
	}
	cancelled := runOf("a", "r1", 1, seq, continuo.RunCancelled)
	// Several runs, and several events of each, in one batch; one of an unknown run.
	appendRunEvents(t, store, "a", seq+1, runEvent{"r2", continuo.RunBegan}, runEvent{"none", continuo.RunEventWaiting}, runEvent{"r3", continuo.RunBegan},
		runEvent{"r2", continuo.RunEventWaiting}, runEvent{"r3", continuo.RunEventFinished}, runEvent{"r2", continuo.RunNodeAsked}, runEvent{"none", continuo.RunNodeBegan})
	ended := runOf("a", "r3", seq+3, seq+5, continuo.RunFinished)
	expectRuns(t, "several", store, "a", ended, runOf("a", "r2", seq+1, seq+6, continuo.RunWaiting), cancelled)
	appendRunEvents(t, store, "a", seq+8, runEvent{"r2", continuo.RunNodeFinished}, runEvent{"r2", continuo.RunEventFinished}, runEvent{"r2", continuo.RunNodeBegan})
	over := runOf("a", "r2", seq+1, seq+10, continuo.RunFinished)
	over.EndedAt = at(int(seq + 9)) // and reported once more
	expectRuns(t, "an event after the end", store, "a", ended, over, cancelled)
	appendRunEvents(t, store, "a", seq+11, runEvent{"r2", continuo.RunNodeRefused})
	over.UpdatedAt = at(int(seq + 11))
	expectRuns(t, "an event after the end, by itself", store, "a", ended, over, cancelled)
	// A run that has ended stays so, whether it ended before or in the same batch.
	appendRunEvents(t, store, "a", seq+12, runEvent{"r2", continuo.RunResumed}, runEvent{"r3", continuo.RunEventCancelled}, runEvent{"r4", continuo.RunBegan}, runEvent{"r4", continuo.RunEventFinished}, runEvent{"r4", continuo.RunEventCancelled}, runEvent{"r5", continuo.RunBegan})
	appendRunEvents(t, store, "a", seq+18, runEvent{"r5", continuo.RunEventCancelled}, runEvent{"r5", continuo.RunEventWaiting})
	over.UpdatedAt, ended.UpdatedAt = at(int(seq+12)), at(int(seq+13))
	r4, r5 := runOf("a", "r4", seq+14, seq+15, continuo.RunFinished), runOf("a", "r5", seq+17, seq+18, continuo.RunCancelled)
	r4.UpdatedAt, r5.UpdatedAt = at(int(seq+16)), at(int(seq+19))
	all := []continuo.Run{r5, r4, ended, over, cancelled}
	expectRuns(t, "runs that are over", store, "a", all...)
	seq += 19

	expectError(t, "an unknown run", second(store.Run(ctx, "p", "none")), continuo.ErrNotFound)
	expectError(t, "a run of another project", second(store.Run(ctx, "q", "r1")), continuo.ErrNotFound)
	for _, bad := range []string{"a\x00b", "a\xffb"} {
		batch := continuo.Batch{ConversationID: "a", After: seq, Entries: entries("a", seq+1, seq+1), Runs: []continuo.RunChange{{RunID: bad, Begins: true, State: continuo.RunRunning, At: day}}}
		expectError(t, "an id that is no text", store.Append(ctx, batch), continuo.ErrInvalid)
	}
	expectRuns(t, "after what was refused", store, "a", all...)
	elsewhere := conversation("b")
	elsewhere.ProjectID = "q"
	noError(t, store.Create(ctx, elsewhere, nil))
	appendRunEvents(t, store, "b", 1, runEvent{"r9", continuo.RunBegan})
	found, err := store.Run(ctx, "q", "r9")
	noError(t, err)
	same(t, "the project of a run", found.ProjectID, "q")
}

func testRunBeginsAgain(t *testing.T, opener Opener) {
	store := open(t, opener)
	create(t, store, "a", 0)
	appendRunEvents(t, store, "a", 1, runEvent{"r1", continuo.RunBegan}, runEvent{"r1", continuo.RunEventWaiting})
	appendRunEvents(t, store, "a", 3, runEvent{"r1", continuo.RunBegan})
	expectRuns(t, "it waits as before", store, "a", runOf("a", "r1", 1, 2, continuo.RunWaiting))
	appendRunEvents(t, store, "a", 4, runEvent{"r1", continuo.RunBegan}, runEvent{"r1", continuo.RunNodeBegan})
	expectRuns(t, "what comes with it counts", store, "a", runOf("a", "r1", 1, 5, continuo.RunWaiting))
	appendRunEvents(t, store, "a", 6, runEvent{"r2", continuo.RunEventWaiting}, runEvent{"r2", continuo.RunBegan}, runEvent{"r2", continuo.RunBegan}, runEvent{"r1", continuo.RunEventFailed}, runEvent{"r1", continuo.RunBegan})
	expectRuns(t, "in one batch", store, "a", runOf("a", "r2", 7, 7, continuo.RunRunning), runOf("a", "r1", 1, 9, continuo.RunFailed))
}

// testBatchRuns has batches with runs refused for every possible reason, and then accepted.
func testBatchRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	appendRunEvents(t, store, "a", 1, runEvent{"r1", continuo.RunBegan})
	turn := begin(t, store, "a", "t1")
	zombie := updateOf(turn, 1)
	zombie.Fence--
	receipt := continuo.Receipt{Key: "k", Fingerprint: "f", First: 2, Last: 2}
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: 1, Entries: entries("a", 2, 2), Receipts: []continuo.Receipt{receipt}}))
	before := runOf("a", "r1", 1, 1, continuo.RunRunning)
	refused := map[string]func(*continuo.Batch){
		"the wrong place":           func(b *continuo.Batch) { *b = runEventBatch("a", 2, runEvent{"r1", continuo.RunEventFinished}) },
		"a lost lease":              func(b *continuo.Batch) { b.Turns = []continuo.TurnUpdate{zombie} },
		"a second update too many":  func(b *continuo.Batch) { b.Turns = []continuo.TurnUpdate{updateOf(turn, 1), zombie} },
		"a receipt that is there":   func(b *continuo.Batch) { b.Receipts = []continuo.Receipt{receipt} },
		"a conversation of nowhere": func(b *continuo.Batch) { *b = runEventBatch("none", 1, runEvent{"r2", continuo.RunBegan}) },
	}
	for what, change := range refused {
		batch := runEventBatch("a", 3, runEvent{"r1", continuo.RunEventFinished}, runEvent{"r2", continuo.RunBegan})
		change(&batch)
		if err := store.Append(ctx, batch); err == nil {
			t.Errorf("%s: the batch is not refused", what)
		}
		expectRuns(t, "after "+what, store, "a", before)
		expectError(t, "after "+what, second(store.Run(ctx, "p", "r2")), continuo.ErrNotFound)
	}
	batch := runEventBatch("a", 3, runEvent{"r1", continuo.RunEventWaiting}, runEvent{"r2", continuo.RunBegan})
	batch.Entries[0] = withObject(batch.Entries[0], "o1")
	end := ending(turn, continuo.TurnFinished)
	batch.Turns, batch.Receipts = []continuo.TurnUpdate{updateOf(turn, 1), end}, []continuo.Receipt{{Key: "k2", Fingerprint: "f", First: 3, Last: 4}}
	noError(t, store.Append(ctx, batch))
	expectRuns(t, "with everything else", store, "a", runOf("a", "r2", 4, 4, continuo.RunRunning), runOf("a", "r1", 1, 3, continuo.RunWaiting))
	same(t, "the turn", findTurn(t, store, "a", "t1").State, continuo.TurnFinished)
	sameEntries(t, "the entries", read(t, store, "a", continuo.EntryQuery{From: 3, To: 9, Limit: 9}), batch.Entries)
}

func testRunsDurable(t *testing.T, opener Opener) {
	store := opener(t)
	create(t, store, "a", 0)
	appendRunEvents(t, store, "a", 1, runEvent{"r1", continuo.RunBegan}, runEvent{"r2", continuo.RunBegan}, runEvent{"r2", continuo.RunEventFinished})
	appendRunEvents(t, store, "a", 4, runEvent{"r1", continuo.RunEventWaiting})
	want := []continuo.Run{runOf("a", "r2", 2, 3, continuo.RunFinished), runOf("a", "r1", 1, 4, continuo.RunWaiting)}
	beside := opener(t)
	expectRuns(t, "beside", beside, "a", want...)
	closeStore(t, store)
	closeStore(t, beside)
	again := open(t, opener)
	expectRuns(t, "again", again, "a", want...)
	noError(t, again.Close())
	for what, err := range map[string]error{
		"Run":         second(again.Run(t.Context(), "p", "r1")),
		"Runs":        second(again.Runs(t.Context(), continuo.RunQuery{ProjectID: "p", Limit: 1})),
		"RunningRuns": second(again.RunningRuns(t.Context(), at(9), 1)),
	} {
		expectError(t, what+" of a closed store", err, continuo.ErrClosed)
	}
}

// testRunsAtOnce has runs progress in many conversations at once; some batches are refused.
func testRunsAtOnce(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	const writers = 64
	for i := range writers {
		create(t, store, fmt.Sprint("c", i), 0)
	}
	_, errs := atOnce(writers, func(i int) (any, error) { return nil, runThrough(ctx, store, i) })
	noError(t, errors.Join(errs...))
	for i := range writers {
		id, run := fmt.Sprint("c", i), fmt.Sprint("r", i)
		expectRuns(t, id, store, id, runOf(id, run, 1, 5, continuo.RunFinished))
	}
}

func runThrough(ctx context.Context, store maintenance.Store, i int) error {
	id, run := fmt.Sprint("c", i), fmt.Sprint("r", i)
	for seq, kinds := int64(1), [][]continuo.RunEventKind{{continuo.RunBegan, continuo.RunNodeBegan}, {continuo.RunNodeFinished}, {continuo.RunEventWaiting, continuo.RunEventFinished}}; len(kinds) > 0; kinds = kinds[1:] {
		var events []runEvent
		for _, kind := range kinds[0] {
			events = append(events, runEvent{run, kind})
		}
		stale := runEventBatch(id, seq+1, runEvent{run, continuo.RunEventCancelled})
		var conflict *continuo.ConflictError
		if err := store.Append(ctx, stale); i%2 == 0 && !errors.As(err, &conflict) {
			return fmt.Errorf("a batch for another place: %w", err)
		}
		if err := store.Append(ctx, runEventBatch(id, seq, events...)); err != nil {
			return err
		}
		seq += int64(len(events))
	}
	return nil
}
