package workflow_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

// chain is a workflow with two branches that join, behind them a check that no answer passes.
const chain = `
id: chain
nodes:
  plan: {brief: x, outputs: {go: boolean}}
  left: {brief: x, outputs: {go: boolean}}
  right: {brief: x}
  judge: {brief: x, outputs: {go: boolean}, check: outputs.go, max_attempts: 1}
  end: {brief: x}
  drop: {brief: x}
edges:
  - plan -> left
  - plan -> right
  - left -> judge
  - right -> judge
  - {from: judge, to: end, when: outputs.go}
  - {from: judge, to: drop, otherwise: true}
`

// failedChain is a run of the chain that failed in judge.
func failedChain(t *testing.T, text string) *player {
	t.Helper()
	p := begin(t, text, func(workflow.Step) string { return goAnswer(false) }).play()
	if p.state.Run != continuo.RunFailed || p.states()["judge"] != workflow.NodeFailed {
		t.Fatalf("it is %s: %v", p.state.Run, p.states())
	}
	p.steps = nil
	return p
}

// resume resumes the run, with answers that are right from now on.
func (p *player) resume() string {
	p.t.Helper()
	p.answer = func(workflow.Step) string { return goAnswer(true) }
	p.append(p.state.Resume())
	p.play()
	return strings.Join(p.steps, ", ")
}

func (p *player) repair(entry continuo.Entry, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	p.append(entry)
}

func TestOutputsSetByHandLeadOn(t *testing.T) {
	for outputs, want := range map[string]string{`{"go": true}`: "end 1", `{"go": false}`: "drop 1"} {
		p := failedChain(t, chain)
		p.repair(p.state.Set("judge", json.RawMessage(outputs), "ann"))
		if p.state.Run != continuo.RunFailed {
			t.Errorf("a repair alone has it %s", p.state.Run)
		}
		if got := p.resume(); got != want || p.state.Run != continuo.RunFinished {
			t.Errorf("%s: it is %s after %s", outputs, p.state.Run, got)
		}
		if event := p.log[len(p.log)-1].RunEvent; event.Kind != continuo.RunEventFinished {
			t.Errorf("it ends with %+v", event)
		}
	}
}

func TestOutputsSetByHandAreChecked(t *testing.T) {
	p := failedChain(t, chain)
	for outputs, want := range map[string]string{
		`{}`: "go (boolean) is missing", `{"go": "yes"}`: "must be a boolean", `{"go": true, "gone": 1}`: `there is no output "gone"`, `[]`: "not a JSON object",
	} {
		if _, err := p.state.Set("judge", json.RawMessage(outputs), ""); !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", outputs, err)
		}
	}
	if _, err := p.state.Set("juge", json.RawMessage(`{}`), ""); !errors.Is(err, continuo.ErrNotFound) || !strings.Contains(err.Error(), "did you mean judge") {
		t.Error(err)
	}
}

// Of a finished step that is set or carried out again, what depends on it comes again, and nothing else.
func TestWhatDependsOnARepairedStepComesAgain(t *testing.T) {
	p := failedChain(t, chain)
	p.repair(p.state.Set("left", json.RawMessage(`{"go": true}`), ""))
	if got := p.resume(); got != "judge 2, end 1" || p.state.Run != continuo.RunFinished {
		t.Errorf("%s after %s", p.state.Run, got)
	}
	p = failedChain(t, chain)
	p.repair(p.state.Again("right", "ann"))
	if got := p.resume(); got != "right 2, judge 2, end 1" || p.state.Run != continuo.RunFinished {
		t.Errorf("%s after %s", p.state.Run, got)
	}
	p = failedChain(t, chain)
	if _, err := p.state.Again("end", ""); !errors.Is(err, workflow.ErrNotRepairable) {
		t.Errorf("a step that has not begun is carried out again: %v", err)
	}
}

