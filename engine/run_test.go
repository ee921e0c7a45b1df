package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/workflow"
)

// report is a workflow with two branches that join, a loop, and a person's decision.
const report = `
id: report
name: Write a report
inputs:
  topic: {type: string, default: tea}
nodes:
  plan: {brief: Make a plan., agent: planner, outputs: {parts: {type: array}}}
  facts: {brief: Find facts., outputs: {facts: string}}
  views: {brief: Find views.}
  draft: {brief: Write the draft., outputs: {draft: string}}
  review:
    brief: Judge the draft.
    outputs: {verdict: {type: string, enum: [redo, good]}, score: integer}
  release: {approval: Publish it?}
  publish: {brief: Publish it.}
  drop: {brief: Say why it was dropped.}
edges:
  - plan -> facts
  - plan -> views
  - facts -> draft
  - views -> draft
  - draft -> review
  - {from: review, to: draft, when: outputs.verdict == "redo", max: 2}
  - {from: review, to: release, otherwise: true}
  - {from: release, to: publish, when: outputs.approved}
  - {from: release, to: drop, otherwise: true}
outputs: {score: nodes.review.score}
`

// workflowSource is a source of workflows in memory.
type workflowSource map[string]*workflow.Workflow

func newWorkflowSource(t *testing.T, texts ...string) workflowSource {
	t.Helper()
	s := workflowSource{}
	for _, text := range texts {
		w, err := workflow.Parse("test.yaml", []byte(text), workflow.Known{Any: true})
		if err != nil {
			t.Fatal(err)
		}
		s[w.ID] = w
	}
	return s
}

func (s workflowSource) Workflow(id string) (*workflow.Workflow, error) {
	if found := s[id]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("workflow %q: %w", id, continuo.ErrNotFound)
}

func (s workflowSource) Workflows() ([]*workflow.Workflow, error) {
	var all []*workflow.Workflow
	for _, w := range s {
		all = append(all, w)
	}
	return all, nil
}

// stepRequest is a request of a step as the model got it.
type stepRequest struct {
	step, visit string
	system      []string
	messages    []string // of the others, as role: text
	form        string   // the type of response_format
}

// scriptedModel is a model that answers steps by a function, which may fail.
type scriptedModel struct {
	answer   func(stepRequest) (string, error)
	mu       sync.Mutex
	received []stepRequest
}

func (a *scriptedModel) Info() model.Info {
	return model.Info{Provider: "scripted", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat}
}

func (a *scriptedModel) Stream(_ context.Context, body []byte) iter.Seq2[model.Delta, error] {
	request := parseStepRequest(body)
	a.mu.Lock()
	a.received = append(a.received, request)
	a.mu.Unlock()
	return func(yield func(model.Delta, error) bool) {
		text, err := a.answer(request)
		if call, ok := strings.CutPrefix(text, "call "); ok {
			name, arguments, _ := strings.Cut(call, " ")
			for _, delta := range []model.Delta{
				{ToolCall: &model.ToolCallDelta{ID: fmt.Sprintf("call_%d", len(request.messages)), Type: "function", Name: name, Arguments: arguments, Done: true}},
				{Finish: "tool_calls"},
			} {
				if !yield(delta, nil) {
					return
				}
			}
			return
		}
		if text != "" && !yield(model.Delta{Text: text}, nil) {
			return
		}
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		finish := "stop"
		if strings.HasSuffix(text, cutHere) {
			finish = "length"
		}
		yield(model.Delta{Finish: finish}, nil)
	}
}

// cutHere is the end of an answer of a scriptedModel that reached its limit of tokens.
const cutHere = "…"

func (a *scriptedModel) requests() []stepRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.received)
}

