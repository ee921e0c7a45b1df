package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/tool"
)

// refusal is the field that a refused request was refused for; "" where it was not.
func refusal(err error) string {
	var refused *task.ValidationError
	if errors.As(err, &refused) && refused.Type == task.InvalidValue {
		return refused.Field
	}
	return ""
}

// A reader of a task reads all of its findings, so their number is bounded; the task stays what it is.
func TestATaskHasAtMostAThousandFindings(t *testing.T) {
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, nil)
	given := createTask(t, e, "Look", "")
	kept := 0
	var err error
	for err == nil && kept <= 1000 {
		if _, err = e.Tasks.Report(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID, engine.Finding{Message: fmt.Sprintf("No. %d", kept)}); err == nil {
			kept++
		}
	}
	if refusal(err) != "task_id" || kept < 900 {
		t.Fatalf("after %d findings: %v", kept, err)
	}
	now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID)
	if err != nil || len(now.Findings) != kept || now.Findings[kept-1].Message != fmt.Sprintf("No. %d", kept-1) {
		t.Errorf("of %d the task has %d, %v", kept, len(now.Findings), err)
	}
	if agent := awaitAgent(t, e, deploy(t, e, given.ID, "")); agent.State != engine.TaskCompleted {
		t.Errorf("an agent for it is %s: %s", agent.State, agent.Reason)
	}
}

func TestATaskHasAtMostAHundredAgents(t *testing.T) {
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "done", nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) { o.MaxAgents = 200 })
	given := createTask(t, e, "Try", "")
	first := awaitAgent(t, e, deploy(t, e, given.ID, ""))
	for range 99 {
		awaitAgent(t, e, deploy(t, e, given.ID, ""))
	}
	if _, err := e.Tasks.Deploy(t.Context(), engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: given.ID}); refusal(err) != "task_id" {
		t.Errorf("one more agent: %v", err)
	}
	now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID)
	if err != nil || len(now.Agents) != 100 || now.Agents[0].ID != first.ID || now.State != engine.TaskCompleted {
		t.Errorf("the task is %s with %d agents, %v", now.State, len(now.Agents), err)
	}
	if n := len(m.requests()); n != 100 {
		t.Errorf("the model was asked %d times", n)
	}
	deploy(t, e, createTask(t, e, "Try", "").ID, "") // another task is not concerned
}

// A task whose words were redacted can be looked at, but nobody is set to work on it.
func TestARedactedTaskIsNotDeployed(t *testing.T) {
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "done", nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	given := createTask(t, e, "The secret work", `[{"role": "user", "content": "the secret word"}]`)
	conversation, err := e.Log.Conversation(t.Context(), given.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Log.Redact(t.Context(), conversation, 1, 1, "private"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Tasks.Deploy(t.Context(), engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: given.ID, Prompt: "Do it."}); refusal(err) != "task_id" {
		t.Errorf("an agent for it: %v", err)
	}
	now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID)
	if err != nil || now.State != engine.TaskRedacted || now.Task.Description != "" || now.Task.Context.ConversationHistory != nil {
		t.Errorf("the task is %+v, %v", now, err)
	}
	if prompt, err := now.Prompt(); refusal(err) != "task_id" {
		t.Errorf("its prompt: %q, %v", prompt, err)
	}
	agents, err := e.Log.Conversations(t.Context(), continuo.ConversationQuery{ProjectID: "default", Kind: continuo.KindAgent, Limit: 1})
	if err != nil || len(agents) > 0 || len(m.requests()) > 0 {
		t.Errorf("there are %v, %v, and the model was asked %d times", agents, err, len(m.requests()))
	}
}

// An agent in the archive is one whose work is over; brought back it is as it was.
func TestAnArchivedAgentIsCompleted(t *testing.T) {
	store := storetest.NewMemory()
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "done", nil }}
	e := newRunEngine(t, store, m, func(o *engine.Options) {
		o.Archivist = &maintenance.Archivist{Store: store, Objects: storetest.NewObjects()}
	})
	given := createTask(t, e, "Try", "")
	agent := awaitAgent(t, e, deploy(t, e, given.ID, ""))
	conversation, err := e.Log.Conversation(t.Context(), agent.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	archived, err := e.Conversations.Archive(t.Context(), conversation)
	if err != nil {
		t.Fatal(err)
	}
	now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID)
	if err != nil || now.State != engine.TaskCompleted || len(now.Agents) != 1 {
		t.Fatalf("the task is %+v, %v", now, err)
	}
	if a := now.Agents[0]; a.ID != agent.ID || a.State != engine.TaskCompleted || a.Reason != "archived" || !a.EndedAt.Equal(archived.ArchivedAt) {
		t.Errorf("the agent is %+v", a)
	}
	if _, err := e.Tasks.Kill(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID, ""); !errors.Is(err, continuo.ErrNotRunning) {
		t.Errorf("killed: %v", err)
	}
	if _, err := e.Conversations.Restore(t.Context(), archived); err != nil {
		t.Fatal(err)
	}
	if back, err := e.Tasks.Agent(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID); err != nil || *back != *agent {
		t.Errorf("brought back it is %+v, %v, and was %+v", back, err, agent)
	}
}

