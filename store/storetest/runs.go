package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// runTests is the part of the suite that is about the index of runs.
func runTests() []test {
	return []test{
		{"a run is as its events say", testRuns},
		{"a run that begins again goes on", testRunBeginsAgain},
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

// told is an event of a run.
type told struct {
	run  string
	kind continuo.RunEventKind
}

// eventEntries makes an entry for each event, with seqs from first on.
func eventEntries(conversationID string, first int64, events ...told) []continuo.Entry {
	var made []continuo.Entry
	for i, event := range events {
		e := entry(conversationID, first+int64(i))
		e.RunID, e.WorkflowID, e.RunEvent = event.run, "workflow of "+event.run, &continuo.RunEvent{Kind: event.kind}
		made = append(made, e)
	}
	return made
}

// tell appends an entry for each event.
func tell(t *testing.T, store continuo.Store, conversationID string, first int64, events ...told) {
	t.Helper()
	noError(t, store.Append(t.Context(), tellingBatch(conversationID, first, events...)))
}

func tellingBatch(conversationID string, first int64, events ...told) continuo.Batch {
	made := eventEntries(conversationID, first, events...)
	return continuo.Batch{ConversationID: conversationID, After: first - 1, Entries: made, Runs: continuo.RunChanges(made)}
}

// runOf is a run of the project p that began at one seq and had its newest event at another.
func runOf(conversationID, id string, first, newest int64, state continuo.RunState) continuo.Run {
	run := continuo.Run{
		ID: id, ConversationID: conversationID, ProjectID: "p", WorkflowID: "workflow of " + id, State: state,
		FirstSeq: first, StartedAt: at(int(first)), UpdatedAt: at(int(newest)),
	}
	if state.IsOver() {
		run.EndedAt = run.UpdatedAt
	}
	return run
}

// expectRuns expects a conversation to have just these runs, the newest first.
func expectRuns(t *testing.T, what string, store continuo.Store, conversationID string, want ...continuo.Run) {
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
	tell(t, store, "a", 1, told{"r1", continuo.RunBegan})
	expectRuns(t, "begun", store, "a", runOf("a", "r1", 1, 1, continuo.RunRunning))
	seq := int64(1)
	state := continuo.RunRunning
	for _, step := range []struct {
		kind  continuo.RunEventKind
		state continuo.RunState // "": as before
	}{
		{continuo.RunNodeBegan, ""},
		{continuo.RunNodeRefused, ""},
		{continuo.RunNodeFinished, ""},
		{continuo.RunNodeAsked, ""},
		{continuo.RunHeld, continuo.RunWaiting},
		{continuo.RunNodeAsked, ""},
		{continuo.RunNodeFinished, ""},
		{continuo.RunResumed, continuo.RunRunning},
		{continuo.RunBrokeOff, continuo.RunFailed},
		{continuo.RunResumed, continuo.RunRunning},
		{continuo.RunHalted, continuo.RunStopped},
		{continuo.RunCalledOff, continuo.RunCancelled},
	} {
		seq++
		tell(t, store, "a", seq, told{"r1", step.kind})
		if step.state != "" {
			state = step.state
		}
		expectRuns(t, fmt.Sprintf("after %s at %d", step.kind, seq), store, "a", runOf("a", "r1", 1, seq, state))
	}
	cancelled := runOf("a", "r1", 1, seq, continuo.RunCancelled)
	// Several runs, and several events of each, in one batch; one of a run that nobody knows.
	tell(t, store, "a", seq+1, told{"r2", continuo.RunBegan}, told{"none", continuo.RunHeld}, told{"r3", continuo.RunBegan},
		told{"r2", continuo.RunHeld}, told{"r3", continuo.RunEnded}, told{"r2", continuo.RunNodeAsked}, told{"none", continuo.RunNodeBegan})
	ended := runOf("a", "r3", seq+3, seq+5, continuo.RunFinished)
	expectRuns(t, "several", store, "a", ended, runOf("a", "r2", seq+1, seq+6, continuo.RunWaiting), cancelled)
	tell(t, store, "a", seq+8, told{"r2", continuo.RunNodeFinished}, told{"r2", continuo.RunEnded}, told{"r2", continuo.RunNodeBegan})
	over := runOf("a", "r2", seq+1, seq+10, continuo.RunFinished)
	over.EndedAt = at(int(seq + 9)) // and told of once more
	expectRuns(t, "an event after the end", store, "a", ended, over, cancelled)
	tell(t, store, "a", seq+11, told{"r2", continuo.RunNodeRefused})
	over.UpdatedAt = at(int(seq + 11))
	expectRuns(t, "an event after the end, by itself", store, "a", ended, over, cancelled)
	// What is over stays so, whether it ended before or in the same batch.
	tell(t, store, "a", seq+12, told{"r2", continuo.RunResumed}, told{"r3", continuo.RunCalledOff}, told{"r4", continuo.RunBegan}, told{"r4", continuo.RunEnded}, told{"r4", continuo.RunCalledOff}, told{"r5", continuo.RunBegan})
	tell(t, store, "a", seq+18, told{"r5", continuo.RunCalledOff}, told{"r5", continuo.RunHeld})
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
	tell(t, store, "b", 1, told{"r9", continuo.RunBegan})
	found, err := store.Run(ctx, "q", "r9")
	noError(t, err)
	same(t, "the project of a run", found.ProjectID, "q")
}

func testRunBeginsAgain(t *testing.T, opener Opener) {
	store := open(t, opener)
	create(t, store, "a", 0)
	tell(t, store, "a", 1, told{"r1", continuo.RunBegan}, told{"r1", continuo.RunHeld})
	tell(t, store, "a", 3, told{"r1", continuo.RunBegan})
	expectRuns(t, "it waits as before", store, "a", runOf("a", "r1", 1, 2, continuo.RunWaiting))
	tell(t, store, "a", 4, told{"r1", continuo.RunBegan}, told{"r1", continuo.RunNodeBegan})
	expectRuns(t, "what comes with it counts", store, "a", runOf("a", "r1", 1, 5, continuo.RunWaiting))
	tell(t, store, "a", 6, told{"r2", continuo.RunHeld}, told{"r2", continuo.RunBegan}, told{"r2", continuo.RunBegan}, told{"r1", continuo.RunBrokeOff}, told{"r1", continuo.RunBegan})
	expectRuns(t, "in one batch", store, "a", runOf("a", "r2", 7, 7, continuo.RunRunning), runOf("a", "r1", 1, 9, continuo.RunFailed))
}

// testBatchRuns has batches with runs refused for all the reasons that there are, and then accepted.
func testBatchRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	tell(t, store, "a", 1, told{"r1", continuo.RunBegan})
	turn := begin(t, store, "a", "t1")
	zombie := updateOf(turn, 1)
	zombie.Fence--
	receipt := continuo.Receipt{Key: "k", Fingerprint: "f", First: 2, Last: 2}
	noError(t, store.Append(ctx, continuo.Batch{ConversationID: "a", After: 1, Entries: entries("a", 2, 2), Receipts: []continuo.Receipt{receipt}}))
	before := runOf("a", "r1", 1, 1, continuo.RunRunning)
	refused := map[string]func(*continuo.Batch){
		"the wrong place":           func(b *continuo.Batch) { *b = tellingBatch("a", 2, told{"r1", continuo.RunEnded}) },
		"a lost lease":              func(b *continuo.Batch) { b.Turns = []continuo.TurnUpdate{zombie} },
		"a second update too many":  func(b *continuo.Batch) { b.Turns = []continuo.TurnUpdate{updateOf(turn, 1), zombie} },
		"a receipt that is there":   func(b *continuo.Batch) { b.Receipts = []continuo.Receipt{receipt} },
		"a conversation of nowhere": func(b *continuo.Batch) { *b = tellingBatch("none", 1, told{"r2", continuo.RunBegan}) },
	}
	for what, change := range refused {
		batch := tellingBatch("a", 3, told{"r1", continuo.RunEnded}, told{"r2", continuo.RunBegan})
		change(&batch)
		if err := store.Append(ctx, batch); err == nil {
			t.Errorf("%s: the batch is not refused", what)
		}
		expectRuns(t, "after "+what, store, "a", before)
		expectError(t, "after "+what, second(store.Run(ctx, "p", "r2")), continuo.ErrNotFound)
	}
	batch := tellingBatch("a", 3, told{"r1", continuo.RunHeld}, told{"r2", continuo.RunBegan})
	batch.Entries[0] = withObject(batch.Entries[0], "o1")
	end := ending(turn, continuo.TurnFinished)
	batch.Turns, batch.Receipts = []continuo.TurnUpdate{updateOf(turn, 1), end}, []continuo.Receipt{{Key: "k2", Fingerprint: "f", First: 3, Last: 4}}
	noError(t, store.Append(ctx, batch))
	expectRuns(t, "with everything else", store, "a", runOf("a", "r2", 4, 4, continuo.RunRunning), runOf("a", "r1", 1, 3, continuo.RunWaiting))
	same(t, "the turn", findTurn(t, store, "a", "t1").State, continuo.TurnFinished)
	sameEntries(t, "the entries", read(t, store, "a", continuo.EntryQuery{From: 3, To: 9, Limit: 9}), batch.Entries)
}

// listRuns reads all pages and returns ids.
func listRuns(t *testing.T, store continuo.Store, query continuo.RunQuery) (ids []string) {
	t.Helper()
	for {
		page, err := store.Runs(t.Context(), query)
		noError(t, err)
		if len(page) > query.Limit || len(ids) > 99 {
			t.Fatalf("a page of %d has %d runs, all until there have %d", query.Limit, len(page), len(ids))
		}
		for _, run := range page {
			ids = append(ids, run.ID)
			query.Before = continuo.RunCursor{StartedAt: run.StartedAt, ID: run.ID}
		}
		if len(page) < query.Limit {
			return ids
		}
	}
}

func testRunList(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	other := conversation("other")
	other.ProjectID = "q"
	noError(t, store.Create(ctx, other, nil))
	tell(t, store, "other", 1, told{"r_other", continuo.RunBegan})
	for _, id := range []string{"a", "b", "c"} { // those of one seq began at the same time
		create(t, store, id, 0)
		tell(t, store, id, 1, told{id + "1", continuo.RunBegan}, told{id + "2", continuo.RunBegan}, told{id + "1", continuo.RunHeld}, told{id + "3", continuo.RunBegan})
	}
	for what, test := range map[string]struct {
		query continuo.RunQuery
		want  []string
	}{
		"all":                        {continuo.RunQuery{}, []string{"c3", "b3", "a3", "c2", "b2", "a2", "c1", "b1", "a1"}},
		"of a conversation":          {continuo.RunQuery{ConversationID: "b"}, []string{"b3", "b2", "b1"}},
		"of a workflow":              {continuo.RunQuery{WorkflowID: "workflow of b2"}, []string{"b2"}},
		"of a state":                 {continuo.RunQuery{State: continuo.RunWaiting}, []string{"c1", "b1", "a1"}},
		"of all three":               {continuo.RunQuery{ConversationID: "b", WorkflowID: "workflow of b1", State: continuo.RunWaiting}, []string{"b1"}},
		"of a state that none has":   {continuo.RunQuery{ConversationID: "b", State: continuo.RunFinished}, nil},
		"of an unknown conversation": {continuo.RunQuery{ConversationID: "none"}, nil},
		"of another project's":       {continuo.RunQuery{ConversationID: "other"}, nil},
	} {
		for limit := 1; limit <= len(test.want)+1; limit++ {
			test.query.ProjectID, test.query.Limit = "p", limit
			same(t, fmt.Sprintf("%s, in pages of %d", what, limit), listRuns(t, store, test.query), test.want)
		}
	}
	expectError(t, "a limit of 0", second(store.Runs(ctx, continuo.RunQuery{ProjectID: "p"})), continuo.ErrInvalid)
}

func testRunningRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	elsewhere := conversation("c")
	elsewhere.ProjectID = "q"
	noError(t, store.Create(ctx, elsewhere, nil))
	create(t, store, "a", 0)
	create(t, store, "b", 0)
	tell(t, store, "a", 1, told{"a1", continuo.RunBegan}, told{"a2", continuo.RunBegan}, told{"a3", continuo.RunBegan}, told{"a1", continuo.RunNodeBegan}, told{"a3", continuo.RunHeld})
	tell(t, store, "b", 1, told{"b1", continuo.RunBegan}, told{"b2", continuo.RunBegan}, told{"b2", continuo.RunEnded})
	tell(t, store, "c", 1, told{"c1", continuo.RunBegan}, told{"c1", continuo.RunNodeBegan}, told{"c1", continuo.RunNodeBegan})
	expect := func(before time.Time, limit int, want ...string) {
		t.Helper()
		running, err := store.RunningRuns(ctx, before, limit)
		noError(t, err)
		var got []string
		for _, run := range running {
			got = append(got, run.ID)
			byID, err := store.Run(ctx, run.ProjectID, run.ID)
			noError(t, err)
			same(t, run.ID, run, byID)
		}
		same(t, fmt.Sprintf("the first %d before %s", limit, before), got, want)
	}
	expect(at(100), 9, "b1", "a2", "c1", "a1")
	expect(at(100), 2, "b1", "a2")
	expect(at(3), 9, "b1", "a2") // not those of just then
	expect(at(1), 9)
	tell(t, store, "a", 6, told{"a3", continuo.RunResumed}, told{"a2", continuo.RunBrokeOff})
	noError(t, store.Delete(ctx, "b"))
	expect(at(100), 9, "c1", "a1", "a3")
	expectError(t, "a limit of 0", second(store.RunningRuns(ctx, at(9), 0)), continuo.ErrInvalid)
}

