package runs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/workflow"
)

// workflowRun is a run of a workflow, as far as its log was read. It is the run's machine (run_machine.go), and not
// safe for concurrent use.
type workflowRun struct {
	*durable.History[*workflow.State]
	runs   *Runs
	newest *continuo.Entry     // with an event of the run
	pieces map[string][]string // by node: the parts of the visit's answer that broke off
	// answers are, by node, its newest answer that did not break off, and failures the error of the newest one that did.
	answers  map[string]string
	cuts     map[string]bool // whether the answer reached the model's limit of tokens
	failures map[string]continuo.TurnError
}

func newRun(rs *Runs, run continuo.Run) *workflowRun {
	r := &workflowRun{
		runs: rs, pieces: map[string][]string{}, answers: map[string]string{}, cuts: map[string]bool{},
		failures: map[string]continuo.TurnError{},
	}
	r.History = durable.NewHistory(rs.driver, run, r)
	return r
}

// change appends what makes returns for the state of a run; see [durable.History.Change].
func (rs *Runs) change(ctx context.Context, run continuo.Run, makes func(*workflow.State) ([]continuo.Entry, error)) error {
	return newRun(rs, run).Change(ctx, durable.Once{}, makes)
}

// Branches are the conversations in which parallel steps may have a turn.
func (r *workflowRun) Branches() []string { return r.State.Branches() }

// conversations are those in which steps may have a turn.
func (r *workflowRun) conversations() []string {
	return append([]string{r.Run.ConversationID}, r.Branches()...)
}

// Open makes the state of the run with the workflow of a hash.
func (r *workflowRun) Open(ctx context.Context, hash string) (*workflow.State, error) {
	found, err := r.runs.parsedWorkflow(ctx, r.Run.WorkflowID, hash)
	if err != nil {
		return nil, err
	}
	return workflow.NewState(found, r.Run.ID), nil
}

// Observe keeps the answers of the run's steps.
func (r *workflowRun) Observe(ctx context.Context, entry *continuo.Entry) error {
	if entry.RunID != r.Run.ID {
		return nil
	}
	event := entry.RunEvent
	switch {
	case event != nil && event.Kind == continuo.RunReplaced:
		found, err := r.runs.parsedWorkflow(ctx, r.Run.WorkflowID, event.Workflow)
		if err != nil {
			return r.Unreadable(err)
		}
		r.State.Adopt(found)
	case event != nil && event.Kind == continuo.RunNodeBegan && entry.PartType == continuo.PartStep:
		r.pieces[entry.NodeID] = nil // a new answer; one that continues another has another cue
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

// observeAnswer keeps a step's answer. Text before tool calls or in an entry with calls, complete or not, is no part
// of it.
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

// failureOf is the error of the newest attempt of a step; for an attempt without an entry, one made from reason.
func (r *workflowRun) failureOf(step workflow.Step, reason continuo.FailureReason) continuo.TurnError {
	if failure := r.failures[step.Node.ID]; failure.Reason == reason {
		return failure
	}
	return continuo.TurnError{Code: continuo.LLMError, Reason: reason, Message: "its turn broke off", Retryable: reason == continuo.ReasonInterrupted}
}

// wasCut reports whether an answer ended at the model's token limit.
func wasCut(answer *continuo.Entry) bool {
	return answer.Round != nil && answer.Round.FinishReason == "length"
}

// status is the present status of the run, by its log and its turns.
func (r *workflowRun) status(ctx context.Context) (*Status, error) {
	status := r.statusAt(r.newest)
	turns, err := r.runs.driver.RunningTurns(ctx, r.Run.ID, r.conversations())
	if err != nil {
		return status, nil
	}
	status.TurnID = ""
	for _, running := range turns {
		status.TurnID = cmp.Or(status.TurnID, running.ID)
	}
	return status, r.runs.addPendingCalls(ctx, status, turns)
}

// statusAt is the status of the run right after its newest event, an entry; later entries and turns are not
// considered.
func (r *workflowRun) statusAt(event *continuo.Entry) *Status {
	status := &Status{Run: r.Run, Status: r.State.Status()}
	status.State, status.UpdatedAt, status.EndedAt = r.State.Run, event.CreatedAt, time.Time{}
	if status.State.IsOver() {
		status.EndedAt = event.CreatedAt
	}
	if event.RunEvent.Kind == continuo.RunNodeBegan {
		status.TurnID = event.TurnID
	}
	return status
}

// parsedWorkflow finds a workflow of a run by the hash of its text. A text without an id gets the run's workflow id,
// which came from the name of its file.
func (rs *Runs) parsedWorkflow(ctx context.Context, id, hash string) (*workflow.Workflow, error) {
	return rs.texts.Get(id+" "+hash, func() (*workflow.Workflow, error) {
		text, err := rs.log.Text(ctx, hash)
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
