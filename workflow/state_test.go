package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

// player carries a run out by answers that a function gives, and keeps its log.
type player struct {
	t      rapidOrTest
	state  *workflow.State
	log    []continuo.Entry
	steps  []string // those that finished, as node visit
	answer func(step workflow.Step) string
}

type rapidOrTest interface {
	Helper()
	Fatalf(format string, args ...any)
}

func begin(t rapidOrTest, text string, answer func(workflow.Step) string) *player {
	t.Helper()
	w, err := workflow.Parse("test.yaml", []byte(text), workflow.Known{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p := &player{t: t, state: workflow.NewState(w, "run_1"), answer: answer}
	inputs, err := w.ReadInputs(nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	first, err := w.Begin("run_1", "", inputs)
	if err != nil {
		t.Fatalf("%v", err)
	}
	p.append(first)
	return p
}

func (p *player) append(entries ...continuo.Entry) {
	p.t.Helper()
	for _, entry := range entries {
		entry.Seq = int64(len(p.log) + 1)
		p.log = append(p.log, entry)
		if err := p.state.Apply(&entry); err != nil {
			p.t.Fatalf("%v", err)
		}
		if entry.RunEvent.Kind == continuo.RunNodeFinished {
			p.steps = append(p.steps, fmt.Sprintf("%s %d", entry.NodeID, entry.RunEvent.Visit))
		}
	}
}

// play goes on until nothing is left to do.
func (p *player) play() *player {
	p.t.Helper()
	for range 1000 {
		switch step := p.state.Next(); step.Kind {
		case workflow.StepNone:
			return p
		case workflow.StepRecord:
			p.append(p.state.Record()...)
		case workflow.StepBegin:
			p.append(p.state.Cue(step))
		case workflow.StepAttend:
			p.append(p.state.Conclude(step, []string{p.answer(step)}, false)...)
		}
	}
	p.t.Fatalf("the run does not end: %v", p.steps)
	return p
}

func (p *player) states() map[string]workflow.NodeState {
	states := map[string]workflow.NodeState{}
	for _, node := range p.state.Status().Nodes {
		states[node.ID] = node.State
	}
	return states
}

// goAnswer answers a step that declares the output go by whether its visit is one of those that go on.
func goAnswer(goes bool) string { return fmt.Sprintf("```json\n{\"go\": %t}\n```", goes) }

func TestANodeThatNoTakenEdgeLeadsToIsSkippedWithAllBehindIt(t *testing.T) {
	p := begin(t, `
id: fork
nodes:
  first: {brief: x, outputs: {go: boolean}}
  left: {brief: x}
  after: {brief: x}
  right: {brief: x}
  end: {brief: x}
edges:
  - {from: first, to: left, when: outputs.go}
  - {from: first, to: right, otherwise: true}
  - left -> after
  - after -> end
  - right -> end
`, func(workflow.Step) string { return goAnswer(false) }).play()
	if got := strings.Join(p.steps, ", "); got != "first 1, right 1, end 1" || p.state.Run != continuo.RunFinished {
		t.Errorf("%s: finished were %s", p.state.Run, got)
	}
	if states := p.states(); states["left"] != workflow.NodeSkipped || states["after"] != workflow.NodeSkipped {
		t.Errorf("the nodes are %v", states)
	}
}

// The inner loop has all its rounds again in each round of the outer one.
func TestLoopsWithinLoops(t *testing.T) {
	p := begin(t, `
id: loops
nodes:
  a: {brief: x}
  b: {brief: x}
  c: {brief: x, outputs: {go: boolean}}
  d: {brief: x, outputs: {go: boolean}}
  e: {brief: x}
edges:
  - a -> b
  - b -> c
  - {from: c, to: b, when: not outputs.go, max: 1}
  - {from: c, to: d, otherwise: true}
  - {from: d, to: a, when: not outputs.go, max: 1}
  - {from: d, to: e, otherwise: true}
`, func(step workflow.Step) string { return goAnswer(step.Visit%2 == 0) }).play()
	want := "a 1, b 1, c 1, b 2, c 2, d 1, a 2, b 3, c 3, b 4, c 4, d 2, e 1"
	if got := strings.Join(p.steps, ", "); got != want || p.state.Run != continuo.RunFinished {
		t.Errorf("%s (%s): finished were\n%s, want\n%s", p.state.Run, p.state.Reason, got, want)
	}
}

func TestALoopThatComesToItsLimit(t *testing.T) {
	text := `
id: limit
nodes:
  a: {brief: x, outputs: {go: boolean}}
  b: {brief: x}
edges:
  - {from: a, to: a, when: not outputs.go, max: 2, at_limit: %s}
  - {from: a, to: b, otherwise: true}
`
	never := func(workflow.Step) string { return goAnswer(false) }
	p := begin(t, fmt.Sprintf(text, "fail"), never).play()
	if p.state.Run != continuo.RunFailed || !strings.Contains(p.state.Reason, "the loop a -> a has come to its limit of 2") {
		t.Errorf("it is %s: %s", p.state.Run, p.state.Reason)
	}
	p = begin(t, fmt.Sprintf(text, "continue"), never).play()
	if got := strings.Join(p.steps, ", "); got != "a 1, a 2, a 3, b 1" || p.state.Run != continuo.RunFinished {
		t.Errorf("%s: finished were %s", p.state.Run, got)
	}
}

func TestBranchesContinueWhileOneWaitsForAPerson(t *testing.T) {
	p := begin(t, `
id: wait
nodes:
  ask: {approval: Really?}
  work: {brief: x}
  end: {brief: x}
edges:
  - {from: ask, to: end, when: outputs.approved}
  - work -> end
`, func(workflow.Step) string { return "done" }).play()
	if got := strings.Join(p.steps, ", "); got != "work 1" || p.state.Run != continuo.RunWaiting {
		t.Fatalf("%s: finished were %s", p.state.Run, got)
	}
	p.append(p.state.Decide(p.state.Waiting()[0], true, "")...)
	if p.play(); p.state.Run != continuo.RunFinished {
		t.Errorf("it is %s: %v", p.state.Run, p.steps)
	}
}

// A decision of a run that was stopped stands, and the run goes on when somebody resumes it.
func TestADecisionDoesNotResumeARunThatWasStopped(t *testing.T) {
	p := begin(t, "id: wait\nnodes:\n  ask: {approval: Really?}\n", nil).play()
	p.append(p.state.Halt("enough"))
	p.append(p.state.Decide(p.state.Waiting()[0], true, "")...)
	if p.play(); p.state.Run != continuo.RunStopped {
		t.Fatalf("it is %s", p.state.Run)
	}
	p.append(p.state.Resume())
	if p.play(); p.state.Run != continuo.RunFinished || string(p.state.Status().Outputs) != `{"ask":{"approved":true,"comment":""}}` {
		t.Errorf("it is %s with %s", p.state.Run, p.state.Status().Outputs)
	}
}

// sketch draws a workflow of sequences, branches that join, and loops.
type sketch struct {
	t     *rapid.T
	nodes []string
	edges []string
	loops int
}

func (s *sketch) node() string {
	id := fmt.Sprintf("n%d", len(s.nodes))
	s.nodes = append(s.nodes, id)
	return id
}

func (s *sketch) edge(from, to, more string) {
	s.edges = append(s.edges, fmt.Sprintf("  - {from: %s, to: %s%s}", from, to, more))
}

// block draws a piece with one node to begin and one to end with.
func (s *sketch) block(depth int) (first, last string) {
	kind := "node"
	if depth > 0 {
		kind = rapid.SampledFrom([]string{"node", "sequence", "branches", "loop"}).Draw(s.t, "kind")
	}
	switch kind {
	case "sequence":
		first, middle := s.block(depth - 1)
		begin, last := s.block(depth - 1)
		s.edge(middle, begin, "")
		return first, last
	case "branches":
		first := s.node()
		var ends []string
		for i := range rapid.IntRange(2, 3).Draw(s.t, "branches") {
			begin, end := s.block(depth - 1)
			when := ""
			if i > 0 && rapid.Bool().Draw(s.t, "conditional") { // the first is always taken
				when = fmt.Sprintf(", when: nodes.%s.go", first)
			}
			s.edge(first, begin, when)
			ends = append(ends, end)
		}
		last := s.node()
		for _, end := range ends {
			s.edge(end, last, "")
		}
		return first, last
	case "loop":
		first, end := s.block(depth - 1)
		last := s.node()
		s.edge(end, last, "")
		s.edge(last, first, fmt.Sprintf(", when: outputs.go, max: %d, at_limit: continue", rapid.IntRange(1, 2).Draw(s.t, "max")))
		s.loops++
		return first, last
	}
	id := s.node()
	return id, id
}

func (s *sketch) text() string {
	text := "id: drawn\nnodes:\n"
	for _, id := range s.nodes {
		text += fmt.Sprintf("  %s: {brief: x, outputs: {go: boolean}}\n", id)
	}
	return text + "edges:" + map[bool]string{true: " []", false: ""}[len(s.edges) == 0] + "\n" + strings.Join(s.edges, "\n") + "\n"
}

// Whatever the workflow and the answers: the run ends, visits count from 1 without a gap, no visit is finished
// twice, and at each point the log alone says what is next.
func TestRunsOfAnyWorkflowEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &sketch{t: t}
		s.block(3)
		p := begin(t, s.text(), func(workflow.Step) string { return goAnswer(rapid.Bool().Draw(t, "go")) }).play()
		if p.state.Run != continuo.RunFinished {
			t.Fatalf("it is %s: %s\n%s", p.state.Run, p.state.Reason, s.text())
		}
		visits := map[string]int{}
		for _, step := range p.steps {
			id, visit, _ := strings.Cut(step, " ")
			if visits[id]++; fmt.Sprint(visits[id]) != visit {
				t.Fatalf("%s comes after visit %d: %v\n%s", step, visits[id]-1, p.steps, s.text())
			}
		}
		for id, state := range p.states() {
			if state != workflow.NodeFinished && state != workflow.NodeSkipped {
				t.Fatalf("%s is %s\n%s", id, state, s.text())
			}
		}
		p.readAgain(t)
	})
}

