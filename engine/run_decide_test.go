package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/workflow"
)

const askingStep = `
id: asking
nodes:
  work: {brief: Work.}
`

const askingBranches = `
id: asking
nodes:
  begin: {brief: Begin.}
  left: {brief: Left.}
  right: {brief: Right.}
  join: {brief: Join.}
edges:
  - begin -> left
  - begin -> right
  - left -> join
  - right -> join
`

// writing lets some steps call the tool write once.
func writing(steps ...string) func(stepRequest) (string, error) {
	return func(a stepRequest) (string, error) {
		last := a.messages[len(a.messages)-1]
		for _, step := range steps {
			if a.step == step && strings.HasPrefix(last, "user: ") {
				return `call write {"step":"` + step + `"}`, nil
			}
		}
		return "fine", nil
	}
}

func asksBefore(t *testing.T, text string, write tool.Tool) func(*engine.Options) {
	return func(o *engine.Options) {
		withWorkflow(t, text)(o)
		o.Tools, o.Policy = tool.Set{write}, tool.Policy{Otherwise: tool.Ask}
	}
}

// waitsForCalls checks that a run waits, and returns what it waits for.
func waitsForCalls(t *testing.T, e *testEngine, run continuo.Run, want int) (calls []workflow.WaitingCall) {
	t.Helper()
	status, err := e.Runs.Get(t.Context(), continuo.Scope{ProjectID: "default"}, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range status.Nodes {
		calls = append(calls, node.WaitingFor...)
	}
	if status.State != continuo.RunWaiting || len(calls) != want {
		t.Fatalf("the run is %s: %+v", status.State, status.Nodes)
	}
	for state, listed := range map[continuo.RunState]int{continuo.RunWaiting: 1, continuo.RunRunning: 0, "": 1} {
		found, err := e.Runs.List(t.Context(), continuo.RunQuery{ProjectID: "default", State: state, Limit: 10})
		if err != nil || len(found) != listed {
			t.Errorf("%d runs are listed as %q: %v", len(found), state, err)
		}
	}
	return calls
}

func TestARunWaitsForAYesToACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, write := storetest.NewMemory(), &counted{name: "write"}
		m := &scriptedModel{answer: writing("work")}
		one, two := newRunEngine(t, store, m, asksBefore(t, askingStep, write)), newRunEngine(t, store, m, asksBefore(t, askingStep, write))
		run := startOf(t, one, "asking")
		time.Sleep(24 * time.Hour) // longer than any limit
		calls := waitsForCalls(t, two, run, 1)
		if calls[0].Name != "write" || calls[0].Arguments != `{"step":"work"}` {
			t.Errorf("it waits for %+v", calls)
		}
		if _, err := two.Runs.Decide(t.Context(), run, engine.RunDecision{Call: "other", Approved: true}, true); !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("a call that is not there: %v", err)
		}
		if _, err := two.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); err != nil {
			t.Fatal(err)
		}
		if status := awaitRun(t, one, run); status.State != continuo.RunFinished || len(write.ids) != 1 {
			t.Errorf("the run is %s: %s; the tool ran for %v", status.State, status.Reason, write.ids)
		}
	})
}

// contestingStore is a store in which another person makes the opposite decision on each call first.
type contestingStore struct{ continuo.Store }

func (c contestingStore) SignalTurn(ctx context.Context, conversationID, turnID string, signal continuo.TurnSignal) error {
	other := signal
	other.Kind, other.Reason = continuo.SignalDeny, "not today"
	if signal.Kind == continuo.SignalDeny {
		other.Kind, other.Reason = continuo.SignalAllow, ""
	}
	if err := c.Store.SignalTurn(ctx, conversationID, turnID, other); err != nil {
		return err
	}
	return c.Store.SignalTurn(ctx, conversationID, turnID, signal)
}

// TestTheSecondDecisionIsRefused decides on a call that somebody else decides on otherwise at the same time.
func TestTheSecondDecisionIsRefused(t *testing.T) {
	for _, approved := range []bool{true, false} {
		t.Run(fmt.Sprintf("approved=%t", approved), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, write := storetest.NewMemory(), &counted{name: "write"}
				m := &scriptedModel{answer: writing("work")}
				one, two := newRunEngine(t, store, m, asksBefore(t, askingStep, write)), newRunEngine(t, contestingStore{store}, m, asksBefore(t, askingStep, write))
				run := startOf(t, one, "asking")
				time.Sleep(time.Hour)
				waitsForCalls(t, two, run, 1)
				_, err := two.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: approved, Comment: "mine"}, true)
				want := map[bool]string{true: "denied: not today", false: "allowed"}[approved]
				if !errors.Is(err, engine.ErrDecided) || !strings.Contains(err.Error(), want) {
					t.Errorf("the second is told %v", err)
				}
				if status := awaitRun(t, one, run); status.State != continuo.RunFinished || (len(write.ids) == 1) == approved {
					t.Errorf("the run is %s: %s; the tool ran for %v", status.State, status.Reason, write.ids)
				}
			})
		})
	}
}

func TestOfSeveralCallsOneIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, write := storetest.NewMemory(), &counted{name: "write"}
		e := newRunEngine(t, store, &scriptedModel{answer: writing("left", "right")}, asksBefore(t, askingBranches, write))
		run := startOf(t, e, "asking")
		time.Sleep(time.Hour)
		waitsForCalls(t, e, run, 2)
		_, err := e.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true)
		if !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), `left: write({"step":"left"})`) || !strings.Contains(err.Error(), `right: write(`) {
			t.Errorf("without a name: %v", err)
		}
		for _, node := range []string{"left", "right"} {
			if _, err := e.Runs.Decide(t.Context(), run, engine.RunDecision{Node: node, Approved: node == "left"}, true); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if status := awaitRun(t, e, run); status.State != continuo.RunFinished || len(write.ids) != 1 {
			t.Errorf("the run is %s: %s; the tool ran for %v", status.State, status.Reason, write.ids)
		}
	})
}

// TestAQuestionIsAskedAgainAfterItsProgramEnded decides on calls of a run of which no process is left.
func TestAQuestionIsAskedAgainAfterItsProgramEnded(t *testing.T) {
	for name, text := range map[string]string{"one step": askingStep, "in a branch": askingBranches} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, write := storetest.NewMemory(), &counted{name: "write"}
				m := &scriptedModel{answer: writing("work", "left")}
				one := newRunEngine(t, store, m, asksBefore(t, text, write))
				run := startOf(t, one, "asking")
				time.Sleep(time.Hour)
				waitsForCalls(t, one, run, 1)
				closing, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_ = one.Close(closing) // the call waits until the time is over
				two := newRunEngine(t, store, m, asksBefore(t, text, write))
				waitsForCalls(t, two, run, 1)
				if _, err := two.Runs.Decide(t.Context(), run, engine.RunDecision{Approved: true}, true); err != nil {
					t.Fatal(err)
				}
				if status := awaitRun(t, two, run); status.State != continuo.RunFinished || len(write.ids) != 1 {
					t.Errorf("the run is %s: %s; the tool ran for %v", status.State, status.Reason, write.ids)
				}
			})
		})
	}
}