// expectNoRuns expects nothing to be found of a run that ran.
func expectNoRuns(t *testing.T, what string, store continuo.Store, conversationID, runID string) {
	t.Helper()
	expectRuns(t, what, store, conversationID)
	expectError(t, what+": the run", second(store.Run(t.Context(), "p", runID)), continuo.ErrNotFound)
	running, err := store.RunningRuns(t.Context(), at(1000), 99)
	noError(t, err)
	if slices.ContainsFunc(running, func(r continuo.Run) bool { return r.ConversationID == conversationID }) {
		t.Errorf("%s: it has running runs: %+v", what, running)
	}
}

// testDeletedRuns deletes a conversation that a fork begins with, and one that nobody needs.
func testDeletedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for _, id := range []string{"a", "b"} {
		create(t, store, id, 0)
		tell(t, store, id, 1, told{"r_" + id, continuo.RunBegan})
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
	// One that comes back as it was has its runs again.
	kept[0].Conversation.Deleted = false
	noError(t, store.PutRecords(ctx, "a", kept[:1]))
	expectRuns(t, "not deleted any more", store, "a", runOf("a", "r_a", 1, 1, continuo.RunRunning))
}

func testArchivedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	tell(t, store, "a", 1, told{"r1", continuo.RunBegan}, told{"r1", continuo.RunHeld}, told{"r2", continuo.RunBegan}, told{"r2", continuo.RunEnded}, told{"r2", continuo.RunNodeBegan})
	tell(t, store, "a", 6, told{"r3", continuo.RunBegan})
	over := runOf("a", "r2", 3, 5, continuo.RunFinished)
	over.EndedAt = at(4)
	want := []continuo.Run{runOf("a", "r3", 6, 6, continuo.RunRunning), over, runOf("a", "r1", 1, 2, continuo.RunWaiting)}
	noError(t, store.Create(ctx, forkOf("fork", continuo.Segment{ConversationID: "a", Through: 2}), nil))
	whole := records(t, store, "a", 99)
	noError(t, store.Archive(ctx, seenAs(t, store, "a", 6), at(77)))
	expectNoRuns(t, "archived", store, "a", "r3")
	for some := range slices.Chunk(whole[1:], 2) {
		for range 2 { // a restore that was stopped begins anew
			noError(t, store.PutArchived(ctx, "a", at(77), some))
			expectNoRuns(t, "before all of it is back", store, "a", "r3")
		}
	}
	noError(t, store.Restore(ctx, "a"))
	expectRuns(t, "restored", store, "a", want...)
	tell(t, store, "a", 7, told{"r3", continuo.RunHeld})
	want[0] = runOf("a", "r3", 6, 7, continuo.RunWaiting)
	expectRuns(t, "and gone on with", store, "a", want...)

	// A copy that says that it is archived, and one that says that it is not any more.
	all := records(t, store, "a", 99)
	noError(t, store.Archive(ctx, seenAs(t, store, "a", 7), at(78)))
	noError(t, store.PutRecords(ctx, "a", all[1:]))
	expectNoRuns(t, "entries of what is archived", store, "a", "r3")
	noError(t, store.PutRecords(ctx, "a", all[:1]))
	expectRuns(t, "a copy that is not archived", store, "a", want...)
	own := *all[0].Conversation
	own.ArchivedAt = at(79)
	noError(t, store.PutRecords(ctx, "a", []continuo.Record{{Conversation: &own}}))
	expectNoRuns(t, "a copy that is archived", store, "a", "r3")
}