func TestASkippedStepIsPassedOver(t *testing.T) {
	p := failedChain(t, chain)
	_, err := p.state.Skip("judge", "")
	if !errors.Is(err, workflow.ErrNotRepairable) || !strings.Contains(err.Error(), "the condition of the edge judge -> end needs them (outputs.go)") {
		t.Errorf("outputs that are needed: %v", err)
	}
	if _, err := p.state.Skip("plan", ""); !errors.Is(err, workflow.ErrNotRepairable) {
		t.Errorf("a finished step is skipped: %v", err)
	}
	for _, join := range []string{"any", "all"} {
		text := strings.Replace(chain, "judge: {brief: x,", "judge: {brief: x, join: "+join+",", 1)
		p := failedChain(t, text)
		p.repair(p.state.Again("left", ""))
		p.repair(p.state.Skip("left", ""))
		if got := p.resume(); got != "judge 2, end 1" || p.states()["left"] != workflow.NodeSkipped || p.state.Run != continuo.RunFinished {
			t.Errorf("join %s: %s after %s: %v", join, p.state.Run, got, p.states())
		}
	}
}

func TestWhatNeedsASkippedStepIsNamed(t *testing.T) {
	text := strings.Replace(chain, "  end: {brief: x}", "  end: {brief: x, inputs: {a: nodes.right.text, b: nodes.left?.go}}", 1)
	p := failedChain(t, text)
	p.repair(p.state.Again("left", ""))
	p.repair(p.state.Skip("left", "")) // left is asked for with ?.
	p = failedChain(t, text)
	p.repair(p.state.Again("right", ""))
	if _, err := p.state.Skip("right", ""); err == nil || !strings.Contains(err.Error(), "the input a of the step end needs them") {
		t.Error(err)
	}
}

// A loop behind a step that is carried out again has all its rounds; that of the step itself goes on.
func TestLoopsOfRepairedSteps(t *testing.T) {
	text := `
id: loop
nodes:
  first: {brief: x}
  work: {brief: x}
  judge: {brief: x, outputs: {go: boolean}}
edges:
  - first -> work
  - work -> judge
  - {from: judge, to: work, when: not outputs.go, max: 1}
`
	fails := func() *player {
		p := begin(t, text, func(workflow.Step) string { return goAnswer(false) }).play()
		if p.state.Run != continuo.RunFailed {
			t.Fatalf("it is %s", p.state.Run)
		}
		p.steps = nil
		return p
	}
	p := fails()
	p.repair(p.state.Again("first", ""))
	p.append(p.state.Resume())
	if p.play(); strings.Join(p.steps, ", ") != "first 2, work 3, judge 3, work 4" || p.state.Run != continuo.RunFailed {
		t.Errorf("%s after %v", p.state.Run, p.steps)
	}
	p = fails()
	p.repair(p.state.Again("work", ""))
	p.append(p.state.Resume())
	if p.play(); strings.Join(p.steps, ", ") != "work 3" || p.state.Run != continuo.RunFailed {
		t.Errorf("%s after %v", p.state.Run, p.steps)
	}
	p = fails()
	if _, err := p.state.Set("judge", json.RawMessage(`{"go": false}`), ""); !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), "limit of 1") {
		t.Error(err)
	}
}

