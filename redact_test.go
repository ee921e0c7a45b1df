package continuo_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestARedactionErasesContentAndKeepsTheShape redacts a group with everything that an entry can hold.
func TestARedactionErasesContentAndKeepsTheShape(t *testing.T) {
	objects := storetest.NewObjects()
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Objects: objects, MaxInlineOutput: 10})
	const secret = "hunter2"
	call := continuo.FunctionCall("c1", "look", `{"q":"`+secret+`"}`)
	call.Extra = json.RawMessage(`{"x":"` + secret + `"}`)
	entries := []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("my password is " + secret), Name: secret, Author: &continuo.Author{DisplayName: secret, AgentName: secret, RoleName: secret}, AgentID: secret, PartType: secret},
		{
			Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{call},
			Reasoning: &continuo.Reasoning{Text: secret, Signature: secret}, Vendor: map[string]json.RawMessage{"v": json.RawMessage(`"` + secret + `"`)},
			Author: &continuo.Author{DisplayName: secret, AgentName: secret, RoleName: "builder"},
			Extra:  json.RawMessage(`{"y":"` + secret + `"}`), Widget: json.RawMessage(`"` + secret + `"`),
		},
		{Role: continuo.Tool, ToolCallID: "c1", Content: continuo.Text(strings.Repeat(secret+"\n", 50)), Outcome: "Found " + secret},
		{Role: continuo.Assistant, Content: continuo.Text(secret + " it is"), Error: &continuo.TurnError{
			Code: continuo.LLMError, Reason: continuo.ReasonNetwork, Message: secret, PartialToolCalls: []continuo.PartialToolCall{{Arguments: secret}},
		}},
		{Role: continuo.User, Content: continuo.Text("thanks")},
	}
	conversation, err := log.Import(t.Context(), continuo.Conversation{Title: "my password is " + secret[:3] + "…"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	redacted, err := log.Redact(t.Context(), conversation, 1, 4, "asked for")
	if err != nil || len(redacted) != 4 {
		t.Fatalf("%d entries, %v", len(redacted), err)
	}
	var kept []continuo.Entry
	for entry, err := range log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(entry)
		if err != nil || strings.Contains(string(text), secret) {
			t.Errorf("entry %d still says it (%v): %s", entry.Seq, err, text)
		}
		kept = append(kept, entry)
	}
	var group continuo.Group
	for i := range kept {
		if err := group.Accept(&kept[i]); err != nil || kept[i].Role != entries[i].Role || kept[i].Seq != int64(i+1) {
			t.Errorf("entry %d has lost its place: %v %+v", i+1, err, kept[i])
		}
	}
	if len(kept) != 5 || kept[2].Redacted == nil || kept[2].Redacted.Reason != "asked for" || kept[4].Redacted != nil || kept[4].Content.String() != "thanks" {
		t.Errorf("kept %+v", kept)
	}
	for object := range objects.Objects(t.Context(), "") {
		t.Errorf("object %s is still there", object.Name)
	}
	now, err := log.Conversation(t.Context(), conversation.ID)
	if err != nil || now.Title != continuo.RedactedText {
		t.Errorf("title %q, %v", now.Title, err)
	}
	if again, err := log.Redact(t.Context(), conversation, 1, 4, "twice"); err != nil || len(again) != 0 {
		t.Errorf("a second redaction: %+v, %v", again, err)
	}
}

