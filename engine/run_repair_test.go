package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/workflow"
)

// broken is a workflow whose step judge fails: its check was a mistake.
const broken = `
id: broken
nodes:
  plan: {brief: Make a plan.}
  side: {brief: Look aside.}
  judge: {brief: Judge., outputs: {score: integer}, check: outputs.score > 1000, max_attempts: 1}
  close: {brief: Close.}
edges: [plan -> judge, plan -> side, judge -> close, side -> close]
`

var (
	corrected = strings.Replace(broken, ", check: outputs.score > 1000", "", 1)
	// brokenRepairs are those that let a run of broken finish; judges is how often judge finishes then.
	brokenRepairs = map[string]engine.RunRepair{
		"set":     {Kind: engine.RepairSet, Node: "judge", Outputs: json.RawMessage(`{"score": 3}`)},
		"skip":    {Kind: engine.RepairSkip, Node: "judge"},
		"retry":   {Kind: engine.RepairRetry, Node: "judge"},
		"replace": {Kind: engine.RepairReplace, Workflow: []byte(corrected)},
	}
)

// judging answers the steps of broken. Its first score is too low, unless it is asked again.
func judging(a stepRequest) (string, error) {
	switch a.step + " " + a.visit {
	case "judge 1":
		return jsonBlock(`{"score": 7}`), nil
	case "judge 2":
		return jsonBlock(`{"score": 2000}`), nil
	}
	return "said " + a.step, nil
}

func withBroken(t *testing.T) func(*engine.Options) {
	return func(o *engine.Options) { o.Workflows = newWorkflowSource(t, broken) }
}

