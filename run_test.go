package continuo_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// runEntry is an entry with an event of a run.
func runEntry(event continuo.RunEvent) continuo.Entry {
	return continuo.Entry{
		Role: continuo.System, Hidden: true, Content: continuo.Text("about the run"),
		RunID: "run_1", WorkflowID: "report", NodeID: "draft", RunEvent: &event,
	}
}

func TestRunChangesAreWhatTheEventsSay(t *testing.T) {
	when := time.Date(2026, 3, 1, 12, 0, 0, 1, time.UTC)
	states := map[continuo.RunEventKind]continuo.RunState{
		continuo.RunBegan: continuo.RunRunning, continuo.RunNodeBegan: "", continuo.RunNodeRefused: "",
		continuo.RunNodeFinished: "", continuo.RunNodeAsked: "", continuo.RunEventWaiting: continuo.RunWaiting,
		continuo.RunEventFinished: continuo.RunFinished, continuo.RunEventFailed: continuo.RunFailed, continuo.RunEventStopped: continuo.RunStopped,
		continuo.RunResumed: continuo.RunRunning, continuo.RunEventCancelled: continuo.RunCancelled, "of a later version": "",
	}
	entries := []continuo.Entry{{Seq: 1, RunID: "run_1", CreatedAt: when}} // of the run, but no event
	var want []continuo.RunChange
	for kind, state := range states {
		entry, at := runEntry(continuo.RunEvent{Kind: kind}), when.Add(time.Duration(len(entries))*time.Second)
		entry.Seq, entry.CreatedAt = int64(len(entries)+1), at
		entries = append(entries, entry)
		want = append(want, continuo.RunChange{
			RunID: "run_1", WorkflowID: "report", Begins: kind == continuo.RunBegan, Seq: entry.Seq, State: state, At: at,
		})
	}
	if got := continuo.RunChanges(entries); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n\t%+v\nwant\n\t%+v", got, want)
	}
	for _, state := range []continuo.RunState{continuo.RunRunning, continuo.RunWaiting, continuo.RunFailed, continuo.RunStopped, ""} {
		if state.IsOver() {
			t.Errorf("a run that is %q can go on", state)
		}
	}
	if !continuo.RunFinished.IsOver() || !continuo.RunCancelled.IsOver() {
		t.Error("a finished or cancelled run is over")
	}
}

// batches is a store that remembers what it was asked to commit.
type batches struct {
	continuo.Store
	asked []continuo.Batch
}

func (b *batches) Append(ctx context.Context, batch continuo.Batch) error {
	b.asked = append(b.asked, batch)
	return b.Store.Append(ctx, batch)
}