func TestARedactionThroughAForkIsSeenByAll(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	parent, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("one")}, {Role: continuo.Assistant, Content: continuo.Text("two")},
	})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := log.Fork(t.Context(), parent.ID, 0, continuo.Conversation{})
	if err == nil {
		_, err = log.Append(t.Context(), fork.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("three")}}, continuo.AppendOptions{})
	}
	if err == nil {
		fork, err = log.Conversation(t.Context(), fork.ID)
	}
	if err == nil {
		_, err = log.Redact(t.Context(), fork, 2, 0, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{parent.ID: "one [redacted]", fork.ID: "one [redacted] [redacted]"} {
		conversation, err := log.Conversation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for entry, err := range log.Read(t.Context(), conversation, continuo.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, entry.Content.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s reads %q, want %q", id, got, want)
		}
	}
	for _, r := range [][2]int64{{0, 1}, {3, 2}, {1, 9}} {
		if _, err := log.Redact(t.Context(), fork, r[0], r[1], ""); !errors.Is(err, continuo.ErrBadRange) {
			t.Errorf("range %v: %v", r, err)
		}
	}
}

// TestARedactionReachesTitlesMadeOfTheEntries redacts through a fork what its parent's title repeats.
func TestARedactionReachesTitlesMadeOfTheEntries(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	parent, err := log.Import(t.Context(), continuo.Conversation{Title: "my password is hun…"}, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("my\tpassword is hunter2\nkeep it")},
	})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := log.Fork(t.Context(), parent.ID, 0, continuo.Conversation{Title: "another title"})
	if err == nil {
		_, err = log.Redact(t.Context(), fork, 1, 0, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{parent.ID: continuo.RedactedText, fork.ID: "another title"} {
		if found, err := log.Conversation(t.Context(), id); err != nil || found.Title != want {
			t.Errorf("the title is %q (%v), want %q", found.Title, err, want)
		}
	}
}

// summary is an entry that replaces the entries from and through.
func summary(from, through int64, role, text string) continuo.Entry {
	part := continuo.PartSummary
	if role != "" {
		part = continuo.PartNotes
	}
	return continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: part, Content: continuo.Text(text),
		Summary: &continuo.Summary{From: from, Through: through, Role: role, By: "extractive", Decisions: []string{text}},
	}
}

