package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/tool"
)

func createTask(t *testing.T, e *testEngine, description, history string) *engine.TaskStatus {
	t.Helper()
	request := engine.TaskRequest{Scope: continuo.Scope{ProjectID: "default"}, Request: task.Request{Description: description}}
	if history != "" {
		request.ConversationHistory = json.RawMessage(history)
	}
	status, warnings, err := e.Tasks.Create(t.Context(), request)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return status
}

func deploy(t *testing.T, e *testEngine, taskID, kind string) *engine.DeployedAgent {
	t.Helper()
	agent, err := e.Tasks.Deploy(t.Context(), engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: taskID, Type: kind, Prompt: "Be quick."})
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

// awaitAgent waits until an agent is no longer at work.
func awaitAgent(t *testing.T, e *testEngine, agent *engine.DeployedAgent) *engine.DeployedAgent {
	t.Helper()
	for range e.Turns.Follow(t.Context(), continuo.Turn{ConversationID: agent.ConversationID, ID: agent.TurnID}, 0) {
	}
	now, err := e.Tasks.Agent(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// The agent is given the task with the conversation that explains it, tool groups as one line, and what it says
// stands in a conversation of its own.
func TestAnAgentIsGivenTheTaskWithItsHistory(t *testing.T) {
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "It is fixed.", nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	conversation, err := e.Log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Log.Append(t.Context(), conversation.ID, []continuo.Entry{
		{Role: continuo.System, Content: continuo.Text("Be nice.")},
		{Role: continuo.User, Content: continuo.Text("The login fails.")},
		{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{{ID: "c1", Type: "function", Name: "fs_read", Arguments: `{"path":"login.go"}`}}},
		{Role: continuo.Tool, ToolCallID: "c1", Outcome: "Read login.go", Content: continuo.Text("package login")},
		{Role: continuo.Assistant, Content: continuo.Text("I see why.")},
	}, continuo.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	given := createTask(t, e, "Fix the login", `"`+conversation.ID+`"`)
	if given.State != engine.TaskQueued || given.Task.Context.ConversationHistory.TotalMessages != 3 {
		t.Errorf("it is %s with %+v", given.State, given.Task.Context.ConversationHistory)
	}
	agent := awaitAgent(t, e, deploy(t, e, given.ID, "planner"))
	if agent.State != engine.TaskCompleted || agent.TaskID != given.ID || agent.Type != "planner" {
		t.Errorf("the agent is %+v", agent)
	}
	request := m.requests()[0]
	for _, want := range []string{"Fix the login", "CONVERSATION HISTORY", "The login fails.", "fs_read", "I see why.", "Be quick."} {
		if !strings.Contains(request.messages[0], want) {
			t.Errorf("the agent is not told %q:\n%s", want, request.messages[0])
		}
	}
	if strings.Contains(request.messages[0], "Be nice.") || !slices.Contains(request.system, "You are a planner.") {
		t.Errorf("it was shown %q and %q", request.system, request.messages)
	}
	output, err := e.Tasks.Output(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID, -6, 0)
	if err != nil || output.Output != "fixed." || output.Total != 12 {
		t.Errorf("the output is %+v, %v", output, err)
	}
	listed, _, err := e.Tasks.List(t.Context(), engine.TaskQuery{Scope: continuo.Scope{ProjectID: "default"}, Limit: 10})
	if err != nil || len(listed) != 1 || listed[0].State != engine.TaskCompleted || len(listed[0].Agents) != 1 {
		t.Errorf("listed are %+v, %v", listed, err)
	}
	if _, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "other"}, given.ID); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("another project sees it: %v", err)
	}
}

func TestAnAgentIsKilled(t *testing.T) {
	entered := make(chan struct{}, 10)
	var wait counted
	wait.name = "wait"
	waiting := waitTool{&wait, entered}
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "call wait {}", nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		o.Tools, o.Policy, o.MaxAgents = tool.Set{waiting}, tool.Policy{Otherwise: tool.Allow}, 1
	})
	given := createTask(t, e, "Wait", "")
	agent := deploy(t, e, given.ID, "")
	<-entered
	if now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID); err != nil || now.State != engine.TaskRunning {
		t.Errorf("the task is %+v, %v", now, err)
	}
	if _, err := e.Tasks.Deploy(t.Context(), engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: given.ID}); !errors.Is(err, engine.ErrTooManyAgents) {
		t.Errorf("a second agent: %v", err)
	}
	killed, err := e.Tasks.Kill(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID, "enough\nof it")
	if err != nil || killed.State != engine.TaskKilled || killed.Reason != "enough\nof it" {
		t.Errorf("it is %+v, %v", killed, err)
	}
	if _, err := e.Tasks.Kill(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID, "once more"); !errors.Is(err, continuo.ErrNotRunning) {
		t.Errorf("killed again: %v", err)
	}
	if now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID); err != nil || now.State != engine.TaskKilled || len(now.Agents) != 1 || now.Agents[0].Reason != "enough\nof it" {
		t.Errorf("the task is %+v, %v", now, err)
	}
}