func parseStepRequest(body []byte) stepRequest {
	var request struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Form struct{ Type string } `json:"response_format"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		panic(err)
	}
	read := stepRequest{form: request.Form.Type}
	for _, m := range request.Messages {
		var text string
		_ = json.Unmarshal(m.Content, &text) // null of an answer with calls
		if m.Role == "system" {
			read.system = append(read.system, text)
			for _, line := range strings.Split(text, "\n") {
				if step, ok := strings.CutPrefix(line, "- step: "); ok {
					read.step, _, _ = strings.Cut(step, " ")
				}
				if visit, ok := strings.CutPrefix(line, "- visit: "); ok {
					read.visit = visit
				}
			}
			continue
		}
		read.messages = append(read.messages, m.Role+": "+text)
	}
	return read
}

// answerWell answers the steps of the report with valid outputs; the first review asks for a redo.
func answerWell(a stepRequest) (string, error) {
	switch a.step + " " + a.visit {
	case "plan 1":
		return jsonBlock(`{"parts": ["one", "two"]}`), nil
	case "facts 1":
		return jsonBlock(`{"facts": "water is wet"}`), nil
	case "draft 1", "draft 2":
		return jsonBlock(`{"draft": "draft ` + a.visit + `"}`), nil
	case "review 1":
		return jsonBlock(`{"verdict": "redo", "score": 1}`), nil
	case "review 2":
		return jsonBlock(`{"verdict": "good", "score": 7}`), nil
	}
	return "all right, " + a.step, nil
}

func jsonBlock(object string) string { return "Here it is.\n\n```json\n" + object + "\n```\n" }

// newRunEngine is an engine over a store, with the workflow report.
func newRunEngine(t *testing.T, store continuo.Store, m *scriptedModel, change func(*engine.Options)) *testEngine {
	t.Helper()
	options := engine.Options{
		Models: map[string]engine.Upstream{"scripted": {Model: m}}, Default: "scripted", Workflows: newWorkflowSource(t, report),
		Agents: map[string]engine.Agent{"planner": {ID: "planner", Persona: "You are a planner."}},
	}
	options.StepPause = time.Nanosecond
	options.Turns.Gone = func(string) bool { return true } // owners outside this engine have ended
	if change != nil {
		change(&options)
	}
	log := continuo.NewLog(store, continuo.LogOptions{})
	e, err := engine.New(log, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	return &testEngine{e, log}
}

// awaitRun follows a run until it is over, has failed, was stopped, or waits.
func awaitRun(t *testing.T, e *testEngine, run continuo.Run) *engine.RunStatus {
	t.Helper()
	var last *engine.RunStatus
	for progress, err := range e.Runs.Follow(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if progress.Status == nil {
			continue
		}
		if last = progress.Status; last.State == continuo.RunWaiting {
			now, err := e.Runs.Get(t.Context(), continuo.Scope{ProjectID: run.ProjectID}, run.ID) // it may have continued since
			if err != nil {
				t.Fatal(err)
			}
			if now.State == continuo.RunWaiting {
				return now
			}
		}
	}
	return last
}

func startRun(t *testing.T, e *testEngine, session string) continuo.Run {
	t.Helper()
	status, err := e.Runs.Start(t.Context(), engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: session, Workflow: "report", Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	return status.Run
}

// eventsOf lists a run's events in order, as "node visit kind".
func eventsOf(t *testing.T, e *testEngine, run continuo.Run) []string {
	t.Helper()
	conversation, err := e.Log.Conversation(t.Context(), run.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event := entry.RunEvent; event != nil && entry.RunID == run.ID {
			events = append(events, strings.TrimSpace(fmt.Sprintf("%s %d %s", entry.NodeID, event.Visit, event.Kind)))
		}
	}
	return events
}

// finishedNodes are the events of nodes that finished. The two branches of the report come in the order of the file, whichever
// was quicker.
func finishedNodes(events []string) []string {
	ended := slices.DeleteFunc(slices.Clone(events), func(event string) bool { return !strings.HasSuffix(event, "node_finished") })
	if len(ended) > 2 && ended[1] == reportSteps[2] && ended[2] == reportSteps[1] {
		ended[1], ended[2] = ended[2], ended[1]
	}
	return ended
}

var reportSteps = []string{
	"plan 1 node_finished", "facts 1 node_finished", "views 1 node_finished", "draft 1 node_finished", "review 1 node_finished",
	"draft 2 node_finished", "review 2 node_finished", "release 1 node_finished", "publish 1 node_finished",
}

func TestRunGoesAlongItsEdges(t *testing.T) {
	m := &scriptedModel{answer: answerWell}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	run := startRun(t, e, "s1")
	status := awaitRun(t, e, run)
	if status.State != continuo.RunWaiting {
		t.Fatalf("before the decision it is %s (%s)", status.State, status.Reason)
	}
	if _, err := e.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true, Comment: "Well done."}, true); err != nil {
		t.Fatal(err)
	}
	status = awaitRun(t, e, run)
	if status.State != continuo.RunFinished || string(status.Outputs) != `{"score":7}` {
		t.Errorf("it is %s (%s) with %s", status.State, status.Reason, status.Outputs)
	}
	if got := finishedNodes(eventsOf(t, e, run)); !slices.Equal(got, reportSteps) {
		t.Errorf("finished were\n%s", strings.Join(got, "\n"))
	}
	states := map[string]workflow.NodeState{}
	for _, node := range status.Nodes {
		states[node.ID] = node.State
	}
	if states["drop"] != workflow.NodeSkipped || states["publish"] != workflow.NodeFinished {
		t.Errorf("the nodes are %v", states)
	}
	if _, err := e.Runs.Resume(t.Context(), run, true); !errors.Is(err, engine.ErrRunOver) {
		t.Errorf("a run that is over is resumed: %v", err)
	}
}

// What a step's requests begin with, and that the history behind it is the conversation's.
func TestStepsGetTheirInstructions(t *testing.T) {
	m := &scriptedModel{answer: answerWell}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	run := startRun(t, e, "s1")
	awaitRun(t, e, run)
	for _, request := range m.requests() {
		persona := slices.Contains(request.system, "You are a planner.")
		if persona != (request.step == "plan") {
			t.Errorf("step %s: a persona: %t", request.step, persona)
		}
		if request.step+request.visit != "draft2" {
			continue
		}
		want := []string{
			"RUN_DIRECTIVE\n- workflow: report (Write a report)\n- run: " + run.ID + "\n- step: draft (draft)\n- visit: 2\n- note: carry out this step only; the history may hold other steps, other runs and other modes.",
			"NODE_BRIEF\nWrite the draft.\n\nOUTPUTS\nEnd your answer with one JSON object in a fenced block (```json), with these fields:\n- draft (string)",
			"STEP_CONTEXT\ninputs:\n- topic: \"tea\"\noutputs of earlier steps:\n- plan: {\"parts\":[\"one\",\"two\"]}\n- facts: {\"facts\":\"water is wet\"}\n- views: {\"text\":\"all right, views\"}\n- draft: {\"draft\":\"draft 1\"}\n- review: {\"score\":1,\"verdict\":\"redo\"}",
		}
		if got := request.system[len(request.system)-3:]; !slices.Equal(got, want) {
			t.Errorf("the system messages end with\n%s", strings.Join(got, "\n\n"))
		}
		if last := request.messages[len(request.messages)-1]; last != "user: The step draft (draft) of the workflow report begins again, for visit 2." {
			t.Errorf("the request ends with %s", last)
		}
		if first := request.messages[0]; first != "user: Run the workflow report (Write a report).\n- topic: \"tea\"" {
			t.Errorf("the history begins with %s", first)
		}
	}
}

