package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/process"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// scriptedRun is an engine with one run, which reports the events of its script, and records decisions.
type scriptedRun struct {
	waits    []turn.WaitingCall
	owner    string // of its turns
	script   []engine.RunProgress
	at       engine.RunStatus
	approved []bool
	allowed  []bool
	stopped  bool
}

// scriptedRunTurns are the turns of a scriptedRun.
type scriptedRunTurns struct{ *scriptedRun }

func (r *scriptedRun) Get(context.Context, continuo.Scope, string) (*engine.RunStatus, error) {
	return &r.at, nil
}

func (r *scriptedRun) Follow(context.Context, continuo.Run, int64) iter.Seq2[engine.RunProgress, error] {
	return func(yield func(engine.RunProgress, error) bool) {
		for _, progress := range r.script {
			if !yield(progress, nil) {
				return
			}
		}
	}
}

func (r *scriptedRun) Stop(context.Context, continuo.Run, string) (*engine.RunStatus, error) {
	r.stopped = true
	return &r.at, nil
}

func (r *scriptedRun) Decide(_ context.Context, _ continuo.Run, decision engine.RunDecision, _ bool) (*engine.RunStatus, error) {
	r.approved = append(r.approved, decision.Approved)
	return &r.at, nil
}

func (r scriptedRunTurns) Get(context.Context, continuo.Conversation, string) (continuo.Turn, error) {
	return continuo.Turn{State: continuo.TurnRunning, Owner: r.owner}, nil
}

func (r scriptedRunTurns) Waiting(context.Context, continuo.Turn) ([]turn.WaitingCall, error) {
	return r.waits, nil
}

func (r scriptedRunTurns) Decide(_ context.Context, _ continuo.Turn, _ string, decision turn.Decision) error {
	r.allowed = append(r.allowed, decision.Allowed)
	return nil
}

// followed follows a run where no terminal is.
func followed(t *testing.T, r *scriptedRun, flags runFlags) (out, notes string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	a := &app{console: &console{in: strings.NewReader(""), out: &o, err: &e}}
	status := someRun()
	status.Nodes = nil
	w := a.newRunWatch(runService{r, scriptedRunTurns{r}}, continuo.Conversation{}, newRunView(status, false), flags, newTypist(a.in), make(chan os.Signal), func() {})
	err = w.follow(t.Context(), 0)
	return o.String(), e.String(), err
}

func inState(state continuo.RunState, nodes ...workflow.NodeStatus) engine.RunStatus {
	status := someRun()
	status.State, status.Nodes = state, nodes
	return status
}

// TestWatchedRunEnds ends the program as the run ends.
func TestWatchedRunEnds(t *testing.T) {
	for state, want := range map[continuo.RunState]int{
		continuo.RunFinished: 0, continuo.RunFailed: 1, continuo.RunStopped: 1, continuo.RunCancelled: 1, continuo.RunWaiting: 6,
	} {
		r := &scriptedRun{at: inState(state)}
		r.at.Outputs = json.RawMessage(`{"report":"tea"}`)
		out, _, err := followed(t, r, runFlags{})
		if got := exitCode(err); got != want {
			t.Errorf("a run that is %s ends with %d, want %d (%v)", state, got, want, err)
		}
		if wrote := strings.Contains(out, `"report": "tea"`); wrote != (state == continuo.RunFinished) {
			t.Errorf("a run that is %s wrote %q", state, out)
		}
	}
}

// TestWatchedRunWaits leaves a decision to others, unless --yes makes it.
func TestWatchedRunWaits(t *testing.T) {
	waiting := inState(continuo.RunWaiting, workflow.NodeStatus{ID: "release", State: workflow.NodeWaiting, Question: "Publish?", Visit: 1})
	script := []engine.RunProgress{{Entry: &continuo.Entry{RunEvent: &continuo.RunEvent{Kind: continuo.RunEventWaiting}}, Status: &waiting}}

	r := &scriptedRun{script: script, at: waiting}
	_, _, err := followed(t, r, runFlags{})
	if !errors.Is(err, engine.ErrRunWaits) || !strings.Contains(err.Error(), "Publish? (release); decide with: continuo run approve run_0199") || len(r.approved) > 0 {
		t.Errorf("the run ended with %v, approved %v", err, r.approved)
	}
	r = &scriptedRun{script: script, at: inState(continuo.RunFinished)}
	if _, _, err := followed(t, r, runFlags{Yes: true}); err != nil || len(r.approved) != 1 || !r.approved[0] {
		t.Errorf("with --yes the run ended with %v, approved %v", err, r.approved)
	}
}

// TestWatchedRunAsks leaves a run waiting for a decision on a call without a terminal to ask in; --yes is not for it, and a
// turn that runs elsewhere is followed.
func TestWatchedRunAsks(t *testing.T) {
	script := []engine.RunProgress{{Turn: &turn.Event{Kind: turn.Asked, TurnID: "turn_1", Call: &continuo.ToolCall{ID: "c", Name: "fs.write"}}}}
	asks := workflow.NodeStatus{ID: "write", State: workflow.NodeWaiting, WaitingFor: []workflow.WaitingCall{{ID: "c", Name: "fs.write", Arguments: "{}"}}}
	r := &scriptedRun{owner: process.Self() + "#keep_1", script: script, at: inState(continuo.RunWaiting, asks), waits: []turn.WaitingCall{{ToolCall: continuo.ToolCall{ID: "c"}}}}
	_, _, err := followed(t, r, runFlags{Yes: true})
	if !errors.Is(err, engine.ErrRunWaits) || len(r.allowed) > 0 || !strings.Contains(err.Error(), "may this run? fs.write({}) (write); decide with: continuo run approve") {
		t.Errorf("a call of this process: %v, allowed %v", err, r.allowed)
	}
	r = &scriptedRun{owner: "elsewhere#keep_1", script: script, at: inState(continuo.RunFinished)}
	if _, _, err := followed(t, r, runFlags{}); err != nil || len(r.allowed) > 0 {
		t.Errorf("a call of another process: %v, allowed %v", err, r.allowed)
	}
}