// waitTool waits until its call is stopped.
type waitTool struct {
	*counted
	entered chan struct{}
}

func (w waitTool) Run(ctx context.Context, call tool.Call) tool.Result {
	select {
	case w.entered <- struct{}{}:
	case <-ctx.Done(): // nobody waits for a second call
	}
	<-ctx.Done()
	return tool.Failure("stopped")
}

// An agent whose program has ended is found as what it is: queued, until a program takes its work up.
func TestAnAgentOfADeadProcessIsQueued(t *testing.T) {
	store := storetest.NewMemory()
	entered := make(chan struct{}, 1)
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "call wait {}", nil }}
	dies := &mortal{Store: store, left: 1000, dead: make(chan struct{})}
	first := newRunEngine(t, dies, m, func(o *engine.Options) {
		o.Tools, o.Policy = tool.Set{waitTool{&counted{name: "wait"}, entered}}, tool.Policy{Otherwise: tool.Allow}
		o.Limits.Tool = time.Second
	})
	given := createTask(t, first, "Wait", "")
	agent := deploy(t, first, given.ID, "")
	<-entered
	dies.mu.Lock()
	dies.left = 0
	dies.mu.Unlock()
	second := newRunEngine(t, store, m, nil)
	now, err := second.Tasks.Agent(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID)
	if err != nil || now.State != engine.TaskQueued || !strings.Contains(now.Reason, "its program has ended") {
		t.Errorf("it is %+v, %v", now, err)
	}
}

func TestFindingsAreKept(t *testing.T) {
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, nil)
	given := createTask(t, e, "Look", "")
	found, err := e.Tasks.Report(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID, engine.Finding{Type: "issue", Severity: "high", Message: "It leaks.", Data: json.RawMessage(`{"file":"a.go"}`)})
	if err != nil || found.Seq != 2 {
		t.Fatal(found, err)
	}
	now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID)
	if err != nil || len(now.Findings) != 1 || now.Findings[0].Message != "It leaks." || now.Findings[0].Seq != 2 {
		t.Errorf("the task is %+v, %v", now, err)
	}
	if _, err := e.Tasks.Report(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID, engine.Finding{Message: "x", AgentID: "agent_1"}); refusal(err) != "agent_id" {
		t.Errorf("of nobody: %v", err)
	}
	for _, bad := range []engine.Finding{{}, {Message: "x", Type: "joke"}, {Message: "x", Severity: "none"}, {Message: "x", Data: json.RawMessage(`[]`)}, {Message: "x", AgentID: "agent_1"}} {
		if _, err := e.Tasks.Report(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID, bad); err == nil {
			t.Errorf("%+v is kept", bad)
		}
	}
}

func TestAKeyMakesOneTaskAndOneAgent(t *testing.T) {
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "done", nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	request := engine.TaskRequest{Scope: continuo.Scope{ProjectID: "default"}, Request: task.Request{Description: "Once"}, Key: "k"}
	first, _, err := e.Tasks.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := e.Tasks.Create(t.Context(), request); err != nil || again.ID != first.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	request.Description = "Twice"
	if _, _, err := e.Tasks.Create(t.Context(), request); !errors.Is(err, continuo.ErrKeyReused) {
		t.Errorf("with something else: %v", err)
	}
	ask := engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: first.ID, Key: "k"}
	one, err := e.Tasks.Deploy(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	awaitAgent(t, e, one)
	if two, err := e.Tasks.Deploy(t.Context(), ask); err != nil || two.ID != one.ID || two.State != engine.TaskCompleted {
		t.Errorf("again: %+v, %v", two, err)
	}
	if n := len(m.requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A retry while the agent works gives that agent at once, whatever the quota says; another task's is refused.
func TestAKeyIsRepeatedWhileItsAgentWorks(t *testing.T) {
	entered := make(chan struct{}, 1)
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "call wait {}", nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		o.Tools, o.Policy, o.MaxAgents = tool.Set{waitTool{&counted{name: "wait"}, entered}}, tool.Policy{Otherwise: tool.Allow}, 1
	})
	ask := engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: createTask(t, e, "Wait", "").ID, Key: "k"}
	one, err := e.Tasks.Deploy(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	if two, err := e.Tasks.Deploy(t.Context(), ask); err != nil || two.ID != one.ID || two.State != engine.TaskRunning {
		t.Errorf("again: %+v, %v", two, err)
	}
	ask.TaskID = createTask(t, e, "Wait more", "").ID
	if _, err := e.Tasks.Deploy(t.Context(), ask); !errors.Is(err, continuo.ErrKeyReused) {
		t.Errorf("for another task: %v", err)
	}
	if _, err := e.Tasks.Kill(t.Context(), continuo.Scope{ProjectID: "default"}, one.ID, ""); err != nil {
		t.Error(err)
	}
}