func TestAnAnswerWithoutOutputsIsRequestedAgain(t *testing.T) {
	tries := 0
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if a.step != "facts" {
			return answerWell(a)
		}
		tries++
		switch tries {
		case 1:
			return "I have no JSON.", nil
		case 2:
			return jsonBlock(`{"facts": 5}`), nil
		}
		if last := a.messages[len(a.messages)-1]; !strings.Contains(last, "facts is the number 5 and must be a string") {
			t.Errorf("the step is told %s", last)
		}
		return answerWell(a)
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	if status := awaitRun(t, e, startRun(t, e, "")); status.State != continuo.RunWaiting {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
}

func TestAStepThatNeverAnswersBreaksTheRunOff(t *testing.T) {
	var corrected sync.Once
	bad := true
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if a.step == "facts" && bad {
			return "I have no JSON.", nil
		}
		return answerWell(a)
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	run := startRun(t, e, "")
	status := awaitRun(t, e, run)
	if status.State != continuo.RunFailed || !strings.Contains(status.Reason, "facts gave no whole answer in 3 attempts") {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	corrected.Do(func() { bad = false })
	if _, err := e.Runs.Resume(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, e, run); status.State != continuo.RunWaiting {
		t.Errorf("after it was resumed it is %s: %s", status.State, status.Reason)
	}
}

// A model that breaks off leaves its text, and the resumed run goes on from it: the outputs may stand in both.
func TestAResumedRunContinuesThePartialAnswer(t *testing.T) {
	broken := false
	m := &scriptedModel{}
	m.answer = func(a stepRequest) (string, error) {
		if a.step != "facts" {
			return answerWell(a)
		}
		if !broken {
			broken = true
			return "Here:\n```json\n{\"facts\": \"water", &model.Error{Reason: continuo.ReasonUpstream, Message: "gone"}
		}
		before := a.messages[len(a.messages)-2]
		if !strings.Contains(before, `{"facts": "water`) || !strings.Contains(before, "LLM_ERROR") {
			t.Errorf("the step is not shown what it said: %s", before)
		}
		if last := a.messages[len(a.messages)-1]; !strings.Contains(last, "broke off. Go on") {
			t.Errorf("the step is told %s", last)
		}
		return " is wet\"}\n```", nil
	}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	run := startRun(t, e, "")
	if status := awaitRun(t, e, run); status.State != continuo.RunFailed || !strings.Contains(status.Reason, "gone") {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	if _, err := e.Runs.Resume(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	status := awaitRun(t, e, run)
	if status.State != continuo.RunWaiting {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	for _, node := range status.Nodes {
		if node.ID == "facts" && string(node.Outputs) != `{"facts":"water is wet"}` {
			t.Errorf("the step gave %s", node.Outputs)
		}
	}
}

func TestARunThatIsCancelledIsOver(t *testing.T) {
	entered, open := make(chan struct{}, 1), make(chan struct{})
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if a.step == "views" {
			entered <- struct{}{}
			<-open
		}
		return answerWell(a)
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	run := startRun(t, e, "")
	<-entered
	cancelled := make(chan error, 1)
	go func() {
		_, err := e.Runs.Cancel(context.WithoutCancel(t.Context()), run)
		cancelled <- err
	}()
	close(open)
	if err := <-cancelled; err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, e, run); status.State != continuo.RunCancelled {
		t.Errorf("it is %s", status.State)
	}
	for chat := true; chat; { // its turn may end after it
		running, err := e.Turns.List(t.Context(), continuo.TurnQuery{ConversationID: run.ConversationID, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		chat = len(running) > 0 && running[0].State == continuo.TurnRunning
	}
	listed, err := e.Runs.List(t.Context(), continuo.RunQuery{ProjectID: "default", Limit: 5})
	if err != nil || len(listed) != 1 || listed[0].State != continuo.RunCancelled {
		t.Errorf("the list has %v, %v", listed, err)
	}
}

// Any number of engines may continue with one run: each step is done once.
func TestTwoEnginesContinueOneRun(t *testing.T) {
	store := storetest.NewMemory()
	m := &scriptedModel{answer: answerWell}
	alive := func(o *engine.Options) { o.Turns.Gone = nil }
	one, two := newRunEngine(t, store, m, alive), newRunEngine(t, store, m, alive)
	run := startRun(t, one, "")
	if _, err := two.Runs.Resume(t.Context(), run, true); err != nil && !errors.Is(err, engine.ErrRunWaits) { // the first was quick
		t.Fatal(err)
	}
	awaitRun(t, two, run)
	if _, err := one.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: false}, true); !errors.Is(err, continuo.ErrNotFound) && !errors.Is(err, engine.ErrRunOver) {
		t.Errorf("a second decision: %v", err)
	}
	if status := awaitRun(t, two, run); status.State != continuo.RunFinished {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	if got := finishedNodes(eventsOf(t, one, run)); !slices.Equal(got, reportSteps) {
		t.Errorf("finished were\n%s", strings.Join(got, "\n"))
	}
	if n := len(m.requests()); n != len(reportSteps)-1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// mortal is a store whose program dies after some writes: nothing more gets in or out.
type mortal struct {
	continuo.Store
	mu   sync.Mutex
	left int
	dead chan struct{}
}

var errDead = errors.New("the program has ended")

func (m *mortal) write() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		return errDead
	}
	if m.left--; m.left == 0 {
		close(m.dead)
	}
	return nil
}

// die ends the program, whatever it has written.
func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left != 0 {
		m.left = 0
		close(m.dead)
	}
}

func (m *mortal) Append(ctx context.Context, batch continuo.Batch) error {
	if err := m.write(); err != nil {
		return err
	}
	return m.Store.Append(ctx, batch)
}

func (m *mortal) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	if err := m.write(); err != nil {
		return nil, err
	}
	return m.Store.UpdateTurn(ctx, update)
}

// TakeTurn keeps a program that has ended from closing the turns of the one after it.
func (m *mortal) TakeTurn(ctx context.Context, seen continuo.Turn, owner string, lease time.Duration) (continuo.Turn, error) {
	if err := m.write(); err != nil {
		return continuo.Turn{}, err
	}
	return m.Store.TakeTurn(ctx, seen, owner, lease)
}

// counted is a tool that remembers its calls.
type counted struct {
	name   string
	safe   bool
	during func() // what happens during a call; nil for nothing
	mu     sync.Mutex
	ids    map[string]int
}

func (c *counted) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: c.name, Description: "Does " + c.name + "."}
}
func (c *counted) Repeatable() bool { return c.safe }

