package engine

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// Workflows is where an engine finds workflows. It must be safe for concurrent use.
type Workflows interface {
	// Workflow finds one by id; continuo.ErrNotFound, or a *workflow.Problems of one that is not right.
	Workflow(id string) (*workflow.Workflow, error)
	// Workflows lists those that there are by id. Problems of files that are not right are joined in the error,
	// and the others are listed all the same.
	Workflows() ([]*workflow.Workflow, error)
}

// RunRequest begins a run of a workflow.
type RunRequest struct {
	ProjectID string
	// SessionID is a conversation's id or key, as in a ChatRequest.
	SessionID string
	Workflow  string // its id
	// Inputs is a JSON object with the run's inputs; nil for none.
	Inputs json.RawMessage
	// Message is what the person says with it. Default: a sentence that names the workflow and the inputs.
	Message string
	// Key is the idempotency key; "" for none.
	Key string
	// Detached lets the run go on when the caller's context ends.
	Detached bool
}

// RunStatus is how a run stands: what its index says and what its events come to.
type RunStatus struct {
	continuo.Run
	workflow.Status
	// TurnID is the turn of a step that is under way, in whatever process; "" for none.
	TurnID string `json:"turn_id,omitempty"`
}

// RunDecision is what a person decides in an approval node.
type RunDecision struct {
	Node     string // "" where only one waits
	Approved bool
	Comment  string
}

// RunProgress is one step of a run as its readers see it: an entry of the run, or an event of the turn that
// is under way.
type RunProgress struct {
	// Entry is an entry of the run, in the order of their seqs. Status is how the run stands after it, where
	// it has a RunEvent.
	Entry  *continuo.Entry
	Status *RunStatus
	// Turn is a live event of a turn of the run: text as it comes, calls, questions. These pass by: who reads
	// later or from another place finds what they said in the entries.
	Turn *turn.Event
}

// Workflows lists the workflows; see [Workflows].
func (e *Engine) Workflows() ([]*workflow.Workflow, error) { return nil, errors.ErrUnsupported }

// Workflow finds a workflow by id; see [Workflows].
func (e *Engine) Workflow(id string) (*workflow.Workflow, error) { return nil, errors.ErrUnsupported }

// StartRun checks a request, finds or begins its conversation, records the run's beginning, and goes on with the
// run in goroutines of its own. With a key that has begun a run before it gives that run.
func (e *Engine) StartRun(ctx context.Context, request RunRequest) (*RunStatus, error) {
	return nil, errors.ErrUnsupported
}

// Run finds a run of a project; ErrNotFound.
func (e *Engine) Run(ctx context.Context, projectID, id string) (*RunStatus, error) {
	return nil, errors.ErrUnsupported
}

// Runs lists runs, the newest first.
func (e *Engine) Runs(ctx context.Context, query continuo.RunQuery) ([]continuo.Run, error) {
	return e.Log.Runs().Runs(ctx, query)
}

// ResumeRun goes on with a run that failed or was stopped, from where it broke off, and with one whose process
// is gone; one that runs is left alone. ErrRunOver says that it has ended for good, ErrRunWaits that a
// person is to decide first. The run goes on when ctx ends if it is detached.
func (e *Engine) ResumeRun(ctx context.Context, run continuo.Run, detached bool) (*RunStatus, error) {
	return nil, errors.ErrUnsupported
}

// StopRun stops a run, wherever it runs, until somebody resumes it; ErrRunOver.
func (e *Engine) StopRun(ctx context.Context, run continuo.Run, reason string) (*RunStatus, error) {
	return nil, errors.ErrUnsupported
}

// CancelRun ends a run for good, wherever it runs; ErrRunOver.
func (e *Engine) CancelRun(ctx context.Context, run continuo.Run) (*RunStatus, error) {
	return nil, errors.ErrUnsupported
}

// DecideRun records what a person decides, and goes on with the run. ErrNotFound says that no such node
// waits; the first decision counts.
func (e *Engine) DecideRun(ctx context.Context, run continuo.Run, decision RunDecision, detached bool) (*RunStatus, error) {
	return nil, errors.ErrUnsupported
}

// FollowRun yields the entries of a run with seqs above after, each once and in order, those that are there
// and then those that come, with the live events of its turns between them. It ends when the run is over,
// has failed or was stopped and nothing more is there, or with an error.
func (e *Engine) FollowRun(ctx context.Context, run continuo.Run, after int64) iter.Seq2[RunProgress, error] {
	return func(yield func(RunProgress, error) bool) { yield(RunProgress{}, errors.ErrUnsupported) }
}

// Errors of runs.
var (
	ErrRunOver  = errors.New("the run is over")
	ErrRunWaits = errors.New("the run waits for a person's decision")
)