func TestAHistoryThatThereIsNot(t *testing.T) {
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, nil)
	for _, history := range []string{`"conv_00000000000000000000000000000000"`, `{"conversation_id": "conv_00000000000000000000000000000000", "from": 3}`} {
		_, _, err := e.Tasks.Create(t.Context(), engine.TaskRequest{Scope: continuo.Scope{ProjectID: "default"}, Request: task.Request{Description: "x", ConversationHistory: json.RawMessage(history)}})
		var refused *task.ValidationError
		if !errors.As(err, &refused) || refused.Type != task.InvalidValue || refused.Field != "conversation_history" {
			t.Errorf("%s: %v", history, err)
		}
	}
}

// With compression semantic the model shortens what is too long; where it fails, the extract replaces it.
func TestAModelSummarizesAHistory(t *testing.T) {
	long := "We talked for long. " + strings.Repeat("And then some more was said. ", 20)
	history := string(rawjson.MustMarshal([]map[string]string{{"role": "assistant", "content": long}}))
	fails := false
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if fails {
			return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "gone"}
		}
		if len(a.system) != 1 || !strings.Contains(a.system[0], "at most 150 characters") || a.messages[0] != "user: "+long {
			t.Errorf("the model is asked %q with %q", a.messages, a.system)
		}
		return "They talked.", nil
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	request := engine.TaskRequest{Scope: continuo.Scope{ProjectID: "default"}, Request: task.Request{Description: "Go on", Compression: task.Semantic, ConversationHistory: json.RawMessage(history)}}
	status, warnings, err := e.Tasks.Create(t.Context(), request)
	if err != nil || len(warnings) > 0 || !strings.HasPrefix(status.Task.Context.ConversationHistory.Messages[0].Content, "They talked.") {
		t.Errorf("%+v, %v, %v", status, warnings, err)
	}
	fails = true
	status, warnings, err = e.Tasks.Create(t.Context(), request)
	if err != nil || len(warnings) != 1 || !strings.HasPrefix(status.Task.Context.ConversationHistory.Messages[0].Content, "We talked for long.") {
		t.Errorf("%+v, %v, %v", status, warnings, err)
	}
}

// A deployment that does not begin leaves nothing behind, and what a person does to an agent's conversation does not
// change the result of its work.
func TestWhatDoesNotBeginLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a refusal waits a moment for a place
		entered := make(chan struct{}, 1)
		m := &scriptedModel{answer: func(a stepRequest) (string, error) {
			if strings.Contains(a.messages[0], "Wait") {
				return "call wait {}", nil
			}
			return "done", nil
		}}
		e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
			o.Tools, o.Policy, o.MaxTurns = tool.Set{waitTool{&counted{name: "wait"}, entered}}, tool.Policy{Otherwise: tool.Allow}, 1
		})
		quick := createTask(t, e, "Quick", "")
		agent := awaitAgent(t, e, deploy(t, e, quick.ID, ""))
		metadata := json.RawMessage(`{"task_id": 5}`)
		if _, err := e.Log.Update(t.Context(), agent.ConversationID, continuo.ConversationChange{Metadata: metadata}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Log.Append(t.Context(), agent.ConversationID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("And now?")}}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // who knows the end may be faster than who leaves the place
		deploy(t, e, createTask(t, e, "Wait", "").ID, "")
		<-entered
		if _, err := e.Tasks.Deploy(t.Context(), engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: quick.ID}); !errors.Is(err, engine.ErrTooManyTurns) {
			t.Errorf("beyond the turns of a project: %v", err)
		}
		now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, quick.ID)
		if err != nil || now.State != engine.TaskCompleted || len(now.Agents) != 1 || now.Agents[0].TaskID != quick.ID {
			t.Errorf("the task is %+v, %v", now, err)
		}
	})
}
