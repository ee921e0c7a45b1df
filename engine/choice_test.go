package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// connector answers "ok" and keeps what it was shown.
type connector struct {
	mu    sync.Mutex
	shown []shownText
}

// shownText is a request to a connector.
type shownText struct {
	System []string
	Prompt string
}

func (c *connector) Info() model.Info {
	return model.Info{Provider: "test", Name: "connector", Protocol: model.ProtocolPrompt}
}

func (c *connector) Stream(_ context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var shown shownText
		if err := json.Unmarshal(body, &shown); err != nil {
			yield(model.Delta{}, err)
			return
		}
		c.mu.Lock()
		c.shown = append(c.shown, shown)
		c.mu.Unlock()
		_ = yield(model.Delta{Text: "ok"}, nil) && yield(model.Delta{Finish: "stop"}, nil)
	}
}

// newest is what the connector was shown last.
func (c *connector) newest(t *testing.T) shownText {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.shown) == 0 {
		t.Fatal("the connector was asked nothing")
	}
	return c.shown[len(c.shown)-1]
}

// withConnector gives an engine a connector, and an agent that it answers for.
func withConnector(c *connector) func(*engine.Options) {
	return func(o *engine.Options) {
		o.Models["connector"] = engine.Upstream{Model: c}
		o.Agents["reviewer"] = engine.Agent{ID: "reviewer", Persona: "You review.", Model: "connector"}
	}
}

// A connector has rules of its own, but has to be told that what it reads may have been said in another mode.
func TestAConnectorGetsTheActiveMode(t *testing.T) {
	c := &connector{}
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, withConnector(c))
	for _, test := range []struct {
		mode    continuo.Mode
		persona []string
	}{
		{continuo.ModeChat, nil},
		{continuo.ModeAgent, []string{"You review."}},
		{continuo.ModeRun, []string{"You review."}},
	} {
		asked := request("s1", "go")
		asked.Mode, asked.AgentID = test.mode, "reviewer"
		chat, err := e.Turns.Chat(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		if last := lastOf(t, chat); last.Error != nil {
			t.Fatalf("mode %s: %+v", test.mode, last.Error)
		}
		if got, want := c.newest(t).System, append(test.persona, prompt.Banner(test.mode)); !slices.Equal(got, want) {
			t.Errorf("mode %s: it was shown %q, want %q", test.mode, got, want)
		}
	}
}

// The agent of a task is shown the task's prompt, and nothing but its persona before it.
func TestAConnectorOfATaskIsShownOnlyTheTask(t *testing.T) {
	c := &connector{}
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, withConnector(c))
	given := createTask(t, e, "Try", "")
	for kind, persona := range map[string][]string{"connector": nil, "reviewer": {"You review."}} {
		awaitAgent(t, e, deploy(t, e, given.ID, kind))
		if got := c.newest(t); !slices.Equal(got.System, persona) || !strings.Contains(got.Prompt, "Be quick.") || strings.Contains(got.Prompt, "- active: ") {
			t.Errorf("%s was shown %q", kind, got)
		}
	}
}

// A turn that is taken up after the mode was switched is of the new mode in all that says so: its record, its entries and
// what the model is told.
func TestAResumedTurnIsInTheModeOfItsConversation(t *testing.T) {
	m := &scriptedModel{}
	m.answer = func(stepRequest) (string, error) {
		if len(m.requests()) == 1 {
			return "Half of", &model.Error{Reason: continuo.ReasonNetwork, Message: "connection reset"}
		}
		return " it", nil
	}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	chat, err := e.Turns.Chat(t.Context(), request("s1", "go"))
	if err != nil {
		t.Fatal(err)
	}
	lastOf(t, chat)
	failed, err := e.Turns.Get(t.Context(), chat.Conversation, chat.TurnID)
	if err != nil || failed.State != continuo.TurnFailed {
		t.Fatalf("%+v, %v", failed, err)
	}
	mode, planner := continuo.ModeAgent, "planner"
	if _, err := e.Log.Update(t.Context(), failed.ConversationID, continuo.ConversationChange{ActiveMode: &mode, ActiveAgent: &planner}); err != nil {
		t.Fatal(err)
	}
	resumed, err := e.Turns.Resume(t.Context(), engine.ResumeRequest{Turn: failed, Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	answer := lastOf(t, resumed)
	record, err := e.Turns.Get(t.Context(), resumed.Conversation, resumed.TurnID)
	if err != nil {
		t.Fatal(err)
	}
	if record.Mode != mode || record.AgentID != planner || record.Resumes != failed.ID {
		t.Errorf("its record says %s by %q, for %s", record.Mode, record.AgentID, record.Resumes)
	}
	if answer.Mode != mode || answer.AgentID != planner {
		t.Errorf("its answer says %s by %q", answer.Mode, answer.AgentID)
	}
	if got := m.requests()[1].system; !slices.Equal(got[len(got)-2:], []string{"You are a planner.", prompt.Banner(mode)}) {
		t.Errorf("the model was told %q", got)
	}
}

// lastOf is the entry that the last event of a chat tells of.
func lastOf(t *testing.T, chat *engine.Chat) *continuo.Entry {
	t.Helper()
	var last *continuo.Entry
	for event, err := range chat.Events {
		if err != nil {
			t.Fatal(err)
		}
		last = event.Entry
	}
	return last
}

// A message can name a model that only a pattern of an upstream has, unless its upstream takes the credentials of clients.
func TestAModelThatIsServedAnswersMessages(t *testing.T) {
	served := &scriptedModel{answer: func(stepRequest) (string, error) { return "served", nil }}
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{}, func(o *engine.Options) {
		o.Serve = func(name, _ string) (engine.Upstream, bool) {
			return engine.Upstream{Model: served, ForwardCredentials: name == "forwarded"}, name != "unknown"
		}
	})
	asked := func(name string) error {
		r := request("s", "hi")
		r.Model = name
		chat, err := e.Turns.Chat(t.Context(), r)
		if err != nil {
			return err
		}
		for event, err := range chat.Events {
			if err != nil || event.Kind == turn.Failed {
				t.Fatalf("%+v, %v", event, err)
			}
		}
		return nil
	}
	if err := asked("gpt-of-a-pattern"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"forwarded", "unknown"} {
		if err := asked(name); !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("the model %s: %v", name, err)
		}
	}
}