func (c *counted) Run(_ context.Context, call tool.Call) tool.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids = map[string]int{}
	}
	c.ids[call.Conversation.ID+" "+call.ID]++
	if c.during != nil {
		c.during()
	}
	return tool.Result{Content: "done"}
}

// idle reports whether a run waits for a person.
func idle(ctx context.Context, e *testEngine, run continuo.Run) <-chan struct{} {
	waits := make(chan struct{})
	go func() {
		for progress, err := range e.Runs.Follow(ctx, run, 0) {
			if err != nil {
				return
			}
			if progress.Status != nil && progress.Status.State == continuo.RunWaiting {
				close(waits)
				return
			}
		}
	}()
	return waits
}

// entriesOf reads a run's conversation and then its branches.
func entriesOf(t *testing.T, e *testEngine, run continuo.Run) []continuo.Entry {
	t.Helper()
	var entries []continuo.Entry
	conversations := []string{run.ConversationID}
	for i := 0; i < len(conversations); i++ {
		conversation, err := e.Log.Conversation(t.Context(), conversations[i])
		if err != nil {
			t.Fatal(err)
		}
		for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{From: conversation.ForkSeq + 1}) {
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, entry)
			if event := entry.RunEvent; event != nil && event.Branch != "" && !slices.Contains(conversations, event.Branch) {
				conversations = append(conversations, event.Branch)
			}
		}
	}
	return entries
}

