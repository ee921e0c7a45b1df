package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// countingStore notes the calls that a message costs.
type countingStore struct {
	continuo.Store
	mu    sync.Mutex
	calls []string
}

func (c *countingStore) note(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
}

func (c *countingStore) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	c.note("Conversation")
	return c.Store.Conversation(ctx, id)
}

func (c *countingStore) ConversationByKey(ctx context.Context, projectID, key string) (continuo.Conversation, error) {
	c.note("ConversationByKey")
	return c.Store.ConversationByKey(ctx, projectID, key)
}

func (c *countingStore) Update(ctx context.Context, id string, change continuo.ConversationChange) (continuo.Conversation, error) {
	c.note("Update")
	return c.Store.Update(ctx, id, change)
}

func (c *countingStore) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	c.note("Entries")
	return c.Store.Entries(ctx, id, query)
}

func (c *countingStore) Append(ctx context.Context, batch continuo.Batch) error {
	c.note("Append")
	return c.Store.Append(ctx, batch)
}

func (c *countingStore) Turn(ctx context.Context, conversationID, turnID string) (continuo.Turn, error) {
	c.note("Turn")
	return c.Store.Turn(ctx, conversationID, turnID)
}

func (c *countingStore) Turns(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	c.note("Turns")
	return c.Store.Turns(ctx, query)
}

func (c *countingStore) PutBlob(ctx context.Context, hash string, data []byte) error {
	c.note("PutBlob")
	return c.Store.PutBlob(ctx, hash, data)
}

func (c *countingStore) Create(ctx context.Context, conversation continuo.Conversation, entries []continuo.Entry) error {
	c.note("Create")
	return c.Store.Create(ctx, conversation, entries)
}

// costOf returns the calls of the store that a request makes.
func (c *countingStore) costOf(t *testing.T, e *testEngine, r engine.ChatRequest) []string {
	t.Helper()
	c.mu.Lock()
	c.calls = nil
	c.mu.Unlock()
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
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
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
			want:    []string{"ConversationByKey", "Append", "Append", "Append", "Append"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &countingStore{Store: storetest.NewMemory()}
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
				store.costOf(t, e, before)
			}
			if test.restart {
				e = open()
			}
			if got := store.costOf(t, e, test.request); !slices.Equal(got, test.want) {
				t.Errorf("the calls were\n%q, want\n%q", got, test.want)
			}
		})
	}
}

// A run of one step makes three commits: the message that starts it, the step's turn with its cue, and the answer with
// what the run concludes from it.
func TestWhatAStepCosts(t *testing.T) {
	store := &countingStore{Store: storetest.NewMemory()}
	e := newRunEngine(t, store, &scriptedModel{answer: answerWell}, func(o *engine.Options) { o.Workflows = newWorkflowSource(t, lone) })
	status, err := e.Runs.Start(t.Context(), engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: "s", Workflow: "lone", Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, e, status.Run); status.State != continuo.RunFinished {
		t.Fatalf("the run is %s: %s", status.State, status.Reason)
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	writes := slices.DeleteFunc(store.calls, func(call string) bool { return call != "Append" })
	if len(writes) != 3 {
		t.Errorf("the run made %d commits, want 3", len(writes))
	}
}