func TestAppendCommitsEntriesAndRunsTogether(t *testing.T) {
	store, ctx := &batches{Store: storetest.NewMemory()}, t.Context()
	log := continuo.NewLog(store, continuo.LogOptions{})
	conversation, err := log.Create(ctx, continuo.Conversation{ProjectID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	appended := func(options continuo.AppendOptions, events ...continuo.RunEvent) ([]continuo.Entry, error) {
		entries := []continuo.Entry{{Role: continuo.User, Content: continuo.Text("go")}}
		for _, event := range events {
			entries = append(entries, runEntry(event))
		}
		return log.Append(ctx, conversation.ID, entries, options)
	}
	began := continuo.RunEvent{Kind: continuo.RunBegan, Workflow: "sha", Inputs: json.RawMessage(`{"topic":"tea"}`)}
	first, err := appended(continuo.AppendOptions{Key: "k"}, began, continuo.RunEvent{Kind: continuo.RunNodeBegan, Visit: 1, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := continuo.Run{
		ID: "run_1", ConversationID: conversation.ID, ProjectID: "p", WorkflowID: "report", State: continuo.RunRunning,
		FirstSeq: 2, StartedAt: first[1].CreatedAt, UpdatedAt: first[2].CreatedAt,
	}
	expect := func(what string) {
		t.Helper()
		if got, err := log.Runs().Run(ctx, "p", "run_1"); err != nil || got != want {
			t.Errorf("%s: got\n\t%+v (%v)\nwant\n\t%+v", what, got, err, want)
		}
	}
	expect("begun")
	if len(store.asked) != 1 || len(store.asked[0].Entries) != 3 || len(store.asked[0].Runs) != 2 {
		t.Errorf("entries and changes of runs are not one batch: %+v", store.asked)
	}
	ended := continuo.RunEvent{Kind: continuo.RunEventFinished, Outputs: json.RawMessage(`{}`)}
	var conflict *continuo.ConflictError
	if _, err := appended(continuo.AppendOptions{ExpectSeq: 1}, ended); !errors.As(err, &conflict) {
		t.Errorf("an append to another place: %v", err)
	}
	expect("after an append that was refused")
	last, err := appended(continuo.AppendOptions{}, ended)
	if err != nil {
		t.Fatal(err)
	}
	want.State, want.UpdatedAt, want.EndedAt = continuo.RunFinished, last[1].CreatedAt, last[1].CreatedAt
	expect("ended")
	again, err := appended(continuo.AppendOptions{Key: "k"}, began, continuo.RunEvent{Kind: continuo.RunNodeBegan, Visit: 1, Attempt: 1})
	if err != nil || len(again) != 3 || again[1].Seq != 2 {
		t.Errorf("the first append again: %+v (%v)", again, err)
	}
	expect("after the first append came again")
	if runs, err := log.Runs().Runs(ctx, continuo.RunQuery{ProjectID: "p", Limit: 9}); err != nil || len(runs) != 1 {
		t.Errorf("%d runs (%v)", len(runs), err)
	}
}

func TestAnImportBeginsNoRuns(t *testing.T) {
	log, ctx := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{}), t.Context()
	given := []continuo.Entry{runEntry(continuo.RunEvent{Kind: continuo.RunBegan}), runEntry(continuo.RunEvent{Kind: continuo.RunEventWaiting})}
	conversation, err := log.Import(ctx, continuo.Conversation{}, given)
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range log.Read(ctx, conversation, continuo.Range{}) {
		if err != nil || entry.RunEvent != nil {
			t.Errorf("entry %d has the event %+v (%v)", entry.Seq, entry.RunEvent, err)
		}
		if entry.RunID != "run_1" || entry.WorkflowID != "report" || entry.NodeID != "draft" {
			t.Errorf("entry %d does not say any more of which run it is: %+v", entry.Seq, entry)
		}
	}
	if given[0].RunEvent == nil {
		t.Error("the caller's own entries were changed")
	}
	if runs, err := log.Runs().Runs(ctx, continuo.RunQuery{ProjectID: conversation.ProjectID, Limit: 9}); err != nil || len(runs) != 0 {
		t.Errorf("the import has runs: %+v (%v)", runs, err)
	}
}

func TestARedactionKeepsTheShapeOfARunEvent(t *testing.T) {
	log, ctx := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{}), t.Context()
	conversation, err := log.Create(ctx, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	const secret = "hunter2"
	words := json.RawMessage(`{"password":"` + secret + `"}`)
	_, err = log.Append(ctx, conversation.ID, []continuo.Entry{
		runEntry(continuo.RunEvent{Kind: continuo.RunBegan, Workflow: "sha", Inputs: words}),
		runEntry(continuo.RunEvent{Kind: continuo.RunNodeRefused, Visit: 2, Attempt: 3, Reason: "it says " + secret}),
		runEntry(continuo.RunEvent{Kind: continuo.RunNodeFinished, Visit: 2, Outputs: words, Next: []string{"check", "send"}}),
		runEntry(continuo.RunEvent{Kind: continuo.RunEventFailed, Reason: secret}),
	}, continuo.AppendOptions{})
	if err == nil {
		conversation, err = log.Conversation(ctx, conversation.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	before, err := log.Runs().Run(ctx, conversation.ProjectID, "run_1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Redact(ctx, conversation, 1, 0, ""); err != nil {
		t.Fatal(err)
	}
	want := []continuo.RunEvent{
		{Kind: continuo.RunBegan, Workflow: "sha"},
		{Kind: continuo.RunNodeRefused, Visit: 2, Attempt: 3},
		{Kind: continuo.RunNodeFinished, Visit: 2, Next: []string{"check", "send"}},
		{Kind: continuo.RunEventFailed},
	}
	for entry, err := range log.Read(ctx, conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.RunEvent == nil || !reflect.DeepEqual(*entry.RunEvent, want[entry.Seq-1]) {
			t.Errorf("entry %d has the event %+v, want %+v", entry.Seq, entry.RunEvent, want[entry.Seq-1])
		}
		if text, err := json.Marshal(entry); err != nil || strings.Contains(string(text), secret) {
			t.Errorf("entry %d still says it (%v): %s", entry.Seq, err, text)
		}
		if entry.RunID != "run_1" || entry.WorkflowID != "report" || entry.NodeID != "draft" {
			t.Errorf("entry %d does not say any more of which run it is: %+v", entry.Seq, entry)
		}
	}
	if after, err := log.Runs().Run(ctx, conversation.ProjectID, "run_1"); err != nil || after != before {
		t.Errorf("the index has %+v (%v), want %+v", after, err, before)
	}
}

func TestAForkTakesOverModeAndAgent(t *testing.T) {
	log, ctx := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{}), t.Context()
	parent, err := log.Create(ctx, continuo.Conversation{ActiveMode: continuo.ModeAgent})
	if err != nil {
		t.Fatal(err)
	}
	writer := "writer"
	if parent, err = log.Update(ctx, parent.ID, continuo.ConversationChange{ActiveAgent: &writer}); err != nil || parent.ActiveAgent != writer {
		t.Fatalf("the agent is %q (%v)", parent.ActiveAgent, err)
	}
	for wish, want := range map[string]string{"": "writer", "editor": "editor"} {
		fork, err := log.Fork(ctx, parent.ID, 0, continuo.Conversation{ActiveAgent: wish})
		if err == nil {
			fork, err = log.Conversation(ctx, fork.ID)
		}
		if err != nil || fork.ActiveAgent != want || fork.ActiveMode != continuo.ModeAgent {
			t.Errorf("a fork that asks for %q has the agent %q and the mode %q (%v), want %q", wish, fork.ActiveAgent, fork.ActiveMode, err, want)
		}
	}
}