// requestsAfterRefusal returns the calls that the program made, not a model.
func requestsAfterRefusal(t *testing.T, e *testEngine, run continuo.Run) []continuo.ToolCall {
	t.Helper()
	var calls []continuo.ToolCall
	for _, entry := range entriesOf(t, e, run) {
		if entry.Round == nil {
			calls = append(calls, entry.ToolCalls...)
		}
	}
	return calls
}

// A run that is started again after each of the writes that it makes goes on every time, and does each step once.
func TestARunContinuesAfterEveryWrite(t *testing.T) {
	var repeated, once counted
	tools := tool.Set{&repeated, &once}
	repeated.name, repeated.safe, once.name = "look", true, "buy"
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if last := a.messages[len(a.messages)-1]; a.step == "facts" && strings.HasPrefix(last, "user: ") {
			return "call look {}", nil
		} else if a.step == "views" && strings.HasPrefix(last, "user: ") {
			return "call buy {}", nil
		}
		return answerWell(a)
	}}
	for writes := 1; ; writes++ {
		store := storetest.NewMemory()
		dies := &mortal{Store: store, left: writes, dead: make(chan struct{})}
		policy := func(o *engine.Options) { o.Tools, o.Policy = tools, tool.Policy{Otherwise: tool.Allow} }
		first := newRunEngine(t, dies, m, policy)
		status, err := first.Runs.Start(t.Context(), engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: "s", Workflow: "report", Detached: true})
		if err != nil {
			continue // before it had begun
		}
		whole := false
		ctx, cancel := context.WithCancel(t.Context())
		select {
		case <-dies.dead:
		case <-idle(ctx, first, status.Run):
			whole = true
		}
		cancel()
		second := newRunEngine(t, store, m, policy)
		if _, err := second.Turns.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Runs.Resume(t.Context(), status.Run, true); err != nil && !errors.Is(err, engine.ErrRunWaits) {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		if status := awaitRun(t, second, status.Run); status.State != continuo.RunWaiting {
			t.Fatalf("after %d writes it is %s: %s\n%s", writes, status.State, status.Reason, strings.Join(eventsOf(t, second, status.Run), "\n"))
		}
		if got := finishedNodes(eventsOf(t, second, status.Run)); !slices.Equal(got, reportSteps[:7]) {
			t.Fatalf("after %d writes finished were\n%s", writes, strings.Join(got, "\n"))
		}
		for _, call := range requestsAfterRefusal(t, second, status.Run) {
			if call.Name != "look" {
				t.Errorf("the program asked again for %s", call.Name)
			}
		}
		if whole {
			t.Logf("the run makes %d writes", writes)
			break
		}
	}
	for _, tool := range []*counted{&repeated, &once} {
		for id, times := range tool.ids {
			if times > 1 {
				t.Errorf("the call %s of %s was made %d times", id, tool.name, times)
			}
		}
	}
}