// testCopiedRuns copies a conversation with runs in pages of all sizes.
func testCopiedRuns(t *testing.T, opener Opener) {
	from, store, ctx := NewMemory(), open(t, opener), t.Context()
	create(t, from, "a", 0)
	tell(t, from, "a", 1, told{"r1", continuo.RunBegan}, told{"r1", continuo.RunNodeBegan}, told{"r2", continuo.RunBegan})
	appendEntries(t, from, "a", 4, 9)
	tell(t, from, "a", 10, told{"r1", continuo.RunHeld}, told{"r2", continuo.RunEnded}, told{"none", continuo.RunEnded})
	want := []continuo.Run{runOf("a", "r2", 3, 11, continuo.RunFinished), runOf("a", "r1", 1, 10, continuo.RunWaiting)}
	whole := records(t, from, "a", 99)
	for size := 1; size <= len(whole); size++ {
		for some := range slices.Chunk(whole, size) {
			noError(t, store.PutRecords(ctx, "a", some))
		}
		expectRuns(t, fmt.Sprintf("copied in pages of %d", size), store, "a", want...)
		for some := range slices.Chunk(whole, size) { // what is there already changes nothing
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
	noError(t, store.PutRecords(ctx, "a", []continuo.Record{{Conversation: &moved}}))
	expectError(t, "in the project that it was in", second(store.Run(ctx, "p", "r1")), continuo.ErrNotFound)
	same(t, "in another project", listRuns(t, store, continuo.RunQuery{ProjectID: "q", Limit: 9}), []string{"r2", "r1"})
}

// testReplacedRuns copies one conversation over another one that went on in a different way.
func testReplacedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	tell(t, store, "a", 1, told{"r1", continuo.RunBegan}, told{"r1", continuo.RunHeld}, told{"r1", continuo.RunEnded}, told{"r2", continuo.RunBegan})
	put := func(made ...continuo.Entry) {
		t.Helper()
		var put []continuo.Record
		for i := range made {
			put = append(put, continuo.Record{Entry: &made[i]})
		}
		noError(t, store.PutRecords(ctx, "a", put))
	}
	put(eventEntries("a", 3, told{"r1", continuo.RunBrokeOff}, told{"r3", continuo.RunBegan})...)
	want := []continuo.Run{runOf("a", "r3", 4, 4, continuo.RunRunning), runOf("a", "r1", 1, 3, continuo.RunFailed)}
	expectRuns(t, "another end, and another run", store, "a", want...)
	expectError(t, "the run that was replaced", second(store.Run(ctx, "p", "r2")), continuo.ErrNotFound)
	put(entries("a", 3, 4)...)
	expectRuns(t, "entries that tell of no run", store, "a", runOf("a", "r1", 1, 2, continuo.RunWaiting))
	put(eventEntries("a", 3, told{"r1", continuo.RunCalledOff})...)
	expectRuns(t, "an end in the middle", store, "a", runOf("a", "r1", 1, 3, continuo.RunCancelled))
	put(entries("a", 1, 1)...)
	expectRuns(t, "without its beginning", store, "a")
}

func testRedactedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	tell(t, store, "a", 1, told{"r1", continuo.RunBegan}, told{"r1", continuo.RunNodeFinished}, told{"r1", continuo.RunEnded})
	want := runOf("a", "r1", 1, 3, continuo.RunFinished)
	all := readAll(t, store, "a")
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(all[0]), redacted(all[1])}))
	expectRuns(t, "redacted", store, "a", want)
	same(t, "the event of a redacted entry", readAll(t, store, "a")[1].RunEvent, all[1].RunEvent)
	// A copy brings only what differs.
	middle := redacted(all[1])
	noError(t, store.PutRecords(ctx, "a", []continuo.Record{{Entry: &middle}}))
	expectRuns(t, "a redaction that was copied", store, "a", want)
}

func testForkedRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	tell(t, store, "a", 1, told{"r1", continuo.RunBegan}, told{"r1", continuo.RunNodeBegan})
	noError(t, store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "a", Through: 2}), nil))
	expectRuns(t, "of the fork", store, "b")
	tell(t, store, "b", 3, told{"r1", continuo.RunEnded}, told{"r2", continuo.RunBegan})
	of := map[string]continuo.Run{"a": runOf("a", "r1", 1, 2, continuo.RunRunning), "b": runOf("b", "r2", 4, 4, continuo.RunRunning)}
	for id, run := range of {
		expectRuns(t, "of "+id, store, id, run)
	}
	noError(t, store.Archive(ctx, seenAs(t, store, "a", 2), at(9)))
	noError(t, store.Restore(ctx, "a")) // the fork kept all of its entries
	noError(t, store.PutRecords(ctx, "b", records(t, store, "b", 99)))
	for id, run := range of {
		expectRuns(t, "made anew, of "+id, store, id, run)
	}
	noError(t, store.Delete(ctx, "a"))
	expectRuns(t, "of the fork that is left", store, "b", of["b"])
}

func testRunsDurable(t *testing.T, opener Opener) {
	store := opener(t)
	create(t, store, "a", 0)
	tell(t, store, "a", 1, told{"r1", continuo.RunBegan}, told{"r2", continuo.RunBegan}, told{"r2", continuo.RunEnded})
	tell(t, store, "a", 4, told{"r1", continuo.RunHeld})
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

// testRunsAtOnce has runs go on in many conversations at once; some batches are refused.
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

func runThrough(ctx context.Context, store continuo.Store, i int) error {
	id, run := fmt.Sprint("c", i), fmt.Sprint("r", i)
	for seq, kinds := int64(1), [][]continuo.RunEventKind{{continuo.RunBegan, continuo.RunNodeBegan}, {continuo.RunNodeFinished}, {continuo.RunHeld, continuo.RunEnded}}; len(kinds) > 0; kinds = kinds[1:] {
		var events []told
		for _, kind := range kinds[0] {
			events = append(events, told{run, kind})
		}
		stale := tellingBatch(id, seq+1, told{run, continuo.RunCalledOff})
		var conflict *continuo.ConflictError
		if err := store.Append(ctx, stale); i%2 == 0 && !errors.As(err, &conflict) {
			return fmt.Errorf("a batch for another place: %w", err)
		}
		if err := store.Append(ctx, tellingBatch(id, seq, events...)); err != nil {
			return err
		}
		seq += int64(len(events))
	}
	return nil
}
