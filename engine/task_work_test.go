package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// A project's place for an agent is free again when its work has ended, and when it did not begin.
func TestAnAgentThatIsNotAtWorkTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := newHoldTool()
		m := &scriptedModel{answer: func(a stepRequest) (string, error) {
			if last := a.messages[len(a.messages)-1]; last == "user: Hold on." {
				return "call hold {}", nil
			}
			return "done", nil
		}}
		e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
			o.Tools, o.Policy, o.MaxAgents, o.MaxTurns = tool.Set{hold}, tool.Policy{Otherwise: tool.Allow}, 1, 1
		})
		given := createTask(t, e, "Try", "")
		chat, err := e.Turns.Chat(t.Context(), request("", "Hold on."))
		if err != nil {
			t.Fatal(err)
		}
		<-hold.entered
		for range 2 {
			if _, err := e.Tasks.Deploy(t.Context(), engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: given.ID}); !errors.Is(err, engine.ErrTooManyTurns) {
				t.Errorf("beyond the turns of a project: %v", err)
			}
		}
		close(hold.letGo)
		for range chat.Events {
		}
		for range 50 { // who knows the end may be faster than who leaves the place
			awaitAgent(t, e, deploy(t, e, given.ID, ""))
		}
	})
}

// An agent's work has a bound of its own, which is not that of turns, and the reason why it ended can be read.
func TestAnAgentsWorkIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 1)
		m := &scriptedModel{answer: func(stepRequest) (string, error) { return "call wait {}", nil }}
		e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
			o.Tools, o.Policy = tool.Set{waitTool{&counted{name: "wait"}, entered}}, tool.Policy{Otherwise: tool.Allow}
			o.AgentTimeout, o.Limits.Tool, o.Limits.Turn = time.Hour, 5*time.Hour, time.Minute
		})
		began := time.Now()
		agent := awaitAgent(t, e, deploy(t, e, createTask(t, e, "Wait", "").ID, ""))
		if took := time.Since(began).Round(time.Minute); agent.State != engine.TaskFailed || !strings.Contains(agent.Reason, "took longer than 1h0m0s; raise handoff.agent_timeout") || took != time.Hour {
			t.Errorf("after %s it is %s: %s", took, agent.State, agent.Reason)
		}
	})
}

// An agent whose call waits for a person is blocked, and so is its task, until somebody decides.
func TestAnAgentThatAsksIsBlocked(t *testing.T) {
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if len(a.messages) == 1 {
			return "call buy {}", nil
		}
		return "done", nil
	}}
	buy := &counted{name: "buy"}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		o.Tools, o.Policy = tool.Set{buy}, tool.Policy{Otherwise: tool.Ask}
	})
	given := createTask(t, e, "Buy", "")
	agent := deploy(t, e, given.ID, "")
	conversation, err := e.Log.Conversation(t.Context(), agent.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	work, err := e.Turns.Get(t.Context(), conversation, agent.TurnID)
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range e.Turns.Follow(t.Context(), work, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind != turn.Asked {
			continue
		}
		now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID)
		if err != nil || now.State != engine.TaskBlocked || now.Agents[0].State != engine.TaskBlocked {
			t.Errorf("while it asks the task is %+v, %v", now, err)
		}
		if err := e.Turns.Decide(t.Context(), work, event.Call.ID, turn.Decision{Allowed: true}); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := e.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID); err != nil || now.State != engine.TaskCompleted || len(buy.ids) != 1 {
		t.Errorf("then it is %+v, %v, and %v were made", now, err, buy.ids)
	}
}

// printer is a connector that fails, and says a secret on its stderr.
type printer struct{}

func (printer) Info() model.Info {
	return model.Info{Provider: "command", Name: "printer", Protocol: model.ProtocolPrompt}
}

func (printer) Stream(context.Context, []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		yield(model.Delta{}, &model.Error{Reason: continuo.ReasonUpstream, Message: "printer ended with exit status 1; its stderr: word hush-hush"})
	}
}