// readAgain reads the log again and compares the next steps with what was done.
func (p *player) readAgain(t *rapid.T) {
	state := workflow.NewState(p.state.Workflow, "run_1")
	for i := range p.log {
		entry := &p.log[i]
		switch step := state.Next(); entry.RunEvent.Kind {
		case continuo.RunNodeBegan:
			if step.Kind != workflow.StepBegin || step.Node.ID != entry.NodeID || step.Visit != entry.RunEvent.Visit {
				t.Fatalf("entry %d begins %s, and the log before says %+v", i+1, entry.NodeID, step)
			}
		case continuo.RunNodeFinished:
			if step.Kind != workflow.StepAttend || step.Node.ID != entry.NodeID {
				t.Fatalf("entry %d finishes %s, and the log before says %+v", i+1, entry.NodeID, step)
			}
		}
		if err := state.Apply(entry); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if got, want := fmt.Sprint(state.Status()), fmt.Sprint(p.state.Status()); got != want {
		t.Fatalf("read again it is\n%s\nand was\n%s", got, want)
	}
}

func TestInputsAreChecked(t *testing.T) {
	w, err := workflow.Parse("t.yaml", []byte(`
id: inputs
inputs:
  topic: string
  size: {type: integer, default: 3}
  tone: {type: string, enum: [dry, warm], optional: true}
nodes: {a: {brief: x}}
`), workflow.Known{})
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		`{"topic": "tea"}`: `{"size":3,"topic":"tea"}`,
		`{"size": 4, "topic": "<&>", "tone": "warm"}`: `{"size":4,"tone":"warm","topic":"<&>"}`,
		`{}`:                                   "topic (string) is missing",
		`{"topic": 5}`:                         "topic is the number 5 and must be a string",
		`{"topic": "a", "size": 1.5}`:          "size is the number 1.5 and must be an integer",
		`{"topic": "a", "tone": "loud"}`:       `tone is "loud" and must be one of "dry", "warm"`,
		`{"topci": "a"}`:                       `there is no input "topci"; did you mean topic?; topic (string) is missing`,
		`[]`:                                   "not a JSON object",
		`{"topic": "a"} {"topic": "b"}`:        "more than one JSON object",
		strings.Repeat(`{"topic":`, 200) + `1`: "nested more than",
	} {
		read, err := w.ReadInputs([]byte(given))
		if got := string(read); err == nil && got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

// Where the outputs are in an answer.
func TestOutputsAreFoundInAnswers(t *testing.T) {
	for answer, want := range map[string]string{
		"```json\n{\"go\": true}\n```":                                     "",
		"{\"go\": true}":                                                   "",
		"Text.\n```\n{\"go\": true}\n```\nBye.":                            "",
		"```json\n{\"go\": false}\n```\nno:\n```json\n{\"go\": true}\n```": "",
		"```go\nfunc main() {}\n```\n```json\n{\"go\": true}\n```":         "",
		"```json\n{\"go\": true}":                                          "", // the fence is not closed
		"  ```json\n  {\"go\": true}\n  ```":                               "",
		"```json\n{\"go\": true}\n```\n```go\nx\n```":                      "",
		"no JSON":                                    "does not end with one JSON object",
		"```json\n{\"go\": 1}\n```":                  "go is the number 1 and must be a boolean",
		"```json\n{\"go\": null}\n```":               "go (boolean) is missing",
		"{\"go\": true}\n\nThat is all.":             "",
		"{I think} so\n```json\n{\"go\": true}\n```": "",
		"~~~json\n{\"go\": true}\n~~~":               "",
		"````\n```\n{\"go\": true}\n```\n````":       "",
		"```json\n{go true}\n```":                    "cannot be read",
	} {
		p := begin(t, "id: one\nnodes:\n  a: {brief: x, outputs: {go: boolean}, max_attempts: 1}\n", func(workflow.Step) string { return answer }).play()
		if want == "" && p.state.Run != continuo.RunFinished || want != "" && !strings.Contains(p.state.Reason, want) {
			t.Errorf("%q: %s: %s", answer, p.state.Run, p.state.Reason)
		}
	}
}

// An answer that broke off within its block continues with a piece that looks like a block of its own.
func TestOutputsOfAnAnswerInPieces(t *testing.T) {
	for _, answers := range [][]string{
		{"```json\n", "{\"go\": true}\n```"},
		{"```json\n{\"go\"", ": true}\n```"},
		{"```json\n{\"go\": true, \"more\": ", "{\"go\": 1}}\n```"},
		{"```json\n{\"go\": fal", "Again:\n```json\n{\"go\": true}\n```"},
	} {
		p := begin(t, "id: one\nnodes:\n  a: {brief: x, outputs: {go: boolean}, max_attempts: 1}\n", nil)
		p.append(p.state.Cue(p.state.Next()))
		p.append(p.state.Conclude(p.state.Next(), answers, false)...)
		if got := string(p.state.Status().Outputs); got != `{"a":{"go":true}}` {
			t.Errorf("%q: %s %s %s", answers, p.state.Run, p.state.Reason, got)
		}
	}
}

// What a person removed is missing, and the run goes on without it.
func TestARunContinuesWithoutRedactedContent(t *testing.T) {
	p := begin(t, "id: one\nnodes:\n  a: {brief: x}\n  b: {brief: x}\nedges: [a -> b]\n", func(workflow.Step) string { return "done" }).play()
	state := workflow.NewState(p.state.Workflow, "run_1")
	for _, entry := range slices.Clone(p.log) {
		if entry.NodeID == "a" && entry.RunEvent.Kind == continuo.RunNodeFinished {
			entry.Redacted = &continuo.Redaction{}
			event := *entry.RunEvent
			event.Outputs, entry.RunEvent = nil, &event
		}
		if err := state.Apply(&entry); err != nil {
			t.Fatal(err)
		}
	}
	if nodes := state.Status().Nodes; state.Run != continuo.RunFinished || string(nodes[0].Outputs) != "{}" || string(nodes[1].Outputs) != `{"text":"done"}` {
		t.Errorf("it is %s: %s %s", state.Run, nodes[0].Outputs, nodes[1].Outputs)
	}
}

// What passes is waited out, each time longer, until the workflow's limit; what the program's end broke off is not.
func TestAStepThatBreaksOffAgainAndAgainBreaksTheRunOff(t *testing.T) {
	p := begin(t, "id: one\nretry: {max: 12, for: 20h}\nnodes:\n  a: {brief: x}\n", nil)
	now, last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Duration(0)
	gone := continuo.TurnError{Reason: continuo.ReasonNetwork, Retryable: true, Message: "gone"}
	for attempts := 1; p.state.Run == continuo.RunRunning; attempts++ {
		switch step := p.state.Next(); step.Kind {
		case workflow.StepBegin:
			p.append(p.state.Cue(step))
		case workflow.StepAttend:
			p.append(p.state.AttemptFailed(step, gone, now)...)
		case workflow.StepWait:
			wait := step.Until.Sub(now)
			if wait < last/2 || wait > 15*time.Minute {
				t.Errorf("it waits %s after %s", wait, last)
			}
			now, last = step.Until, wait
			p.append(p.state.Cue(step.After()))
		}
	}
	if !strings.Contains(p.state.Reason, "the step a failed 13 times in a row") || last < 10*time.Minute {
		t.Errorf("it waited %s at last, and says %s", last, p.state.Reason)
	}
	p.append(p.state.Resume())
	step := p.state.Next()
	if step.Kind != workflow.StepAttend || !step.Retry {
		t.Errorf("resumed, next is %+v", step)
	}
	gone.Reason = continuo.ReasonInterrupted
	if entries := p.state.AttemptFailed(step, gone, now); len(entries) != 0 {
		t.Errorf("the end of the program is waited out: %+v", entries)
	}
	gone.Reason, gone.RetryAfter = continuo.ReasonRateLimit, 3600
	if entries := p.state.AttemptFailed(step, gone, now); entries[0].RunEvent.Until.Sub(now) != time.Hour {
		t.Errorf("what the provider asks for is not waited: %+v", entries[0].RunEvent)
	}
}

// Of two approvals that meet both have to be given, unless one is asked because the other was rejected, or the file says so.
func TestJoins(t *testing.T) {
	const gates = "id: gates\nnodes:\n  one: {approval: One?}\n  two: {approval: Two?}\n  work: {brief: x}\nedges:\n"
	const both = "  - {from: one, to: work, when: outputs.approved}\n  - {from: two, to: work, when: outputs.approved}\n"
	for _, of := range []struct {
		name, text  string
		one, two    bool
		worked      bool
		alsoDecides bool // two is asked
	}{
		{"both", gates + both, true, true, true, true},
		{"one rejected", gates + both, true, false, false, true},
		{"any", strings.Replace(gates, "{brief: x}", "{brief: x, join: any}", 1) + both, true, false, true, true},
		{"escalation, approved at once", gates + both + "  - {from: one, to: two, otherwise: true}\n", true, false, true, false},
		{"escalation, approved above", gates + both + "  - {from: one, to: two, otherwise: true}\n", false, true, true, true},
		{"all of steps", strings.NewReplacer("{approval: One?}", "{brief: x, outputs: {approved: boolean}}", "{brief: x}", "{brief: x, join: all}").Replace(gates) + both, false, true, false, true},
	} {
		t.Run(of.name, func(t *testing.T) {
			p := begin(t, of.text, func(step workflow.Step) string {
				if step.Node.ID == "one" {
					return "```json\n{\"approved\": false}\n```"
				}
				return "done"
			}).play()
			for _, decision := range []struct {
				node string
				yes  bool
			}{{"one", of.one}, {"two", of.two}} {
				node := p.state.Workflow.Node(decision.node)
				if node.Approval == nil || decision.node == "two" && !of.alsoDecides {
					continue
				}
				p.append(p.state.Decide(node, decision.yes, "")...)
				p.play()
			}
			if worked := slices.Contains(p.steps, "work 1"); worked != of.worked || p.state.Run != continuo.RunFinished {
				t.Errorf("it is %s, and finished were %v", p.state.Run, p.steps)
			}
		})
	}
}

// An answer of fences takes no longer than any other of its length.
func TestOutputsAreFoundInAnswersOfFences(t *testing.T) {
	answer := strings.Repeat("```x\n", 1<<20) + "```json\n{\"go\": true}\n```\n"
	p := begin(t, "id: one\nnodes:\n  a: {brief: x, outputs: {go: boolean}, max_attempts: 1}\n", func(workflow.Step) string { return answer }).play()
	if p.state.Run == continuo.RunRunning {
		t.Error("the run has not ended")
	}
}
