package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
)

// takesUp has an engine continue with the work of agents.
func takesUp(o *engine.Options) { o.TakeUp = true }

// workingModel answers an agent that calls a tool and then has done its work.
func workingModel() *scriptedModel {
	return &scriptedModel{answer: func(a stepRequest) (string, error) {
		if strings.HasPrefix(a.messages[len(a.messages)-1], "tool:") {
			return "It is fixed.", nil
		}
		return "call step {}", nil
	}}
}

// TestAnAgentContinuesAfterEveryWrite kills the program after each of the writes that a deployment and its work make: an
// agent whose deployment was answered has done its work in the end, and none that its task names is queued for good.
func TestAnAgentContinuesAfterEveryWrite(t *testing.T) {
	for answered := 0; answered < 3 && !t.Failed(); { // the answer may come before any of the last writes
		for writes, whole := 1, false; !whole; writes++ {
			synctest.Test(t, func(t *testing.T) {
				var isAnswered bool
				if whole, isAnswered = deployUntil(t, writes); isAnswered {
					answered++
				} else if whole {
					t.Error("nothing was killed, and the deployment was refused")
				}
			})
		}
	}
}

// deployUntil kills the program that deploys an agent after so many writes. It reports whether it made fewer, and whether it has answered.
func deployUntil(t *testing.T, writes int) (whole, isAnswered bool) {
	steps := func(o *engine.Options) {
		takesUp(o)
		o.Tools, o.Policy = tool.Set{&counted{name: "step"}}, tool.Policy{Otherwise: tool.Allow}
	}
	store := storetest.NewMemory()
	given := createTask(t, newRunEngine(t, store, workingModel(), nil), "Fix it", "")
	dies := &mortal{Store: store, left: writes, dead: make(chan struct{})}
	first := newRunEngine(t, dies, workingModel(), steps)
	deployed, _ := first.Tasks.Deploy(t.Context(), engine.DeployRequest{Scope: continuo.Scope{ProjectID: "default"}, TaskID: given.ID, Prompt: "Gently."})
	synctest.Wait()
	dies.mu.Lock()
	whole = dies.left > 0
	dies.mu.Unlock()
	second := newRunEngine(t, store, workingModel(), steps)
	if _, err := second.Turns.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	status, err := second.Tasks.Get(t.Context(), continuo.Scope{ProjectID: "default"}, given.ID)
	if err != nil {
		t.Fatal(err)
	}
	if deployed != nil && len(status.Agents) != 1 {
		t.Fatalf("after %d writes the task names %d agents", writes, len(status.Agents))
	}
	for _, agent := range status.Agents {
		if deployed == nil && agent.State == engine.TaskGone { // it was refused, and nothing of it is left
			continue
		}
		if agent.State != engine.TaskCompleted {
			t.Errorf("after %d writes the agent is %s: %s", writes, agent.State, agent.Reason)
		}
		begun := outputOf(t, second, agent.ConversationID)
		if strings.Count(begun, "Fix it") != 1 || strings.Count(begun, "Gently.") != 1 || !strings.HasSuffix(begun, "It is fixed.") {
			t.Errorf("after %d writes its log says:\n%s", writes, begun)
		}
	}
	return whole, deployed != nil
}

// outputOf is what the entries of a conversation say that are no results.
func outputOf(t *testing.T, e *testEngine, id string) string {
	t.Helper()
	conversation, err := e.Log.Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry.Content.String())
	}
	return strings.Join(all, "\n")
}

// TestAnAgentIsLeftToAProgramThatStays: a program that ends leaves its agents' work, one that does not stay says so and
// can end it, and one that stays continues it, up to a limit.
func TestAnAgentIsLeftToAProgramThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		m, holds := endlessModel()
		first := newRunEngine(t, store, m, holds)
		agent := deploy(t, first, createTask(t, first, "Hold on", "").ID, "")
		ends := func(e *testEngine) {
			synctest.Wait()
			at, cancel := context.WithCancel(t.Context())
			cancel()
			_ = e.Close(at)
		}
		ends(first)
		passing := newRunEngine(t, store, m, nil)
		if _, err := passing.Turns.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		left, err := passing.Tasks.Agent(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID)
		if err != nil || left.State != engine.TaskQueued || !strings.Contains(left.Reason, "continuo serve") {
			t.Errorf("left: %+v, %v", left, err)
		}
		for starts := 2; starts <= 6; starts++ {
			next := newRunEngine(t, store, m, func(o *engine.Options) { holds(o); takesUp(o) })
			if _, err := next.Turns.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			now, err := next.Tasks.Agent(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID)
			want := engine.TaskRunning
			if starts == 6 {
				want = engine.TaskFailed
			}
			if err != nil || now.State != want {
				t.Errorf("the %d. program: %+v, %v", starts, now, err)
			}
			ends(next)
		}
	})
}

// endlessModel is a model for an agent whose work never ends.
func endlessModel() (*scriptedModel, func(*engine.Options)) {
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "call wait {}", nil }}
	return m, func(o *engine.Options) {
		o.Tools, o.Policy = tool.Set{waitTool{&counted{name: "wait"}, make(chan struct{}, 100)}}, tool.Policy{Otherwise: tool.Allow}
		o.Limits.Tool = time.Hour
	}
}

// A person ends the work of an agent that nobody has.
func TestALeftAgentCanBeKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		m, holds := endlessModel()
		first := newRunEngine(t, store, m, holds)
		agent := deploy(t, first, createTask(t, first, "Hold on", "").ID, "")
		synctest.Wait()
		at, cancel := context.WithCancel(t.Context())
		cancel()
		_ = first.Close(at)
		killed, err := newRunEngine(t, store, m, nil).Tasks.Kill(t.Context(), continuo.Scope{ProjectID: "default"}, agent.ID, "enough")
		if err != nil || killed.State != engine.TaskFailed {
			t.Errorf("%+v, %v", killed, err)
		}
	})
}
