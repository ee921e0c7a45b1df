package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// What the audit shows of a run's next step is what the step is sent: its system messages before it begins, and all of the
// request once its cue is in the log.
func TestTheContextOfARunIsWhatItsNextStepIsSent(t *testing.T) {
	m := &scriptedModel{answer: answerWell}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	run := startRun(t, e, "s1")
	awaitRun(t, e, run)
	conversation, cues := cuesOf(t, e, run)
	sent := m.requests()
	if len(sent) != len(cues) {
		t.Fatalf("%d requests for %d cues", len(sent), len(cues))
	}
	for _, cue := range cues {
		if cue.RunEvent.Branch != "" { // its request is built from the branch
			continue
		}
		i := slices.IndexFunc(sent, func(a stepRequest) bool { return a.step == cue.NodeID && a.visit == fmt.Sprint(cue.RunEvent.Visit) })
		for _, at := range []int64{cue.Seq - 1, cue.Seq} {
			shown, err := e.Contexts.Build(t.Context(), conversation, engine.ContextRequest{RunID: run.ID, At: at, System: true})
			if err != nil {
				t.Fatalf("the step %s at %d: %v", cue.NodeID, at, err)
			}
			got := parseStepRequest(rawjson.MustMarshal(map[string][]json.RawMessage{"messages": shown.Messages}))
			if !slices.Equal(got.system, sent[i].system) {
				t.Errorf("the step %s at %d is shown\n%s\nand was sent\n%s", cue.NodeID, at, strings.Join(got.system, "\n\n"), strings.Join(sent[i].system, "\n\n"))
			}
			if at == cue.Seq && !slices.Equal(got.messages, sent[i].messages) {
				t.Errorf("the step %s is shown the history %q, and was sent %q", cue.NodeID, got.messages, sent[i].messages)
			}
			if shown.View != string(continuo.ModeRun) {
				t.Errorf("the step %s is shown by the view %s", cue.NodeID, shown.View)
			}
		}
	}
}

// cuesOf finds the entries that a run's turns began with.
func cuesOf(t *testing.T, e *testEngine, run continuo.Run) (conversation continuo.Conversation, cues []continuo.Entry) {
	t.Helper()
	conversation, err := e.Log.Conversation(t.Context(), run.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.RunEvent != nil && entry.RunEvent.Kind == continuo.RunNodeBegan {
			cues = append(cues, entry)
		}
	}
	return conversation, cues
}

func TestARunWithoutANextStepHasNoContext(t *testing.T) {
	m := &scriptedModel{answer: answerWell}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	for _, session := range []string{"s1", "other"} {
		chat, err := e.Turns.Chat(t.Context(), request(session, "hello"))
		if err != nil {
			t.Fatal(err)
		}
		lastOf(t, chat)
	}
	run := startRun(t, e, "s1")
	awaitRun(t, e, run)
	conversation, _ := cuesOf(t, e, run)
	other, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "other")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		in      continuo.Conversation
		request engine.ContextRequest
		want    error
		message string
	}{
		{"waits", conversation, engine.ContextRequest{RunID: run.ID}, continuo.ErrInvalid, "it is waiting there"},
		{"not begun", conversation, engine.ContextRequest{RunID: run.ID, At: 1}, continuo.ErrBadRange, "began with entry 3"},
		{"elsewhere", other, engine.ContextRequest{RunID: run.ID}, continuo.ErrNotFound, other.ID},
		{"unknown", conversation, engine.ContextRequest{RunID: "run_none"}, continuo.ErrNotFound, "run_none"},
	} {
		if _, err := e.Contexts.Build(t.Context(), test.in, test.request); !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// lone is a workflow of one step, which may use one of two tools.
const lone = `
id: lone
name: A lone step
nodes:
  only: {brief: Do it., tools: [look], view: continuity}
`

// Of a run that broke off the audit shows the step that it would continue with, by the step's own view and tools.
func TestTheContextOfARunThatFailedIsThatOfItsResumption(t *testing.T) {
	m := &scriptedModel{answer: func(stepRequest) (string, error) {
		return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "no"}
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		o.Workflows = newWorkflowSource(t, lone)
		o.Tools, o.Policy = tool.Set{&counted{name: "look"}, &counted{name: "push"}}, tool.Policy{Otherwise: tool.Allow}
	})
	status, err := e.Runs.Start(t.Context(), engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: "s1", Workflow: "lone", Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	if last := awaitRun(t, e, status.Run); last.State != continuo.RunFailed {
		t.Fatalf("it is %s", last.State)
	}
	conversation, cues := cuesOf(t, e, status.Run)
	shown, err := e.Contexts.Build(t.Context(), conversation, engine.ContextRequest{RunID: status.Run.ID, System: true})
	if err != nil {
		t.Fatal(err)
	}
	got := parseStepRequest(rawjson.MustMarshal(map[string][]json.RawMessage{"messages": shown.Messages}))
	if got.step != "only" || shown.View != "continuity" {
		t.Errorf("it shows the step %q by the view %s", got.step, shown.View)
	}
	for event, err := range e.Turns.Follow(t.Context(), continuo.Turn{ConversationID: conversation.ID, ID: cues[0].TurnID}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == turn.Planned && event.Plan.Totals.PromptSize != shown.Plan.Totals.PromptSize {
			t.Errorf("with its tools the prompt has %+v, and had %+v", shown.Plan.Totals.PromptSize, event.Plan.Totals.PromptSize)
		}
	}
}

// TestToolsAreShownAsTheyAreSent: under the names that requests have for them.
func TestToolsAreShownAsTheyAreSent(t *testing.T) {
	m := &scriptedModel{answer: answerWell}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		o.Tools, o.Policy = tool.Set{&counted{name: "store.look"}}, tool.Policy{Otherwise: tool.Allow}
	})
	chat, err := e.Turns.Chat(t.Context(), request("s1", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	lastOf(t, chat)
	conversation, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s1")
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := e.Contexts.Request(t.Context(), conversation, 2)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := e.Contexts.Build(t.Context(), conversation, engine.ContextRequest{At: 1, System: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(shown.Tools) != 1 || !strings.Contains(string(replayed.Body), `"name":"`+shown.Tools[0].Name+`"`) {
		t.Errorf("shown are %+v, sent was %s", shown.Tools, replayed.Body)
	}
}
