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

// holder holds the first Append that a function picks.
type holder struct {
	continuo.Store
	picks         func(continuo.Batch) bool
	once          sync.Once
	reached, open chan struct{}
}

func (h *holder) Append(ctx context.Context, batch continuo.Batch) error {
	if h.picks(batch) {
		h.once.Do(func() {
			close(h.reached)
			<-h.open
		})
	}
	return h.Store.Append(ctx, batch)
}

// finishes picks the batch with which a node finishes.
func finishes(node string) func(continuo.Batch) bool {
	return func(b continuo.Batch) bool {
		return slices.ContainsFunc(b.Entries, func(e continuo.Entry) bool {
			return e.RunEvent != nil && e.RunEvent.Kind == continuo.RunNodeFinished && e.NodeID == node
		})
	}
}

func newHolder(store continuo.Store, picks func(continuo.Batch) bool) *holder {
	return &holder{Store: store, picks: picks, reached: make(chan struct{}), open: make(chan struct{})}
}

func with(t *testing.T, text string) func(*engine.Options) {
	return func(o *engine.Options) { o.Workflows, o.Turns.Gone = newShelf(t, text), nil }
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
	held := newHolder(store, finishes("work"))
	m := &actor{answer: good}
	one, two := stage(t, held, m, with(t, sideBySide)), stage(t, store, m, with(t, sideBySide))
	run := startOf(t, one, "side")
	<-held.reached
	if _, err := two.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); err != nil {
		t.Fatal(err)
	}
	close(held.open)
	if status := until(t, one, run); status.State != continuo.RunFinished {
		t.Errorf("it is %s\n%s", status.State, strings.Join(told(t, one, run), "\n"))
	}
}

// A step ends between the moment in which a person's decision is worked out and its commit.
func TestAStepsEndWithinADecision(t *testing.T) {
	store := storetest.NewMemory()
	held := newHolder(store, finishes("ask"))
	entered, open := make(chan struct{}, 10), make(chan struct{})
	m := &actor{answer: func(a asked) (string, error) {
		if a.step == "work" {
			entered <- struct{}{}
			<-open
		}
		return "fine", nil
	}}
	one, two := stage(t, store, m, with(t, sideBySide)), stage(t, held, m, with(t, sideBySide))
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
	if status := until(t, one, run); status.State != continuo.RunFinished {
		t.Errorf("it is %s\n%s", status.State, strings.Join(told(t, one, run), "\n"))
	}
}

// A run that is stopped between the moment in which its last step's end is worked out and its commit does not finish.
func TestAStopWithinTheLastStepsEnd(t *testing.T) {
	const single = "id: single\nnodes:\n  work: {brief: Work.}\n"
	store := storetest.NewMemory()
	held := newHolder(store, finishes("work"))
	m := &actor{answer: good}
	one, two := stage(t, held, m, with(t, single)), stage(t, store, m, with(t, single))
	run := startOf(t, one, "single")
	<-held.reached
	if status, err := two.Runs.Stop(t.Context(), run, "enough"); err != nil || status.State != continuo.RunStopped {
		t.Fatal(status, err)
	}
	close(held.open)
	until(t, one, run)
	if _, err := one.Runs.Resume(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	if status := until(t, one, run); status.State != continuo.RunFinished || len(finished(told(t, one, run))) != 1 {
		t.Errorf("it is %s\n%s", status.State, strings.Join(told(t, one, run), "\n"))
	}
}

// Calls of somebody else's turn that wait for a person hold what a run records, but not for ever.
func TestARunsChangesDoNotWaitForEver(t *testing.T) {
	store := storetest.NewMemory()
	m := &actor{answer: func(a asked) (string, error) {
		if a.step == "" && strings.HasPrefix(a.messages[len(a.messages)-1], "user: ") {
			return "call buy {}", nil
		}
		return "fine", nil
	}}
	e := stage(t, store, m, func(o *engine.Options) {
		with(t, sideBySide)(o)
		o.Tools, o.Policy, o.Wait = tool.Set{&counted{name: "buy"}}, tool.Policy{}, otherWait
	})
	run := startOf(t, e, "side")
	until(t, e, run)
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
}

// otherWait is how long an engine of these tests waits.
const otherWait = 100_000_000 // ns

// panics is a model with a fault of its own.
type panics struct{ actor }

func (p *panics) Stream(context.Context, []byte) iter.Seq2[model.Delta, error] { panic("out of order") }

// A step whose turn breaks down each time is not begun for ever.
func TestAStepThatBreaksDownBreaksTheRunOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := stage(t, storetest.NewMemory(), &actor{answer: good}, func(o *engine.Options) {
			with(t, "retry: {max: 50}"+sideBySide)(o)
			o.Models = map[string]engine.Upstream{"actor": {Model: &panics{}}}
		})
		run := startOf(t, e, "side")
		if status := until(t, e, run); status.State != continuo.RunFailed || !strings.Contains(status.Reason, "failed 51 times") {
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
	e := stage(t, storetest.NewMemory(), &actor{answer: good}, func(o *engine.Options) {
		with(t, sideBySide)(o)
		o.Prompts.Dir = dir
	})
	run := startOf(t, e, "side")
	if status := until(t, e, run); status.State != continuo.RunFailed || !strings.Contains(status.Reason, "not UTF-8") {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
}

// textless is a store that has lost the texts of workflows.
type textless struct{ continuo.Store }

func (textless) Blob(context.Context, string) ([]byte, error) { return nil, continuo.ErrNotFound }

// A run whose workflow is lost can be looked at and ended.
func TestARunThatCannotBeReadCanBeEnded(t *testing.T) {
	store := storetest.NewMemory()
	e := stage(t, store, &actor{answer: good}, with(t, sideBySide))
	run := startOf(t, e, "side")
	until(t, e, run)
	lost := stage(t, textless{store}, &actor{answer: good}, with(t, sideBySide))
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
	m := &actor{answer: func(asked) (string, error) { return "the secret word", nil }}
	e := stage(t, store, m, with(t, sideBySide))
	run := startOf(t, e, "side")
	until(t, e, run)
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
	m.answer = func(a asked) (string, error) {
		if strings.Contains(strings.Join(a.system, "\n")+strings.Join(a.messages, "\n"), "secret") {
			t.Errorf("a later step is shown it: %q", a)
		}
		return "fine", nil
	}
	if _, err := e.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); err != nil {
		t.Fatal(err)
	}
	if status := until(t, e, run); status.State != continuo.RunFinished {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
}

// A program that lacks what a run needs leaves it as it is, for those that have it.
func TestARunIsLeftToThoseWhoHaveItsAgents(t *testing.T) {
	store := storetest.NewMemory()
	const needs = "id: needs\nnodes:\n  ask: {approval: Really?}\n  work: {brief: x, agent: planner}\nedges: [ask -> work]\n"
	m := &actor{answer: good}
	has := stage(t, store, m, with(t, needs))
	lacks := stage(t, store, m, func(o *engine.Options) { with(t, needs)(o); o.Agents = nil })
	run := startOf(t, has, "needs")
	until(t, has, run)
	if _, err := lacks.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := lacks.Runs.Resume(t.Context(), run, true); !errors.Is(err, engine.ErrUnknownAgent) {
		t.Errorf("resumed where the agent is not: %v", err)
	}
	if resumed, err := lacks.Runs.ResumeAbandoned(t.Context(), 0); resumed != 0 || err != nil {
		t.Errorf("%d resumed, %v", resumed, err)
	}
	if _, err := has.Runs.Resume(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	if status := until(t, has, run); status.State != continuo.RunFinished {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
}