// TestInterrupted stops what this process carries out, and leaves alone what another one does.
func TestInterrupted(t *testing.T) {
	for owner, stops := range map[string]bool{process.Self() + "#keep_1": true, "elsewhere#keep_1": false} {
		r := &scriptedRun{owner: owner}
		a := &app{console: &console{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}}}
		status := someRun()
		status.TurnID = "turn_1"
		left := false
		w := a.newRunWatch(runService{r, scriptedRunTurns{r}}, continuo.Conversation{}, newRunView(status, false), runFlags{}, newTypist(a.in), make(chan os.Signal), func() { left = true })
		err := w.interrupted(t.Context())
		w.stops.Wait()
		if stops && (err != nil || !r.stopped || left) {
			t.Errorf("a run of this process: %v, stopped %v, left %v", err, r.stopped, left)
		}
		if !stops && (exitCode(err) != 130 || r.stopped || !left || !strings.Contains(err.Error(), "continues elsewhere; look again with: continuo run resume run_0199")) {
			t.Errorf("a run of another process: %v, stopped %v, left %v", err, r.stopped, left)
		}
	}
}

// TestQuestionShowsWhatIsApproved has the outputs of the steps that lead straight to the node below the question, in
// the room that there is, and how to answer below them.
func TestQuestionShowsWhatIsApproved(t *testing.T) {
	node := func(id, outputs string) workflow.NodeStatus {
		return workflow.NodeStatus{ID: id, State: workflow.NodeFinished, Outputs: json.RawMessage(outputs)}
	}
	edges := []workflow.Edge{{From: "plan", To: "draft"}, {From: "draft", To: "release"}, {From: "mend", To: "release"}}
	nodes := []workflow.NodeStatus{
		node("plan", `{"title":"Tea"}`), node("draft", `{"text":"`+strings.Repeat(`line\n`, 50)+`"}`), {ID: "mend", State: workflow.NodeSkipped}, {ID: "release", State: workflow.NodeWaiting},
	}
	q := &question{node: workflow.NodeStatus{ID: "release", Question: "Publish?"}, led: leading(edges, nodes, "release")}
	for _, room := range []int{100, 10, 0} {
		var lines []string
		for _, line := range q.lines(40, room, false) {
			lines = append(lines, term.Plain(line))
		}
		text := strings.Join(lines, "\n")
		if !strings.HasPrefix(text, "Publish?\ndraft gave:\n") || strings.Contains(text, "plan") || strings.Contains(text, `\n`) ||
			!strings.Contains(text, "more lines\ny: yes") {
			t.Errorf("in %d lines the question is\n%s", room, text)
		}
		if most := min(max(room, 5), outputLinesMost+4); len(lines) > most {
			t.Errorf("the question has %d lines, and at most %d were expected", len(lines), most)
		}
	}
}

// TestAbandonedRun is a run that should continue, and that has written no event for a while.
func TestAbandonedRun(t *testing.T) {
	status := someRun()
	status.UpdatedAt = after(60)
	view := func() string {
		var lines []string
		for _, line := range newRunView(status, false).finalPicture(frame{width: 79, now: after(90)}) {
			lines = append(lines, term.Plain(line))
		}
		return strings.Join(lines, "\n")
	}
	if text := view(); !strings.Contains(text, abandoned) || strings.Contains(text, " s\n") || strings.ContainsAny(text, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") {
		t.Errorf("an abandoned run is shown as\n%s", text)
	}
	if !strings.Contains(nextCommand(status, after(90)), "continuo run resume "+status.ID) || nextCommand(status, after(70)) != "" {
		t.Error("the command that resumes the run is named too early or not at all")
	}
	status.TurnID = "turn_1"
	if text := view(); strings.Contains(text, abandoned) {
		t.Errorf("a run with a turn in progress is shown as\n%s", text)
	}
}

// TestAnswers script yes from no, and both from what is neither.
func TestAnswers(t *testing.T) {
	approval, call := &question{}, &question{call: &continuo.ToolCall{Name: "fs.write"}}
	for _, c := range []struct {
		of     *question
		output string
		want   decided
		parsed bool
	}{
		{approval, "y", decided{yes: true}, true},
		{approval, " Yes, well done ", decided{yes: true, comment: "well done"}, true},
		{approval, "n too short", decided{comment: "too short"}, true},
		{approval, "maybe", decided{comment: "maybe"}, false},
		{approval, "a", decided{comment: "a"}, false},
		{approval, "", decided{}, false},
		{call, "a", decided{yes: true, always: true}, true},
		{call, "no", decided{}, true},
		{call, "read it instead", decided{comment: "read it instead"}, true},
		{call, "a better one", decided{comment: "a better one"}, true},
		{call, "  ", decided{}, false},
	} {
		if got, ok := c.of.parseAnswer(c.output); got != c.want || ok != c.parsed {
			t.Errorf("%q is %+v, %v; want %+v, %v", c.output, got, ok, c.want, c.parsed)
		}
	}
}