// A program that dies during a call makes it again when the run is taken up, where the call is safe to repeat.
func TestACallThatBrokeOffIsMadeAgainWhereThatIsSafe(t *testing.T) {
	for _, dying := range []string{"look", "buy"} {
		t.Run(dying, func(t *testing.T) {
			look, buy := &counted{name: "look", safe: true}, &counted{name: "buy"}
			store := storetest.NewMemory()
			dies := &mortal{Store: store, left: -1, dead: make(chan struct{})}
			for _, tool := range []*counted{look, buy} {
				if tool.name == dying {
					tool.during = dies.die
				}
			}
			m := &scriptedModel{answer: func(a stepRequest) (string, error) {
				if last := a.messages[len(a.messages)-1]; a.step == "facts" && strings.HasPrefix(last, "user: ") {
					return "call " + dying + " {}", nil
				}
				return answerWell(a)
			}}
			policy := func(o *engine.Options) {
				o.Tools, o.Policy = tool.Set{look, buy}, tool.Policy{Otherwise: tool.Allow}
			}
			status, err := newRunEngine(t, dies, m, policy).Runs.Start(t.Context(), engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: "s", Workflow: "report", Detached: true})
			if err != nil {
				t.Fatal(err)
			}
			<-dies.dead
			second := newRunEngine(t, store, m, policy)
			if _, err := second.Turns.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := second.Runs.Resume(t.Context(), status.Run, true); err != nil {
				t.Fatal(err)
			}
			if status := awaitRun(t, second, status.Run); status.State != continuo.RunWaiting {
				t.Fatalf("it is %s: %s", status.State, status.Reason)
			}
			calls, want := requestsAfterRefusal(t, second, status.Run), 0
			if dying == "look" {
				want = 1
			}
			if len(calls) != want || want == 1 && calls[0].Name != "look" {
				t.Errorf("the program made %v again", calls)
			}
		})
	}
}
