package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/workflow"
)

// chain is a workflow of six steps in a row.
const chain = `
id: chain
nodes:
  one: {brief: x}
  two: {brief: x, outputs: {n: integer}}
  three: {brief: x}
  four: {brief: x}
  five: {brief: x}
  six: {brief: x}
edges: [one -> two, two -> three, three -> four, four -> five, five -> six]
`

func chained(t *testing.T) func(*engine.Options) {
	return func(o *engine.Options) { o.Workflows, o.Turns.Gone = newWorkflowSource(t, chain), nil }
}

// network is a model whose streams break off by a function of how many requests came before.
func network(fails func(n int) *model.Error) *scriptedModel {
	var mu sync.Mutex
	n := 0
	return &scriptedModel{answer: func(a stepRequest) (string, error) {
		mu.Lock()
		n++
		failure := fails(n)
		mu.Unlock()
		text := "Here it is: " + a.step
		if a.step == "two" {
			text = jsonBlock(`{"n": 1}`)
			if last := a.messages[len(a.messages)-1]; strings.Contains(last, "broke off") {
				text = text[len("Here it is."):] // it goes on from what it said
			}
		}
		if failure != nil {
			return text[:len("Here it is.")], failure
		}
		return text, nil
	}}
}

func TestRunsContinueThroughABadNetwork(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newRunEngine(t, storetest.NewMemory(), network(func(n int) *model.Error {
					if (n*7+i)%10 != 0 { // one in ten streams is cut
						return nil
					}
					return &model.Error{Reason: continuo.ReasonNetwork, Retryable: true, Message: "the stream ended without its end"}
				}), chained(t))
				if status := awaitRun(t, e, startOf(t, e, "chain")); status.State != continuo.RunFinished {
					t.Errorf("it is %s: %s", status.State, status.Reason)
				}
			})
		})
	}
}

// What a provider asks to wait is waited, and a provider that is down for an hour is waited for.
func TestARunWaitsForItsProvider(t *testing.T) {
	for name, outage := range map[string]struct {
		length time.Duration
		err    model.Error
	}{
		"rate limit": {45 * time.Second, model.Error{Reason: continuo.ReasonRateLimit, Status: 429, Retryable: true, RetryAfter: 45 * time.Second, Message: "slow down"}},
		"down":       {time.Hour, model.Error{Reason: continuo.ReasonNetwork, Retryable: true, Message: "connection refused"}},
		"timeout":    {time.Minute, model.Error{Reason: continuo.ReasonTimeout, Retryable: true, Message: "no first token in time"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				m := network(func(n int) *model.Error {
					if n > 2 && time.Since(begin) < outage.length {
						return &outage.err
					}
					return nil
				})
				store := storetest.NewMemory()
				one, two := newRunEngine(t, store, m, chained(t)), newRunEngine(t, store, m, chained(t))
				run := startOf(t, one, "chain")
				time.Sleep(time.Second / 2)
				seen := retrying(t, one, run)
				if seen.RetryAt.IsZero() || !strings.Contains(seen.Reason, outage.err.Message) {
					t.Errorf("it does not say until when and why it waits: %+v", seen)
				}
				if name == "rate limit" && seen.RetryAt.Before(begin.Add(45*time.Second)) {
					t.Errorf("it waits until %s, before the provider wants to be asked", seen.RetryAt.Sub(begin))
				}
				time.Sleep(time.Millisecond)
				if n, err := two.Runs.ResumeAbandoned(t.Context(), 0); n != 1 || err != nil { // another program waits for the same moment
					t.Fatal(n, err)
				}
				status := awaitRun(t, one, run)
				if status.State != continuo.RunFinished {
					t.Errorf("it is %s: %s", status.State, status.Reason)
				}
				if took := time.Since(begin); took < outage.length || took > outage.length+15*time.Minute {
					t.Errorf("it took %s", took)
				}
				if name == "rate limit" && len(m.requests()) != 7 {
					t.Errorf("the model was asked %d times for 6 steps and one refusal", len(m.requests()))
				}
			})
		})
	}
}

// retrying is the step of a run that waits to be tried again.
func retrying(t *testing.T, e *testEngine, run continuo.Run) workflow.NodeStatus {
	t.Helper()
	status, err := e.Runs.Get(t.Context(), continuo.Scope{ProjectID: run.ProjectID}, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range status.Nodes {
		if node.State == workflow.NodeRetrying {
			return node
		}
	}
	t.Fatalf("no step waits to be tried again: %+v", status.Nodes)
	return workflow.NodeStatus{}
}

func TestARunGivesUpWhenItsLimitIsReached(t *testing.T) {
	for limit, want := range map[string]string{"{max: 3}": "retry.max", "{for: 10m}": "retry.for"} {
		synctest.Test(t, func(t *testing.T) {
			text := "id: brief\nretry: " + limit + "\nnodes:\n  work: {brief: x}\n"
			down := true
			m := network(func(int) *model.Error {
				if down {
					return &model.Error{Reason: continuo.ReasonNetwork, Retryable: true, Message: "down"}
				}
				return nil
			})
			e := newRunEngine(t, storetest.NewMemory(), m, withWorkflow(t, text))
			run := startOf(t, e, "brief")
			if status := awaitRun(t, e, run); status.State != continuo.RunFailed || !strings.Contains(status.Reason, want) {
				t.Errorf("it is %s: %s", status.State, status.Reason)
			}
			down = false
			if _, err := e.Runs.Resume(t.Context(), run, true); err != nil {
				t.Fatal(err)
			}
			if status := awaitRun(t, e, run); status.State != continuo.RunFinished {
				t.Errorf("resumed it is %s: %s", status.State, status.Reason)
			}
		})
	}
}

// A failure that stays is no reason to wait.
func TestAFailureThatStaysFailsTheRun(t *testing.T) {
	m := network(func(int) *model.Error {
		return &model.Error{Reason: continuo.ReasonUpstream, Status: 401, Message: "Incorrect API key"}
	})
	e := newRunEngine(t, storetest.NewMemory(), m, chained(t))
	if status := awaitRun(t, e, startOf(t, e, "chain")); status.State != continuo.RunFailed || !strings.Contains(status.Reason, "Incorrect API key") {
		t.Errorf("it is %s: %s", status.State, status.Reason)
	}
}

// A person who resumes a run that waits to retry has it tried at once; one who stops it has it stopped.
func TestAPersonDoesNotHaveToWaitForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		m := network(func(n int) *model.Error {
			if n == 1 {
				return &model.Error{Reason: continuo.ReasonRateLimit, Retryable: true, RetryAfter: time.Hour, Message: "slow down"}
			}
			return nil
		})
		e := newRunEngine(t, storetest.NewMemory(), m, chained(t))
		run := startOf(t, e, "chain")
		time.Sleep(time.Minute / 2)
		if status, err := e.Runs.Stop(t.Context(), run, "later"); err != nil || status.State != continuo.RunStopped {
			t.Fatal(status, err)
		}
		if _, err := e.Runs.Resume(t.Context(), run, true); err != nil {
			t.Fatal(err)
		}
		if status := awaitRun(t, e, run); status.State != continuo.RunFinished || time.Since(begin) > 2*time.Minute {
			t.Errorf("after %s it is %s: %s", time.Since(begin), status.State, status.Reason)
		}
	})
}
