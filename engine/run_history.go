package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/workflow"
)

// workflowRun is a run of a workflow as far as its log was read. It is the run's machine (run_machine.go), and for one
// goroutine.
type workflowRun struct {
	*durable.History[*workflow.State]
	engine *Engine
	newest *continuo.Entry     // with an event of the run
	pieces map[string][]string // by node: what the visit's answer said before it broke off
	// answers and failures are, by node, its newest answer that did not break off, and why the newest one did.
	answers  map[string]string
	cuts     map[string]bool // whether the answer reached the model's limit of tokens
	failures map[string]continuo.TurnError
}

func newWorkflowRun(e *Engine, run continuo.Run) *workflowRun {
	r := &workflowRun{
		engine: e, pieces: map[string][]string{}, answers: map[string]string{}, cuts: map[string]bool{},
		failures: map[string]continuo.TurnError{},
	}
	r.History = durable.NewHistory(e.runs, run, r)
	return r
}

// changeRun appends what makes returns for the state of a run; see [durable.History.Change].
func (e *Engine) changeRun(ctx context.Context, run continuo.Run, makes func(*workflow.State) ([]continuo.Entry, error)) error {
	return newWorkflowRun(e, run).Change(ctx, durable.Once{}, makes)
}

// Branches are the conversations in which steps may be under way beside others.
func (r *workflowRun) Branches() []string { return r.State.Branches() }

// conversations are those in which steps may be under way.
func (r *workflowRun) conversations() []string {
	return append([]string{r.Run.ConversationID}, r.Branches()...)
}

// Open makes the state of the run with the workflow of a hash.
func (r *workflowRun) Open(ctx context.Context, hash string) (*workflow.State, error) {
	found, err := r.engine.workflowOf(ctx, r.Run.WorkflowID, hash)
	if err != nil {
		return nil, err
	}
	return workflow.NewState(found, r.Run.ID), nil
}

// Observe notes what the run's steps have said.
func (r *workflowRun) Observe(ctx context.Context, entry *continuo.Entry) error {
	if entry.RunID != r.Run.ID {
		return nil
	}
	event := entry.RunEvent
	switch {
	case event != nil && event.Kind == continuo.RunReplaced:
		found, err := r.engine.workflowOf(ctx, r.Run.WorkflowID, event.Workflow)
		if err != nil {
			return r.Unreadable(err)
		}
		r.State.Adopt(found)
	case event != nil && event.Kind == continuo.RunNodeBegan && entry.PartType == continuo.PartStep:
		r.pieces[entry.NodeID] = nil // it begins an answer; one that goes on with another has another cue
	case event != nil && event.Kind == continuo.RunNodeRefused && event.Cut:
		r.pieces[entry.NodeID] = append(r.pieces[entry.NodeID], r.answers[entry.NodeID])
	case entry.Role == continuo.Assistant:
		r.observeAnswer(entry)
	}
	if event != nil && !r.State.Run.IsOver() {
		r.newest = entry
	}
	return nil
}

// observeAnswer notes what a step said. What it said before or with calls, whole or not, is no part of its answer.
func (r *workflowRun) observeAnswer(entry *continuo.Entry) {
	node, asks := entry.NodeID, entry.HasCalls()
	if entry.Error != nil {
		r.failures[node] = *entry.Error
		asks = asks || len(entry.Error.PartialToolCalls) > 0
	}
	switch {
	case asks:
		r.pieces[node] = nil
	case entry.Error == nil:
		r.answers[node], r.cuts[node] = entry.Content.String(), wasCut(entry)
	case !entry.Content.IsEmpty():
		r.pieces[node] = append(r.pieces[node], entry.Content.String())
	}
}

// failureOf is why the newest attempt of a step broke off; of one that left no entry, a reason that passes.
func (r *workflowRun) failureOf(step workflow.Step, reason continuo.FailureReason) continuo.TurnError {
	if failure := r.failures[step.Node.ID]; failure.Reason == reason {
		return failure
	}
	return continuo.TurnError{Code: continuo.LLMError, Reason: reason, Message: "its turn broke off", Retryable: reason == continuo.ReasonInterrupted}
}

// wasCut reports whether an answer ended because it had reached the model's limit of tokens.
func wasCut(answer *continuo.Entry) bool {
	return answer.Round != nil && answer.Round.FinishReason == "length"
}

// status is the status of the run now, by its log and its turns.
func (r *workflowRun) status(ctx context.Context) (*RunStatus, error) {
	status := r.statusAt(r.newest)
	turns, err := r.engine.runs.RunningTurns(ctx, r.Run.ID, r.conversations())
	if err != nil {
		return status, nil
	}
	status.TurnID = ""
	for _, running := range turns {
		status.TurnID = cmp.Or(status.TurnID, running.ID)
	}
	return status, r.engine.tellWaiting(ctx, status, turns)
}

// statusAt is the status of the run after its newest event, an entry, without what has come since.
func (r *workflowRun) statusAt(event *continuo.Entry) *RunStatus {
	status := &RunStatus{Run: r.Run, Status: r.State.Status()}
	status.State, status.UpdatedAt, status.EndedAt = r.State.Run, event.CreatedAt, time.Time{}
	if status.State.IsOver() {
		status.EndedAt = event.CreatedAt
	}
	if event.RunEvent.Kind == continuo.RunNodeBegan {
		status.TurnID = event.TurnID
	}
	return status
}

// workflowOf finds the workflow that a run was begun with, as it was then. A text may leave the id to its file's name.
func (e *Engine) workflowOf(ctx context.Context, id, hash string) (*workflow.Workflow, error) {
	return e.workflowTexts.get(id+" "+hash, func() (*workflow.Workflow, error) {
		text, err := e.Log.Text(ctx, hash)
		if err != nil {
			return nil, fmt.Errorf("its workflow: %w", err)
		}
		found, err := workflow.Parse(id+".yaml", text, workflow.Known{Any: true})
		if err != nil {
			return nil, fmt.Errorf("its workflow: %w", err)
		}
		return found, nil
	})
}

// texts are parsed texts of the log, by ids and hashes, so that one is not parsed at each look. It is safe for concurrent
// use.
type texts[T any] struct {
	mu   sync.Mutex
	read map[string]T
}

// maxTexts bounds how many are remembered.
const maxTexts = 256

// get finds one or reads it.
func (t *texts[T]) get(key string, read func() (T, error)) (T, error) {
	t.mu.Lock()
	found, ok := t.read[key]
	t.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := read()
	if err != nil {
		return found, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read == nil || len(t.read) >= maxTexts {
		t.read = map[string]T{}
	}
	t.read[key] = found
	return found, nil
}
