package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
)

// fan is a workflow whose first step leads to four, one of which another follows, and that join.
const fan = `
id: fan
nodes:
  begin: {brief: x}
  one: {brief: x}
  two: {brief: x}
  three: {brief: x}
  four: {brief: x}
  then: {brief: x}
  end: {brief: x}
edges: [begin -> one, begin -> two, begin -> three, begin -> four, one -> then, then -> end, two -> end, three -> end, four -> end]
`

// slowModel takes so long for each step.
func slowModel(took map[string]time.Duration) *scriptedModel {
	return &scriptedModel{answer: func(a stepRequest) (string, error) {
		time.Sleep(took[a.step])
		return "said " + a.step, nil
	}}
}

func TestBranchesRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		m := slowModel(map[string]time.Duration{"one": 2 * time.Second, "two": 2 * time.Second, "three": 2 * time.Second, "four": 2 * time.Second})
		e := newRunEngine(t, storetest.NewMemory(), m, withWorkflow(t, fan))
		run := startOf(t, e, "fan")
		status := awaitRun(t, e, run)
		if took := time.Since(begin); status.State != continuo.RunFinished || took > 3*time.Second {
			t.Errorf("after %s it is %s: %s", took, status.State, status.Reason)
		}
		knows := map[string][]string{ // what each step is shown of the others, however quick these are
			"begin": nil, "one": {"begin"}, "two": {"begin"}, "three": {"begin"}, "four": {"begin"}, "then": {"begin", "one"},
			"end": {"begin", "four", "one", "then", "three", "two"},
		}
		for _, request := range m.requests() {
			shown := strings.Join(append(request.system, request.messages...), "\n")
			var known []string
			for step := range knows {
				if strings.Contains(shown, "said "+step) {
					known = append(known, step)
				}
			}
			slices.Sort(known)
			if !slices.Equal(known, knows[request.step]) {
				t.Errorf("the step %s is shown what %v said", request.step, known)
			}
		}
		conversation, err := e.Log.Conversation(t.Context(), run.ConversationID)
		if err != nil {
			t.Fatal(err)
		}
		branches, err := e.Log.Branches(t.Context(), conversation)
		if len(branches) != 4 || err != nil {
			t.Errorf("there are the branches %v, %v", branches, err)
		}
		if listed, err := e.Log.Conversations(t.Context(), continuo.ConversationQuery{ProjectID: "default", Limit: 10}); err != nil || len(listed) != 1 {
			t.Errorf("the list of conversations has %d, %v", len(listed), err)
		}
		if err := e.Log.Delete(t.Context(), run.ConversationID); err != nil {
			t.Fatal(err)
		}
		for _, id := range branches {
			if _, err := e.Log.Conversation(t.Context(), id); !errors.Is(err, continuo.ErrNotFound) {
				t.Errorf("the branch %s outlives its run: %v", id, err)
			}
		}
	})
}

// A slow branch changes nothing of what the steps of another are shown.
func TestAStepOfABranchSeesItsOwnBranchOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := slowModel(map[string]time.Duration{"one": 5 * time.Second, "three": time.Minute, "then": time.Second})
		e := newRunEngine(t, storetest.NewMemory(), m, withWorkflow(t, fan))
		if status := awaitRun(t, e, startOf(t, e, "fan")); status.State != continuo.RunFinished {
			t.Fatalf("it is %s: %s", status.State, status.Reason)
		}
		for _, request := range m.requests() {
			shown := strings.Join(append(request.system, request.messages...), "\n")
			if request.step == "then" && (strings.Contains(shown, "said two") || !strings.Contains(shown, "said one")) {
				t.Errorf("it is shown\n%s", shown)
			}
		}
	})
}

// A step with outputs is answered in the form that its model can be held to, alone and beside others.
func TestStepsAskForTheirOutputsByTheirSchema(t *testing.T) {
	const outputs = "{brief: x, outputs: {word: string}}"
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return `{"word": "w"}`, nil }}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		withWorkflow(t, "id: fan\nnodes: {begin: "+outputs+", one: "+outputs+", two: "+outputs+"}\nedges: [begin -> one, begin -> two]\n")(o)
		speaker := model.NewSpeaker(model.Dialect{Structured: model.StructuredSchema}, model.Fixed{})
		o.Models["scripted"] = engine.Upstream{Model: m, Speaker: speaker}
	})
	if status := awaitRun(t, e, startOf(t, e, "fan")); status.State != continuo.RunFinished {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	for _, request := range m.requests() {
		if request.form != "json_schema" {
			t.Errorf("the step %s asks for %q", request.step, request.form)
		}
	}
}

// A run with branches that is started again after each of its writes goes on every time.
func TestBranchesContinueAfterEveryWrite(t *testing.T) {
	for writes := 1; ; writes++ {
		store, m := storetest.NewMemory(), &scriptedModel{answer: func(a stepRequest) (string, error) { return "said " + a.step, nil }}
		dies := &mortal{Store: store, left: writes, dead: make(chan struct{})}
		gone := func(o *engine.Options) { o.Workflows = newWorkflowSource(t, fan) }
		first := newRunEngine(t, dies, m, gone)
		status, err := first.Runs.Start(t.Context(), engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: "s", Workflow: "fan", Detached: true})
		if err != nil {
			continue // before it had begun
		}
		over := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(over)
			for progress, err := range first.Runs.Follow(ctx, status.Run, 0) {
				if err != nil || progress.Status != nil && progress.Status.State == continuo.RunFinished {
					return
				}
			}
			<-ctx.Done()
		}()
		select {
		case <-dies.dead:
		case <-over:
		}
		cancel()
		second := newRunEngine(t, store, m, gone)
		if _, err := second.Turns.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if status.State != continuo.RunFinished {
			if _, err := second.Runs.Resume(t.Context(), status.Run, true); err != nil && !errors.Is(err, engine.ErrRunOver) {
				t.Fatalf("after %d writes: %v", writes, err)
			}
		}
		if status := awaitRun(t, second, status.Run); status.State != continuo.RunFinished {
			t.Fatalf("after %d writes it is %s: %s", writes, status.State, status.Reason)
		}
		events := finishedNodes(eventsOf(t, second, status.Run))
		slices.Sort(events)
		if len(events) != 7 || len(slices.Compact(events)) != 7 {
			t.Fatalf("after %d writes finished were %v", writes, events)
		}
		dies.mu.Lock()
		left := dies.left
		dies.mu.Unlock()
		if left > 0 {
			t.Logf("the run makes %d writes", writes-left)
			return
		}
	}
}

func TestARunIsStoppedInAllOfItsBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := slowModel(map[string]time.Duration{"one": time.Minute, "two": time.Minute, "three": time.Second, "four": time.Minute})
		e := newRunEngine(t, storetest.NewMemory(), m, withWorkflow(t, fan))
		run := startOf(t, e, "fan")
		time.Sleep(10 * time.Second)
		status, err := e.Runs.Get(t.Context(), continuo.Scope{ProjectID: "default"}, run.ID)
		if err != nil || status.Nodes[1].TurnID == "" || status.Nodes[1].Branch == "" || status.Nodes[3].TurnID != "" {
			t.Fatalf("%+v, %v", status, err)
		}
		if status, err := e.Runs.Stop(t.Context(), run, "enough"); err != nil || status.State != continuo.RunStopped {
			t.Fatal(status, err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := e.Runs.Resume(t.Context(), run, true); err != nil {
			t.Fatal(err)
		}
		if status := awaitRun(t, e, run); status.State != continuo.RunFinished {
			t.Errorf("it is %s: %s", status.State, status.Reason)
		}
	})
}
