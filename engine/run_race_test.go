package engine_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
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
)

// sideBySide is a workflow with a step beside a person's decision, which another step waits for.
const sideBySide = `
id: side
nodes:
  ask: {approval: Go on?}
  work: {brief: Work.}
  after: {brief: After.}
edges: [ask -> after]
`

// heldStore blocks the first Append that a function picks.
type heldStore struct {
	continuo.Store
	picks         func(continuo.Batch) bool
	once          sync.Once
	reached, open chan struct{}
}

func (h *heldStore) Append(ctx context.Context, batch continuo.Batch) error {
	if h.picks(batch) {
		h.once.Do(func() {
			close(h.reached)
			<-h.open
		})
	}
	return h.Store.Append(ctx, batch)
}

// finishesNode picks the batch with which a node finishes.
func finishesNode(node string) func(continuo.Batch) bool {
	return func(b continuo.Batch) bool {
		return slices.ContainsFunc(b.Entries, func(e continuo.Entry) bool {
			return e.RunEvent != nil && e.RunEvent.Kind == continuo.RunNodeFinished && e.NodeID == node
		})
	}
}

func newHeldStore(store continuo.Store, picks func(continuo.Batch) bool) *heldStore {
	return &heldStore{Store: store, picks: picks, reached: make(chan struct{}), open: make(chan struct{})}
}

func withWorkflow(t *testing.T, text string) func(*engine.Options) {
	return func(o *engine.Options) { o.Workflows, o.Turns.Gone = newWorkflowSource(t, text), nil }
}

func startOf(t *testing.T, e *testEngine, id string) continuo.Run {
	t.Helper()
	status, err := e.Runs.Start(t.Context(), engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, Workflow: id, Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	return status.Run
}

// A person decides between the moment in which a step's end is worked out and its commit.
func TestADecisionWithinAStepsEnd(t *testing.T) {
	store := storetest.NewMemory()
	held := newHeldStore(store, finishesNode("work"))
	m := &scriptedModel{answer: answerWell}
	one, two := newRunEngine(t, held, m, withWorkflow(t, sideBySide)), newRunEngine(t, store, m, withWorkflow(t, sideBySide))
	run := startOf(t, one, "side")
	<-held.reached
	if _, err := two.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); err != nil {
		t.Fatal(err)
	}
	close(held.open)
	if status := awaitRun(t, one, run); status.State != continuo.RunFinished {
		t.Errorf("it is %s\n%s", status.State, strings.Join(eventsOf(t, one, run), "\n"))
	}
}

// A step ends between the moment in which a person's decision is worked out and its commit.
func TestAStepsEndWithinADecision(t *testing.T) {
	store := storetest.NewMemory()
	held := newHeldStore(store, finishesNode("ask"))
	entered, open := make(chan struct{}, 10), make(chan struct{})
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		if a.step == "work" {
			entered <- struct{}{}
			<-open
		}
		return "fine", nil
	}}
	one, two := newRunEngine(t, store, m, withWorkflow(t, sideBySide)), newRunEngine(t, held, m, withWorkflow(t, sideBySide))
	run := startOf(t, one, "side")
	<-entered
	decided := make(chan error, 1)
	go func() {
		_, err := two.Runs.Decide(context.WithoutCancel(t.Context()), run, engine.RunDecision{Approved: true}, true)
		decided <- err
	}()
	<-held.reached
	close(open)
	for progress, err := range one.Runs.Follow(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if progress.Status != nil && progress.Status.State == continuo.RunWaiting {
			break
		}
	}
	close(held.open)
	if err := <-decided; err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, one, run); status.State != continuo.RunFinished {
		t.Errorf("it is %s\n%s", status.State, strings.Join(eventsOf(t, one, run), "\n"))
	}
}

// A run that is stopped between the moment in which its last step's end is worked out and its commit does not finish.
func TestAStopWithinTheLastStepsEnd(t *testing.T) {
	const single = "id: single\nnodes:\n  work: {brief: Work.}\n"
	store := storetest.NewMemory()
	held := newHeldStore(store, finishesNode("work"))
	m := &scriptedModel{answer: answerWell}
	one, two := newRunEngine(t, held, m, withWorkflow(t, single)), newRunEngine(t, store, m, withWorkflow(t, single))
	run := startOf(t, one, "single")
	<-held.reached
	if status, err := two.Runs.Stop(t.Context(), run, "enough"); err != nil || status.State != continuo.RunStopped {
		t.Fatal(status, err)
	}
	close(held.open)
	awaitRun(t, one, run)
	if _, err := one.Runs.Resume(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, one, run); status.State != continuo.RunFinished || len(finishedNodes(eventsOf(t, one, run))) != 1 {
		t.Errorf("it is %s\n%s", status.State, strings.Join(eventsOf(t, one, run), "\n"))
	}
}