// failedRun is a run of broken that failed in judge.
func failedRun(t *testing.T, e *testEngine) continuo.Run {
	t.Helper()
	run := startOf(t, e, "broken")
	if status := awaitRun(t, e, run); status.State != continuo.RunFailed || !strings.Contains(status.Reason, "outputs.score > 1000") {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	return run
}

// asksOf counts the requests of each step.
func asksOf(m *scriptedModel) map[string]int {
	asks := map[string]int{}
	for _, request := range m.requests() {
		asks[request.step]++
	}
	return asks
}

func TestAFailedRunIsRepaired(t *testing.T) {
	for name, repair := range brokenRepairs {
		t.Run(name, func(t *testing.T) {
			m := &scriptedModel{answer: judging}
			e := newRunEngine(t, storetest.NewMemory(), m, withBroken(t))
			run := failedRun(t, e)
			repair.By, repair.Key = "ann", "once"
			for range 2 { // the second is the same call again
				if _, err := e.Runs.Repair(t.Context(), run, repair, true); err != nil {
					t.Fatal(err)
				}
			}
			if status := awaitRun(t, e, run); status.State != continuo.RunFinished {
				t.Fatalf("it is %s: %s", status.State, status.Reason)
			}
			judged := map[string]int{"set": 1, "skip": 1, "retry": 2, "replace": 2}[name]
			if asks := asksOf(m); asks["plan"] != 1 || asks["side"] != 1 || asks["close"] != 1 || asks["judge"] != judged {
				t.Errorf("the steps were asked %v", asks)
			}
			checkRefs(t, e, run, name)
			if by := byOf(t, e, run); !slices.Equal(by, []string{"ann"}) {
				t.Errorf("repairs are by %v", by)
			}
			if _, err := e.Runs.Repair(t.Context(), run, engine.RunRepair{Kind: engine.RepairRetry, Node: "plan"}, true); !errors.Is(err, engine.ErrRunOver) {
				t.Errorf("a finished run is repaired: %v", err)
			}
			repair.Node, repair.Drop = "side", []string{"side"}
			if _, err := e.Runs.Repair(t.Context(), run, repair, true); !errors.Is(err, continuo.ErrKeyReused) {
				t.Errorf("a key repairs in two ways: %v", err)
			}
		})
	}
}

// checkRefs checks that what a repair gives can be read by its path under @state.
func checkRefs(t *testing.T, e *testEngine, run continuo.Run, name string) {
	t.Helper()
	conversation, err := e.Log.Conversation(t.Context(), run.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	want := map[continuo.RunEventKind]string{
		continuo.RunBegan: continuo.InputsRef(run.ID), continuo.RunReplaced: continuo.InputsRef(run.ID), continuo.RunNodeSet: continuo.StepRef(run.ID, "judge"),
	}
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event := entry.RunEvent; event != nil && want[event.Kind] != "" && entry.OutputRef != want[event.Kind] {
			t.Errorf("%s: the path of %s is %q", name, event.Kind, entry.OutputRef)
		}
	}
}

// byOf lists who repaired a run.
func byOf(t *testing.T, e *testEngine, run continuo.Run) (by []string) {
	t.Helper()
	conversation, err := e.Log.Conversation(t.Context(), run.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.RunEvent != nil && entry.RunEvent.By != "" {
			by = append(by, entry.RunEvent.By)
		}
	}
	return by
}

// A program that is killed after any of its writes during a repair leaves a run that can be repaired and finished, and
// no step that had finished is carried out twice.
func TestARepairSurvivesEveryKill(t *testing.T) {
	for name, repair := range brokenRepairs {
		t.Run(name, func(t *testing.T) {
			repair.Key = "once"
			for writes := 1; ; writes++ {
				if writes > 100 {
					t.Fatal("the repair never ends")
				}
				if repairKilled(t, repair, writes) {
					return
				}
			}
		})
	}
}

// repairKilled kills the repairing program after so many writes, and has another one finish the run. It reports whether
// the run had ended before.
func repairKilled(t *testing.T, repair engine.RunRepair, writes int) bool {
	t.Helper()
	store, m := storetest.NewMemory(), &scriptedModel{answer: judging}
	run := failedRun(t, newRunEngine(t, store, m, withBroken(t)))
	dies := &mortal{Store: store, left: writes, dead: make(chan struct{})}
	first := newRunEngine(t, dies, m, withBroken(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		if _, err := first.Runs.Repair(ctx, run, repair, true); err != nil {
			return
		}
		for progress, err := range first.Runs.Follow(ctx, run, 0) {
			if err != nil || progress.Status != nil && progress.Status.State == continuo.RunFinished {
				return
			}
		}
	}()
	ended := false
	select {
	case <-dies.dead:
	case <-over:
		select {
		case <-dies.dead:
		default:
			ended = true
		}
	}
	cancel()
	<-over
	second := newRunEngine(t, store, m, withBroken(t))
	if _, err := second.Turns.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Runs.Repair(t.Context(), run, repair, true); err != nil {
		t.Fatalf("after %d writes: %v", writes, err)
	}
	status := awaitRun(t, second, run)
	if status.State != continuo.RunFinished {
		t.Fatalf("after %d writes it is %s: %s", writes, status.State, status.Reason)
	}
	events := finishedNodes(eventsOf(t, second, run))
	slices.Sort(events)
	if len(slices.Compact(slices.Clone(events))) != len(events) {
		t.Fatalf("after %d writes finished were %v", writes, events)
	}
	if asks := asksOf(m); asks["plan"] != 1 || asks["side"] != 1 {
		t.Fatalf("after %d writes the steps were asked %v", writes, asks)
	}
	if got := byRepair(eventsOf(t, second, run)); got != 1 {
		t.Fatalf("after %d writes there are %d repairs", writes, got)
	}
	return ended
}

// byRepair counts the events of repairs.
func byRepair(events []string) (n int) {
	for _, kind := range []continuo.RunEventKind{continuo.RunNodeSet, continuo.RunNodeSkipped, continuo.RunNodeRetried, continuo.RunReplaced} {
		for _, event := range events {
			if strings.HasSuffix(event, " "+string(kind)) {
				n++
			}
		}
	}
	return n
}

// Several repairs can be made before the run goes on.
func TestARepairedRunStaysUntilItIsResumed(t *testing.T) {
	m := &scriptedModel{answer: judging}
	e := newRunEngine(t, storetest.NewMemory(), m, withBroken(t))
	run := failedRun(t, e)
	for _, repair := range []engine.RunRepair{
		{Kind: engine.RepairSet, Node: "plan", Outputs: json.RawMessage(`{"text": "another plan"}`), Hold: true},
		{Kind: engine.RepairSet, Node: "judge", Outputs: json.RawMessage(`{"score": 3}`), Hold: true},
		{Kind: engine.RepairReplace, Workflow: []byte(corrected), Hold: true},
	} {
		status, err := e.Runs.Repair(t.Context(), run, repair, true)
		if err != nil || status.State != continuo.RunFailed {
			t.Fatalf("%s: %+v, %v", repair.Kind, status, err)
		}
	}
	if _, err := e.Runs.Resume(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, e, run); status.State != continuo.RunFinished {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	if asks := asksOf(m); asks["plan"] != 1 || asks["judge"] != 1 || asks["side"] != 2 {
		t.Errorf("the steps were asked %v", asks)
	}
	if w, err := e.Runs.WorkflowOf(t.Context(), run); err != nil || string(w.Text) != corrected {
		t.Errorf("the run's workflow: %v", err)
	}
}

func TestRepairsThatCannotBe(t *testing.T) {
	entered, open := make(chan struct{}, 1), make(chan struct{})
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if a.step == "plan" {
			entered <- struct{}{}
			<-open
		}
		return judging(a)
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, withBroken(t))
	run := startOf(t, e, "broken")
	<-entered
	if _, err := e.Runs.Repair(t.Context(), run, brokenRepairs["set"], true); !errors.Is(err, engine.ErrRunInProgress) {
		t.Errorf("a run that is in progress is repaired: %v", err)
	}
	close(open)
	awaitRun(t, e, run)
	var problems *workflow.Problems
	for _, one := range []struct {
		repair engine.RunRepair
		want   error
	}{
		{engine.RunRepair{Kind: engine.RepairRetry, Node: "nobody"}, continuo.ErrNotFound},
		{engine.RunRepair{Kind: engine.RepairSet, Node: "judge", Outputs: json.RawMessage(`{}`)}, continuo.ErrInvalid},
		{engine.RunRepair{Kind: engine.RepairSkip, Node: "plan"}, workflow.ErrNotRepairable},
		{engine.RunRepair{Kind: engine.RepairReplace, Workflow: []byte("id: other\nnodes: {a: {brief: x}}")}, continuo.ErrInvalid},
	} {
		if _, err := e.Runs.Repair(t.Context(), run, one.repair, true); !errors.Is(err, one.want) {
			t.Errorf("%s %s: %v", one.repair.Kind, one.repair.Node, err)
		}
	}
	if _, err := e.Runs.Repair(t.Context(), run, engine.RunRepair{Kind: engine.RepairReplace, Workflow: []byte("id: broken"), File: "my.yaml"}, true); !errors.As(err, &problems) || problems.List[0].File != "my.yaml" {
		t.Errorf("a workflow that is not right: %v", err)
	}
	if byRepair(eventsOf(t, e, run)) != 0 {
		t.Error("a repair that was refused is recorded")
	}
}