// One idempotency key may begin a chat, a task and an agent, and even where their keys are made of the same letters
// each retry gives what its own first try began.
func TestKeysOfChatsTasksAndAgentsDoNotMeet(t *testing.T) {
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "done", nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	ctx := context.WithoutCancel(t.Context())
	begin := map[string]func() (string, error){}
	for _, key := range []string{"abc", "task/abc", "agent/abc"} {
		begin["the chat "+key] = func() (string, error) {
			ask := request("", "Hello")
			ask.Key = key
			chat, err := e.Turns.Chat(ctx, ask)
			if err != nil {
				return "", err
			}
			for range chat.Events {
			}
			return chat.Conversation.ID, nil
		}
	}
	begin["the task"] = func() (string, error) {
		status, _, err := e.Tasks.Create(ctx, engine.TaskRequest{Scope: continuo.Scope{ProjectID: "default"}, Request: task.Request{Description: "Try"}, Key: "abc"})
		if err != nil {
			return "", err
		}
		return status.ConversationID, nil
	}
	given := createTask(t, e, "Try", "")
	begin["the agent"] = func() (string, error) {
		agent, err := e.Tasks.Deploy(ctx, engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: given.ID, Key: "abc"})
		if err != nil {
			return "", err
		}
		return awaitAgent(t, e, agent).ConversationID, nil
	}
	begun, owner := map[string]string{}, map[string]string{}
	for range 2 {
		for name, begin := range begin {
			id, err := begin()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if other := owner[id]; other != "" && other != name {
				t.Errorf("%s and %s are the same conversation", name, other)
			}
			if before := begun[name]; before != "" && before != id {
				t.Errorf("%s was started twice", name)
			}
			begun[name], owner[id] = id, name
		}
	}
	if n := len(m.requests()); n != 4 {
		t.Errorf("the model was asked %d times", n)
	}
}

// What is refused leaves nothing: neither in the task's log, whose room is for findings, nor an agent's conversation.
func TestRefusedDeploymentsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // refusals wait a moment for room
		hold := newHoldTool()
		m := &scriptedModel{answer: func(a stepRequest) (string, error) {
			if len(a.messages) == 1 {
				return "call hold {}", nil
			}
			return "done", nil
		}}
		e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
			o.Tools, o.Policy, o.MaxTurns = tool.Set{hold}, tool.Policy{Otherwise: tool.Allow}, 1
		})
		given := createTask(t, e, "Try", "")
		chat, err := e.Turns.Chat(t.Context(), request("", "Hold on."))
		if err != nil {
			t.Fatal(err)
		}
		<-hold.entered
		for _, key := range []string{"", "k"} {
			for range 10 {
				if _, err := e.Tasks.Deploy(t.Context(), engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: given.ID, Key: key}); !errors.Is(err, engine.ErrTooManyTurns) {
					t.Fatalf("beyond the turns of a project: %v", err)
				}
			}
		}
		conversation, err := e.Log.Conversation(t.Context(), given.ConversationID)
		if err != nil || conversation.LastSeq != 1 {
			t.Errorf("the task's log has %d entries, %v", conversation.LastSeq, err)
		}
		agents, err := e.Log.Conversations(t.Context(), continuo.ConversationQuery{ProjectID: "default", Kind: continuo.KindAgent, Limit: 1})
		if err != nil || len(agents) > 0 {
			t.Errorf("there are %v, %v", agents, err)
		}
		close(hold.letGo)
		for range chat.Events {
		}
		synctest.Wait() // who knows the end may be faster than who leaves the place
		if agent := awaitAgent(t, e, deploy(t, e, given.ID, "")); agent.State != engine.TaskCompleted {
			t.Errorf("then one is %+v", agent)
		}
		if now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID); err != nil || len(now.Agents) != 1 {
			t.Errorf("and the task is %+v, %v", now, err)
		}
	})
}