// Calls of somebody else's turn that wait for a person hold what a run records, but not for ever.
func TestARunsChangesHaveATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		m := &scriptedModel{answer: func(a stepRequest) (string, error) {
			if a.step == "" && strings.HasPrefix(a.messages[len(a.messages)-1], "user: ") {
				return "call buy {}", nil
			}
			return "fine", nil
		}}
		e := newRunEngine(t, store, m, func(o *engine.Options) {
			withWorkflow(t, sideBySide)(o)
			o.Tools, o.Policy, o.Wait = tool.Set{&counted{name: "buy"}}, tool.Policy{}, time.Minute
		})
		run := startOf(t, e, "side")
		awaitRun(t, e, run)
		chat, err := e.Turns.Chat(t.Context(), request(run.ConversationID, "Buy it."))
		if err != nil {
			t.Fatal(err)
		}
		for event := range chat.Events {
			if event.Kind == "asked" {
				break
			}
		}
		if _, err := e.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); !errors.Is(err, continuo.ErrBusy) {
			t.Errorf("a decision: %v", err)
		}
		if _, err := e.Runs.Cancel(t.Context(), run); !errors.Is(err, continuo.ErrBusy) {
			t.Errorf("the end: %v", err)
		}
	})
}

// panickingModel is a model with a fault of its own.
type panickingModel struct{ scriptedModel }

func (p *panickingModel) Stream(context.Context, []byte) iter.Seq2[model.Delta, error] {
	panic("out of order")
}

// A step whose turn breaks down each time is not begun for ever.
func TestAStepThatBreaksDownBreaksTheRunOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, func(o *engine.Options) {
			withWorkflow(t, "retry: {max: 50}"+sideBySide)(o)
			o.Models = map[string]engine.Upstream{"scripted": {Model: &panickingModel{}}}
		})
		run := startOf(t, e, "side")
		if status := awaitRun(t, e, run); status.State != continuo.RunFailed || !strings.Contains(status.Reason, "failed 51 times") {
			t.Errorf("it is %s: %s", status.State, status.Reason)
		}
	})
}

// A run whose prompts cannot be read fails and says why: only what another program may have is left to it.
func TestARunWithoutItsPromptsFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "system-base-rules-run.md"), []byte("\xff\xfe"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, func(o *engine.Options) {
		withWorkflow(t, sideBySide)(o)
		o.Prompts.Dir = dir
	})
	run := startOf(t, e, "side")
	if status := awaitRun(t, e, run); status.State != continuo.RunFailed || !strings.Contains(status.Reason, "not UTF-8") {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
}

// storeWithoutTexts is a store that has lost the texts of workflows.
type storeWithoutTexts struct{ continuo.Store }

func (storeWithoutTexts) Blob(context.Context, string) ([]byte, error) {
	return nil, continuo.ErrNotFound
}

// A run whose workflow is lost can be looked at and ended.
func TestARunThatCannotBeReadCanBeEnded(t *testing.T) {
	store := storetest.NewMemory()
	e := newRunEngine(t, store, &scriptedModel{answer: answerWell}, withWorkflow(t, sideBySide))
	run := startOf(t, e, "side")
	awaitRun(t, e, run)
	lost := newRunEngine(t, storeWithoutTexts{store}, &scriptedModel{answer: answerWell}, withWorkflow(t, sideBySide))
	if status, err := lost.Runs.Get(t.Context(), continuo.Scope{ProjectID: "default"}, run.ID); err != nil || !strings.Contains(status.Reason, "cannot be read") {
		t.Errorf("it is %+v, %v", status, err)
	}
	if status, err := lost.Runs.Cancel(t.Context(), run); err != nil || status.State != continuo.RunCancelled {
		t.Errorf("ended: %+v, %v", status, err)
	}
}

// What a redaction removes of a step's answer is gone from its outputs too.
func TestARedactedAnswerIsGoneFromTheOutputs(t *testing.T) {
	store := storetest.NewMemory()
	m := &scriptedModel{answer: func(stepRequest) (string, error) { return "the secret word", nil }}
	e := newRunEngine(t, store, m, withWorkflow(t, sideBySide))
	run := startOf(t, e, "side")
	awaitRun(t, e, run)
	conversation, err := e.Log.Conversation(t.Context(), run.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Role == continuo.Assistant {
			if _, err := e.Log.Redact(t.Context(), conversation, entry.Seq, entry.Seq, "private"); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.answer = func(a stepRequest) (string, error) {
		if strings.Contains(strings.Join(a.system, "\n")+strings.Join(a.messages, "\n"), "secret") {
			t.Errorf("a later step is shown it: %q", a)
		}
		return "fine", nil
	}
	if _, err := e.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, e, run); status.State != continuo.RunFinished {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
}

// A program that lacks what a run needs leaves it as it is, for those that have it.
func TestARunIsLeftToProcessesWithItsAgents(t *testing.T) {
	store := storetest.NewMemory()
	const needs = "id: needs\nnodes:\n  ask: {approval: Really?}\n  work: {brief: x, agent: planner}\nedges: [ask -> work]\n"
	m := &scriptedModel{answer: answerWell}
	has := newRunEngine(t, store, m, withWorkflow(t, needs))
	withoutAgents := newRunEngine(t, store, m, func(o *engine.Options) { withWorkflow(t, needs)(o); o.Agents = nil })
	run := startOf(t, has, "needs")
	awaitRun(t, has, run)
	if _, err := withoutAgents.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := withoutAgents.Runs.Resume(t.Context(), run, true); !errors.Is(err, engine.ErrUnknownAgent) {
		t.Errorf("resumed where the agent is not: %v", err)
	}
	if resumed, err := withoutAgents.Runs.ResumeAbandoned(t.Context(), 0); resumed != 0 || err != nil {
		t.Errorf("%d resumed, %v", resumed, err)
	}
	if _, err := has.Runs.Resume(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, has, run); status.State != continuo.RunFinished {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
}
