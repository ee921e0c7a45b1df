package engine_test

import (
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// costOf returns the calls of the store that a request makes.
func costOf(t *testing.T, store *storetest.Calls, e *testEngine, r engine.ChatRequest) []string {
	t.Helper()
	store.Take()
	chat, err := e.Turns.Chat(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var last turn.Event
	for event, err := range chat.Events {
		if err != nil {
			t.Fatal(err)
		}
		last = event
	}
	if last.Kind != turn.Finished {
		t.Fatalf("the turn ended with %s", last.Kind)
	}
	return store.Take()
}

// A message in an existing session reads the conversation once, and makes two commits: the turn begins with the message,
// and ends with the answer. The newest entries are in memory; another process reads them once. Of each further request of
// the turn, the answer before it and the results of tools are a commit each. A new session begins in the first commit.
func TestWhatAMessageCosts(t *testing.T) {
	chat := request("s", "hi")
	agent, tools := chat, chat
	agent.AgentID = "planner"
	tools.Mode, tools.Message = continuo.ModeAgent, continuo.Text("Do it.")
	created := chat
	created.SessionID = "new"
	message := []string{"ConversationByKey", "Append", "Append"}
	for name, test := range map[string]struct {
		request engine.ChatRequest
		restart bool // another process serves the request
		want    []string
	}{
		"a message":              {request: chat, want: message},
		"a message for an agent": {request: agent, want: message},
		"a message after a restart": {
			request: chat, restart: true,
			// The envelope, which is not known to be stored, is stored with the event that names it.
			want: []string{"ConversationByKey", "Entries", "Append", "Append"},
		},
		"the first message": {request: created, want: []string{"ConversationByKey", "Append", "Append"}},
		"a message with a call of a tool": {
			request: tools,
			// Another process may have redacted entries while the tool ran.
			want: []string{"ConversationByKey", "Append", "Append", "Append", "Revision", "Append"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &storetest.Calls{Store: storetest.NewMemory()}
			m := &scriptedModel{answer: func(a stepRequest) (string, error) {
				if a.messages[len(a.messages)-1] == "user: Do it." {
					return "call act {}", nil
				}
				return "done", nil
			}}
			open := func() *testEngine {
				return newRunEngine(t, store, m, func(o *engine.Options) {
					o.Tools, o.Policy = tool.Set{&counted{name: "act"}}, tool.Policy{Otherwise: tool.Allow}
				})
			}
			e := open()
			before := test.request
			before.SessionID = "s"
			for range 2 { // all of the session's texts are stored, and its mode and agent are set
				costOf(t, store, e, before)
			}
			if test.restart {
				e = open()
			}
			if got := costOf(t, store, e, test.request); !slices.Equal(got, test.want) {
				t.Errorf("the calls were\n%q, want\n%q", got, test.want)
			}
		})
	}
}

// A run of one step makes three commits: the message that starts it, the step's turn with its cue, and the answer with
// what the run concludes from it.
func TestWhatAStepCosts(t *testing.T) {
	store := &storetest.Calls{Store: storetest.NewMemory()}
	e := newRunEngine(t, store, &scriptedModel{answer: answerWell}, func(o *engine.Options) { o.Workflows = newWorkflowSource(t, lone) })
	status, err := e.Runs.Start(t.Context(), engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: "s", Workflow: "lone", Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, e, status.Run); status.State != continuo.RunFinished {
		t.Fatalf("the run is %s: %s", status.State, status.Reason)
	}
	writes := slices.DeleteFunc(store.Take(), func(call string) bool { return call != "Append" })
	if len(writes) != 3 {
		t.Errorf("the run made %d commits, want 3", len(writes))
	}
}