func parsed(t *testing.T, text string) *workflow.Workflow {
	t.Helper()
	w, err := workflow.Parse("chain.yaml", []byte(text), workflow.Known{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (p *player) replace(w *workflow.Workflow, drop ...string) {
	p.t.Helper()
	entry, changed, err := p.state.Replace(w, drop, "ann")
	if err != nil || !changed {
		p.t.Fatalf("%t, %v", changed, err)
	}
	p.state.Adopt(w)
	p.append(entry)
}

func TestACorrectedWorkflowIsTaken(t *testing.T) {
	p := failedChain(t, chain)
	p.replace(parsed(t, strings.Replace(chain, ", check: outputs.go", "", 1)))
	if got := p.resume(); got != "judge 2, end 1" || p.state.Run != continuo.RunFinished {
		t.Errorf("%s after %s", p.state.Run, got)
	}
	// A step between finished ones is done; those behind it that have finished are not done again.
	p = failedChain(t, chain)
	text := strings.Replace(strings.Replace(chain, "plan -> right", "plan -> more\n  - more -> right", 1), "  judge:", "  more: {brief: y}\n  judge:", 1)
	p.replace(parsed(t, text))
	if got := p.resume(); got != "judge 1, more 1, end 1" && got != "more 1, judge 1, end 1" {
		t.Errorf("%s after %s", p.state.Run, got)
	}
	// The edges of a finished step are followed again where they are others.
	p = failedChain(t, chain)
	text = strings.Replace(strings.Replace(chain, "- plan -> right", "- {from: plan, to: right, when: not outputs.go}\n  - {from: plan, to: other, when: not outputs.go}", 1), "  judge:", "  other: {brief: y}\n  judge:", 1)
	p.replace(parsed(t, text))
	if got := p.resume(); !strings.Contains(got, "other 1") || strings.Contains(got, "right") || p.state.Run != continuo.RunFinished {
		t.Errorf("%s after %s", p.state.Run, got)
	}
}

func TestACorrectedWorkflowFitsWhatHasFinished(t *testing.T) {
	without := strings.Replace(strings.Replace(strings.Replace(chain, "  right: {brief: x}\n", "", 1), "  - plan -> right\n", "", 1), "  - right -> judge\n", "", 1)
	p := failedChain(t, chain)
	for text, want := range map[string]string{
		without: "the step right has finished and is not in it",
		strings.Replace(chain, "left: {brief: x, outputs: {go: boolean}}", "left: {brief: x, outputs: {come: boolean}}", 1): "come (boolean) is missing",
		strings.Replace(chain, "id: chain", "id: other", 1):                                                                 "give the file the id chain",
		strings.Replace(chain, "nodes:", "inputs: {topic: string}\nnodes:", 1):                                              "topic (string) is missing",
	} {
		if _, _, err := p.state.Replace(parsed(t, text), nil, ""); !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, _, err := p.state.Replace(parsed(t, chain), []string{"left"}, ""); err == nil || !strings.Contains(err.Error(), "is still in it") {
		t.Error(err)
	}
	if _, changed, err := p.state.Replace(parsed(t, chain), nil, ""); changed || err != nil {
		t.Errorf("the same workflow: %t, %v", changed, err)
	}
	p.replace(parsed(t, without), "right")
	if event := p.log[len(p.log)-1].RunEvent; event.By != "ann" || !slices.Equal(event.Dropped, []string{"right"}) || event.Workflow == "" {
		t.Errorf("the event is %+v", event)
	}
	p.append(p.state.Resume())
	if p.play(); p.state.Run != continuo.RunFailed { // the check is as it was
		t.Errorf("it is %s", p.state.Run)
	}
}

// Where the workflow says nothing else of a step that broke off, the step continues with its visit.
func TestACorrectedWorkflowDoesNotRepeatOtherSteps(t *testing.T) {
	p := begin(t, chain, func(workflow.Step) string { return goAnswer(true) })
	p.append(p.state.Cue(p.state.Next()))
	step := p.state.Next()
	p.append(p.state.AttemptFailed(step, continuo.TurnError{Reason: continuo.ReasonUpstream, Message: "no"}, time.Now())...)
	p.replace(parsed(t, strings.Replace(chain, "end: {brief: x}", "end: {brief: y}", 1)))
	p.append(p.state.Resume())
	if step := p.state.Next(); step.Node.ID != "plan" || step.Visit != 1 || !step.Retry || p.state.Workflow.Node("end").Brief != "y" {
		t.Errorf("next is %+v", step)
	}
}