// Whatever a connector's program says stands with its work; the log of this program has it only where it may hold the text
// of messages. So with the reason for which a person kills an agent.
func TestAProgramsWordsAreNotLogged(t *testing.T) {
	for _, logText := range []bool{false, true} {
		logged := &lockedWriter{}
		entered := make(chan struct{}, 1)
		m := &scriptedModel{answer: func(stepRequest) (string, error) { return "call wait {}", nil }}
		e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
			o.Models["printer"] = engine.Upstream{Model: printer{}}
			o.Logger, o.LogText = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})), logText
			o.Tools, o.Policy = tool.Set{waitTool{&counted{name: "wait"}, entered}}, tool.Policy{Otherwise: tool.Allow}
		})
		given := createTask(t, e, "Try", "")
		if agent := awaitAgent(t, e, deploy(t, e, given.ID, "printer")); agent.State != engine.TaskFailed || !strings.Contains(agent.Reason, "hush-hush") {
			t.Errorf("it is %s: %s", agent.State, agent.Reason)
		}
		agent := deploy(t, e, given.ID, "")
		<-entered
		if _, err := e.Tasks.Kill(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID, "it told hush-money"); err != nil {
			t.Error(err)
		}
		_ = e.Close(t.Context()) // it logs until then
		line := logged.String()
		if strings.Contains(line, "hush-hush") != logText || strings.Contains(line, "hush-money") != logText || !strings.Contains(line, "msg=turn_failed") || !strings.Contains(line, "reason=upstream") || !strings.Contains(line, "msg=agent_killed") {
			t.Errorf("text %v: logged\n%s", logText, line)
		}
	}
}

// fakeConnector is a connector, which remembers what it was asked and who it was told to be.
type fakeConnector struct {
	mu     sync.Mutex
	bodies []string
	ids    [][2]string
}

func (p *fakeConnector) Info() model.Info {
	return model.Info{Provider: "command", Name: "program", Protocol: model.ProtocolPrompt}
}

func (p *fakeConnector) AtWork(taskID, agentID string) model.Model {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = append(p.ids, [2]string{taskID, agentID})
	return p
}

func (p *fakeConnector) Stream(_ context.Context, body []byte) iter.Seq2[model.Delta, error] {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies = append(p.bodies, string(body))
	return func(yield func(model.Delta, error) bool) {
		_ = yield(model.Delta{Text: "done"}, nil) && yield(model.Delta{Finish: "stop"}, nil)
	}
}

// An agent is told its ids and how it reports, behind the task and what the caller who deployed it has added; a program knows its ids
// besides. The prompt of the task itself stays as it is, and so does who else speaks to the program.
func TestAnAgentGetsItsPersona(t *testing.T) {
	m, connector := &scriptedModel{answer: func(stepRequest) (string, error) { return "done", nil }}, &fakeConnector{}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) { o.Models["program"] = engine.Upstream{Model: connector} })
	given := createTask(t, e, "Fix the login", "")
	prompt, err := given.Prompt()
	if err != nil {
		t.Fatal(err)
	}
	first, second := awaitAgent(t, e, deploy(t, e, given.ID, "")), awaitAgent(t, e, deploy(t, e, given.ID, "program"))
	chat, err := e.Turns.Chat(t.Context(), engine.ChatRequest{Scope: continuo.Scope{ProjectID: "default"}, Model: "program", Message: continuo.Text("Hello")})
	if err != nil {
		t.Fatal(err)
	}
	for range chat.Events {
	}
	var sent struct{ Prompt string }
	if err := json.Unmarshal([]byte(connector.bodies[0]), &sent); err != nil {
		t.Fatal(err)
	}
	for agent, message := range map[string]string{first.ID: strings.TrimPrefix(m.requests()[0].messages[0], "user: "), second.ID: sent.Prompt} {
		end, ok := strings.CutPrefix(message, prompt+"\nBe quick.\n\n")
		if !ok || strings.Count(end, "\n") > 1 || !strings.Contains(end, agent) || !strings.Contains(end, given.ID) || !strings.Contains(end, "report_agent_finding") || !strings.Contains(end, "POST /api/tasks/"+given.ID+"/findings") || strings.Contains(end, "{{") {
			t.Errorf("the agent %s is told %s", agent, message)
		}
	}
	if want := [][2]string{{given.ID, second.ID}}; !slices.Equal(connector.ids, want) || len(connector.bodies) != 2 {
		t.Errorf("the program is %q, and was asked %d times", connector.ids, len(connector.bodies))
	}
	if _, err := e.Tasks.Report(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID, engine.Finding{AgentID: second.ID, Message: "It is fixed."}); err != nil {
		t.Error(err)
	}
}
