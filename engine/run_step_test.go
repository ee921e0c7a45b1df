package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
)

// within follows a run until it rests, for a minute of the bubble's time at most, and tells how it stands then.
func within(t *testing.T, e *testEngine, run continuo.Run) *engine.RunStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for progress, err := range e.Runs.Follow(ctx, run, 0) {
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if progress.Status != nil && progress.Status.State == continuo.RunWaiting {
			break
		}
	}
	status, err := e.Runs.Get(t.Context(), continuo.Scope{ProjectID: run.ProjectID}, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// What a visit said before it broke off belongs to that visit's answer, not to the next one's.
func TestAVisitDoesNotInheritWhatBrokeOffBefore(t *testing.T) {
	const twice = "id: twice\nnodes:\n  begin: {brief: Begin.}\n  work: {brief: Work.}\nedges:\n  - begin -> work\n  - {from: work, to: work, when: visit < 2, max: 2}\n"
	var broke atomic.Bool
	m := &scriptedModel{answer: func(a stepRequest) (string, error) {
		switch {
		case a.step == "work" && broke.CompareAndSwap(false, true):
			return "The first ", &model.Error{Reason: continuo.ReasonUpstream, Message: "gone"}
		case a.step == "work" && a.visit == "1":
			return "is whole.", nil
		}
		return fmt.Sprintf("It is %s %s.", a.step, a.visit), nil
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, withWorkflow(t, twice))
	run := startOf(t, e, "twice")
	if status := awaitRun(t, e, run); status.State != continuo.RunFailed {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	if _, err := e.Runs.Resume(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	status := awaitRun(t, e, run)
	if status.State != continuo.RunFinished {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	var outputs []string
	for progress, err := range e.Runs.Follow(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if p := progress.Entry; p != nil && p.NodeID == "work" && p.RunEvent != nil && p.RunEvent.Kind == continuo.RunNodeFinished {
			outputs = append(outputs, string(p.RunEvent.Outputs))
		}
	}
	if want := []string{`{"text":"The first is whole."}`, `{"text":"It is work 2."}`}; !slices.Equal(outputs, want) {
		t.Errorf("the visits gave %s", outputs)
	}
}

// A person who stops a step's turn stops the run; it can be resumed.
func TestAStepThatIsStoppedStopsTheRun(t *testing.T) {
	hold := newHoldTool()
	m := &scriptedModel{answer: holding}
	e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) {
		withWorkflow(t, rounds)(o)
		o.Tools, o.Policy = tool.Set{hold}, tool.Policy{Otherwise: tool.Allow}
	})
	run := startOf(t, e, "rounds")
	<-hold.entered
	running, err := e.Turns.List(t.Context(), continuo.TurnQuery{ConversationID: run.ConversationID, Limit: 1})
	if err != nil || len(running) != 1 {
		t.Fatal(running, err)
	}
	if err := e.Turns.Cancel(t.Context(), running[0]); err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, e, run); status.State != continuo.RunStopped || status.Reason != "the step work was stopped" {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	if _, err := e.Runs.Resume(t.Context(), run, true); err != nil {
		t.Fatal(err)
	}
	if status := awaitRun(t, e, run); status.State != continuo.RunFinished {
		t.Errorf("resumed it is %s: %s", status.State, status.Reason)
	}
}

// A run that is not detached stays as it is when its starter leaves, and another process may take it over at once,
// although its step has not ended yet.
func TestARunThatIsNotDetachedStopsWithItsReader(t *testing.T) {
	for _, soon := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			entered, open := make(chan struct{}, 10), make(chan struct{})
			m := &scriptedModel{answer: func(a stepRequest) (string, error) {
				if a.step == "facts" {
					entered <- struct{}{}
					<-open
				}
				return answerWell(a)
			}}
			e := newRunEngine(t, storetest.NewMemory(), m, func(o *engine.Options) { o.Turns.Gone = nil })
			ctx, leave := context.WithCancel(t.Context())
			status, err := e.Runs.Start(ctx, engine.RunRequest{Scope: continuo.Scope{ProjectID: "default"}, Workflow: "report"})
			if err != nil {
				t.Fatal(err)
			}
			run := status.Run
			<-entered
			leave()
			synctest.Wait()
			if !soon {
				close(open)
				if status := within(t, e, run); status.State != continuo.RunRunning || len(finishedNodes(eventsOf(t, e, run))) > 2 {
					t.Errorf("nobody continues with it, and it is %s: %s\n%s", status.State, status.Reason, strings.Join(eventsOf(t, e, run), "\n"))
				}
			}
			if _, err := e.Runs.Resume(t.Context(), run, true); err != nil {
				t.Fatal(err)
			}
			if soon {
				close(open)
			}
			if status := within(t, e, run); status.State != continuo.RunWaiting || !slices.Equal(finishedNodes(eventsOf(t, e, run)), reportSteps[:7]) {
				t.Errorf("taken up (soon: %t) it is %s: %s", soon, status.State, status.Reason)
			}
		})
	}
}

// unavailableStore is a store that refuses to begin turns while isAway is set.
type unavailableStore struct {
	continuo.Store
	isAway  atomic.Bool
	refused atomic.Int64
}

func (s *unavailableStore) Append(ctx context.Context, batch continuo.Batch) error {
	if batch.Begin != nil && s.isAway.Load() {
		s.refused.Add(1)
		return fmt.Errorf("begin a turn: %w", continuo.ErrUnavailable)
	}
	return s.Store.Append(ctx, batch)
}

// A run waits for what passes: a store that cannot be reached, and turns of its project beyond their number.
func TestARunWaitsForWhatPasses(t *testing.T) {
	for _, obstacle := range []string{"the store", "the turns"} {
		t.Run(obstacle, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &unavailableStore{Store: storetest.NewMemory()}
				hold := newHoldTool()
				m := &scriptedModel{answer: func(a stepRequest) (string, error) {
					if last := a.messages[len(a.messages)-1]; last == "user: Hold on." {
						return "call hold {}", nil
					}
					return answerWell(a)
				}}
				e := newRunEngine(t, store, m, func(o *engine.Options) {
					withWorkflow(t, sideBySide)(o)
					o.Tools, o.Policy, o.MaxTurns = tool.Set{hold}, tool.Policy{Otherwise: tool.Allow}, 1
				})
				if obstacle == "the turns" {
					if _, err := e.Turns.Chat(t.Context(), request("", "Hold on.")); err != nil {
						t.Fatal(err)
					}
					<-hold.entered
				}
				store.isAway.Store(obstacle == "the store")
				run := startOf(t, e, "side")
				if status := waitsFor(t, e, run); status.State != continuo.RunRunning || store.isAway.Load() && store.refused.Load() < 2 {
					t.Errorf("meanwhile it is %s: %s; it tried %d times", status.State, status.Reason, store.refused.Load())
				}
				store.isAway.Store(false)
				close(hold.letGo)
				if status := within(t, e, run); status.State != continuo.RunWaiting || len(finishedNodes(eventsOf(t, e, run))) != 1 {
					t.Errorf("then it is %s: %s", status.State, status.Reason)
				}
			})
		})
	}
}

// waitsFor lets some seconds of the bubble's time pass and tells how a run stands.
func waitsFor(t *testing.T, e *testEngine, run continuo.Run) *engine.RunStatus {
	t.Helper()
	time.Sleep(5 * time.Second)
	status, err := e.Runs.Get(t.Context(), continuo.Scope{ProjectID: run.ProjectID}, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	return status
}