// TestARedactionTakesWhatSummariesRepeat redacts entries of a parent, of a fork, and of the parent through the fork.
func TestARedactionTakesWhatSummariesRepeat(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	add := func(id string, entries ...continuo.Entry) continuo.Conversation {
		t.Helper()
		if _, err := log.Append(t.Context(), id, entries, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		conversation, err := log.Conversation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return conversation
	}
	user := func(text string) continuo.Entry {
		return continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
	}
	parent, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	parent = add(parent.ID, user("p1"), user("p2"), user("p3"), summary(1, 2, "", "p1 p2"), summary(3, 3, "ann", "p3"))
	fork, err := log.Fork(t.Context(), parent.ID, 0, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	parent = add(parent.ID, user("p6"), summary(1, 6, "", "p1 p2 p3 p6"))
	fork = add(fork.ID, user("f6"), summary(1, 6, "", "p1 p2 p3 f6"), summary(6, 6, "ben", "f6"))

	seqs := func(entries []continuo.Entry) (seqs []int64) {
		for i := range entries {
			if text := entries[i].Content.String(); text != continuo.RedactedText {
				t.Errorf("entry %d says %q", entries[i].Seq, text)
			}
			if s := entries[i].Summary; s != nil && len(s.Decisions) > 0 {
				t.Errorf("entry %d says what was decided: %q", entries[i].Seq, s.Decisions)
			}
			seqs = append(seqs, entries[i].Seq)
		}
		return seqs
	}
	redact := func(conversation continuo.Conversation, seq int64, want ...int64) {
		t.Helper()
		redacted, err := log.Redact(t.Context(), conversation, seq, seq, "")
		if got := seqs(redacted); err != nil || !slices.Equal(got, want) {
			t.Errorf("redacting entry %d: %v redacted, %v; want %v", seq, got, err, want)
		}
	}
	redact(parent, 6, 6, 7)  // the fork's entry 6 is another one, and so is what its summaries say
	redact(fork, 6, 6, 7, 8) // of the parent nothing
	redact(fork, 3, 3, 5)    // the parent's, through the fork
	redact(parent, 1, 1, 4)  // what was redacted before is not again
	redact(parent, 2, 2)
}

// appending appends an entry while a redaction is stored.
type appending struct {
	continuo.Store
	before func()
}

func (a *appending) Redact(ctx context.Context, id string, entries []continuo.Entry) error {
	if do := a.before; do != nil {
		a.before = nil
		do()
	}
	return a.Store.Redact(ctx, id, entries)
}

// TestARedactionTakesASummaryThatIsMadeMeanwhile has one appended, in the conversation or in a fork, after the redaction has
// looked for summaries.
func TestARedactionTakesASummaryThatIsMadeMeanwhile(t *testing.T) {
	for _, inFork := range []bool{false, true} {
		store := &appending{Store: storetest.NewMemory()}
		log := continuo.NewLog(store, continuo.LogOptions{})
		said := continuo.Entry{Role: continuo.User, Content: continuo.Text("my password is hunter2")}
		conversation, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{said, {Role: continuo.Assistant, Content: continuo.Text("ok")}})
		if err != nil {
			t.Fatal(err)
		}
		of := conversation
		if inFork {
			if of, err = log.Fork(t.Context(), conversation.ID, 2, continuo.Conversation{}); err != nil {
				t.Fatal(err)
			}
		}
		store.before = func() {
			late := continuo.Entry{
				Role: continuo.System, Hidden: true, PartType: continuo.PartSummary, Content: continuo.Text("The password is hunter2."),
				Summary: &continuo.Summary{From: 1, Through: 2, By: "small"},
			}
			if _, err := log.Append(t.Context(), of.ID, []continuo.Entry{late}, continuo.AppendOptions{}); err != nil {
				t.Error(err)
			}
		}
		if _, err := log.Redact(t.Context(), conversation, 1, 1, ""); err != nil {
			t.Fatal(err)
		}
		if of, err = log.Conversation(t.Context(), of.ID); err != nil {
			t.Fatal(err)
		}
		for entry, err := range log.Read(t.Context(), of, continuo.Range{}) {
			if err != nil || strings.Contains(entry.Content.String(), "hunter2") {
				t.Errorf("in the fork: %v, %v, entry %d: %q", inFork, err, entry.Seq, entry.Content.String())
			}
		}
		if of.LastSeq != 3 {
			t.Errorf("nothing was appended meanwhile: %d entries", of.LastSeq)
		}
	}
}

func TestARedactionThroughAForkReachesTheParentsSummaries(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	parent, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("one")}})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := log.Fork(t.Context(), parent.ID, 0, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), parent.ID, []continuo.Entry{summary(1, 1, "", "one")}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if redacted, err := log.Redact(t.Context(), fork, 1, 1, ""); err != nil || len(redacted) != 2 {
		t.Errorf("%d entries redacted, %v; want the entry and the parent's summary", len(redacted), err)
	}
}

// What a run needs to go on stays of a redacted event; who repaired it, why, and its values go.
func TestARedactedEventKeepsWhatItsRunNeeds(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	conversation, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	event := continuo.RunEvent{
		Kind: continuo.RunReplaced, Workflow: "sha", Visit: 2, Attempt: 3, Next: []string{"b"}, Until: time.Unix(1000, 0).UTC(),
		Followed: map[string][]string{"a": {"b"}}, Dropped: []string{"c"}, By: "user ann", Reason: "it said so", Inputs: []byte(`{"topic":"tea"}`),
	}
	entry := continuo.Entry{Role: continuo.System, Hidden: true, PartType: "run_event", Content: continuo.Text("x"), Mode: continuo.ModeRun, RunID: "run_1", WorkflowID: "w", RunEvent: &event}
	if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("go"), RunID: "run_1", WorkflowID: "w", RunEvent: &continuo.RunEvent{Kind: continuo.RunBegan}}, entry}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if conversation, err = log.Conversation(t.Context(), conversation.ID); err != nil {
		t.Fatal(err)
	}
	redacted, err := log.Redact(t.Context(), conversation, 2, 2, "")
	if err != nil || len(redacted) != 1 {
		t.Fatal(redacted, err)
	}
	want := event
	want.By, want.Reason, want.Inputs = "", "", nil
	if !reflect.DeepEqual(*redacted[0].RunEvent, want) {
		t.Errorf("it keeps %+v", *redacted[0].RunEvent)
	}
}