// The conversations of tasks and agents are records of work: nobody talks there, and who wants to go on from one forks it.
func TestMessagesAreRefusedInTaskConversations(t *testing.T) {
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "done", nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	given := createTask(t, e, "Try", "")
	agent := awaitAgent(t, e, deploy(t, e, given.ID, ""))
	for kind, id := range map[string]string{"task": given.ConversationID, "agent": agent.ConversationID} {
		before, err := e.Log.Conversation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Turns.Chat(t.Context(), request(id, "And now?")); !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%s: a message: %v", kind, err)
		}
		if _, err := e.Runs.Start(t.Context(), engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: id, Workflow: "report"}); !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%s: a run: %v", kind, err)
		}
		if now, err := e.Log.Conversation(t.Context(), id); err != nil || now.LastSeq != before.LastSeq {
			t.Errorf("%s: it has %d entries, and had %d, %v", kind, now.LastSeq, before.LastSeq, err)
		}
		fork, err := e.Log.Fork(t.Context(), id, 0, continuo.Conversation{})
		if err != nil {
			t.Fatal(err)
		}
		chat, err := e.Turns.Chat(t.Context(), request(fork.ID, "And now?"))
		if err != nil {
			t.Fatalf("%s: in a fork: %v", kind, err)
		}
		for range chat.Events {
		}
	}
}

// An agent whose conversation was deleted is told of as gone, not as one that never was; and one whose task was deleted
// works on, and says so.
func TestDeletionsAreReported(t *testing.T) {
	entered := make(chan struct{}, 1)
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if strings.Contains(a.messages[0], "Wait") {
			return "call wait {}", nil
		}
		return "done", nil
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		o.Tools, o.Policy = tool.Set{waitTool{&counted{name: "wait"}, entered}}, tool.Policy{Otherwise: tool.Allow}
	})
	given := createTask(t, e, "Try", "")
	agent := awaitAgent(t, e, deploy(t, e, given.ID, ""))
	if err := e.Log.Delete(t.Context(), agent.ConversationID); err != nil {
		t.Fatal(err)
	}
	now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID)
	if err != nil || now.State != engine.TaskGone || len(now.Agents) != 1 {
		t.Fatalf("the task is %+v, %v", now, err)
	}
	if a := now.Agents[0]; a.ID != agent.ID || a.Type != agent.Type || a.TaskID != given.ID || a.State != engine.TaskGone || a.Reason == "" || a.StartedAt.IsZero() {
		t.Errorf("its agent is %+v", a)
	}
	if _, err := e.Tasks.Kill(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID, ""); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("killed: %v", err)
	}
	if again := awaitAgent(t, e, deploy(t, e, given.ID, "")); again.State != engine.TaskCompleted {
		t.Errorf("another one is %+v", again)
	}
	if now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID); err != nil || now.State != engine.TaskCompleted || len(now.Agents) != 2 {
		t.Errorf("then the task is %+v, %v", now, err)
	}

	waits := createTask(t, e, "Wait", "")
	works := deploy(t, e, waits.ID, "")
	<-entered
	if err := e.Log.Delete(t.Context(), waits.ConversationID); err != nil {
		t.Fatal(err)
	}
	if now, err := e.Tasks.Agent(t.Context(), continuo.Scope{ProjectID: "default"}, works.ID); err != nil || now.State != engine.TaskRunning || now.Reason != "its task was deleted" {
		t.Errorf("without its task it is %+v, %v", now, err)
	}
	if killed, err := e.Tasks.Kill(t.Context(), continuo.Scope{ProjectID: "default"}, works.ID, ""); err != nil || killed.State != engine.TaskKilled {
		t.Errorf("killed it is %+v, %v", killed, err)
	}
}

// A task has changed when an agent of it has ended.
func TestATaskIsAsNewAsItsAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fed := fedModel{make(chan model.Delta)}
		e := newRunEngine(t, storetest.NewMemory(), nil, func(o *engine.Options) { o.Models = map[string]engine.Upstream{"scripted": {Model: fed}} })
		given := createTask(t, e, "Try", "")
		agent := deploy(t, e, given.ID, "")
		fed.emit(model.Delta{Text: "Done."}) // which takes its time
		fed.emit(model.Delta{Finish: "stop"})
		agent = awaitAgent(t, e, agent)
		now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID)
		if err != nil || agent.EndedAt.IsZero() || !now.UpdatedAt.Equal(agent.EndedAt) || !agent.EndedAt.After(agent.StartedAt) {
			t.Errorf("the agent is %+v, and the task %+v, %v", agent, now, err)
		}
	})
}
