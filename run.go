package continuo

import (
	"context"
	"encoding/json"
	"time"
)

// Run describes one execution of a workflow, or one cycle of a crew ([CrewOf]). It is an index: the run's entries in
// the log, first of all those with a RunEvent, decide how the run continues.
type Run struct {
	ID             string   `json:"id" pattern:"^run_[0-9a-f]{32}(_[0-9a-f]{12})?$"`
	ConversationID string   `json:"conversation_id"`
	ProjectID      string   `json:"project_id"`
	WorkflowID     string   `json:"workflow_id"`
	State          RunState `json:"state"`
	// KeyID is the API key of the caller who began the run, whoever resumes it; absent for none. The run's requests to
	// models are charged to it.
	KeyID string `json:"key_id,omitempty"`
	// FirstSeq is the seq of the run's first entry.
	FirstSeq  int64     `json:"first_seq" minimum:"1"`
	StartedAt time.Time `json:"started_at"`
	UpdatedAt time.Time `json:"updated_at"`        // of its newest RunEvent
	EndedAt   time.Time `json:"ended_at,omitzero"` // absent while it may continue
}

// RunState is the state of a run. A waiting run continues when a person has decided, a failed or stopped one when a
// person resumes it; finished and cancelled runs are over.
type RunState string

// The states of a run.
const (
	RunRunning   RunState = "running"
	RunWaiting   RunState = "waiting"
	RunFailed    RunState = "failed"
	RunStopped   RunState = "stopped"
	RunFinished  RunState = "finished"
	RunCancelled RunState = "cancelled"
)

// IsOver reports whether a run in this state can never continue.
func (s RunState) IsOver() bool { return s == RunFinished || s == RunCancelled }

// RunEvent is an event of a run, recorded on an entry of its log. The events of a run in their order are enough to
// continue it on any machine. Only runs write them.
type RunEvent struct {
	Kind RunEventKind `json:"kind"`
	// Workflow is the SHA-256, in hex, of the workflow's text, which is stored as a blob; of RunBegan and RunReplaced.
	Workflow string `json:"workflow,omitempty"`
	// Inputs are the run's own, of RunBegan and RunReplaced; a JSON object.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// Visit counts the run's visits of the node, from 1; a loop visits a node again.
	Visit int `json:"visit,omitempty"`
	// Attempt counts the turns of the visit, from 1; of RunNodeBegan and RunNodeRefused.
	Attempt int `json:"attempt,omitempty"`
	// Outputs, a JSON object, are a node's, of RunNodeFinished or RunNodeSet, or the run's own, of RunEventFinished. Of
	// RunNodeRefused they are the valid ones, which the node's next answer need not repeat.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// Next are the nodes that follow, in order; of RunNodeFinished, RunNodeSet and RunNodeSkipped.
	Next []string `json:"next,omitempty"`
	// Repairs describe, as text, how an answer was read that was not exactly in the requested form.
	Repairs []string `json:"repairs,omitempty"`
	// Cut says of RunNodeRefused that the answer reached the model's token limit: the next attempt continues it.
	Cut bool `json:"cut,omitempty"`
	// Reason says, as text, why an answer was refused, why an attempt waits, or why a node or a run failed or stopped.
	Reason string `json:"reason,omitempty"`
	// Branch is the conversation of the node's turns, a fork of the run's, when the node is executed in parallel with
	// others; of RunNodeBegan. Default: the run's own conversation.
	Branch string `json:"branch,omitempty"`
	// Until is when the next attempt begins, the same for every process; of RunNodeDelayed.
	Until time.Time `json:"until,omitzero"`
	// Followed are the edges from finished nodes that are followed again, by node; Dropped are the finished nodes that
	// are no longer in the workflow; of RunReplaced.
	Followed map[string][]string `json:"followed,omitempty"`
	Dropped  []string            `json:"dropped,omitempty"`
	// By names the caller who repaired the run; of RunReplaced, RunNodeSet, RunNodeRetried and RunNodeSkipped.
	By string `json:"by,omitempty"`
	// KeyID is the API key of the caller who began the run; of RunBegan. See [Run].
	KeyID string `json:"key_id,omitempty"`
	// Crew is the crew's state after the event, in the encoding of package crew; nil for runs of workflows, and for
	// events that do not change it. In the cycle of a crew a node is a role, Workflow is the SHA-256 of the crew's
	// text, and Visit counts the turns.
	Crew json.RawMessage `json:"crew,omitempty"`
}

// RunEventKind is the kind of a RunEvent.
type RunEventKind string

// The kinds of run events.
const (
	RunBegan          RunEventKind = "run_began"
	RunNodeBegan      RunEventKind = "node_began"    // a turn of the node: its first, a continuation or a retry
	RunNodeRefused    RunEventKind = "node_refused"  // the node's answer does not satisfy its brief
	RunNodeFinished   RunEventKind = "node_finished" // with its outputs
	RunNodeDelayed    RunEventKind = "node_delayed"  // an attempt failed for a temporary reason; the next one waits
	RunNodeFailed     RunEventKind = "node_failed"   // the node cannot continue until a person resumes the run
	RunNodeAsked      RunEventKind = "node_asked"    // a person is asked to decide
	RunEventWaiting   RunEventKind = "run_waiting"   // nothing can continue until a person has decided
	RunEventFinished  RunEventKind = "run_finished"
	RunEventFailed    RunEventKind = "run_failed"
	RunEventStopped   RunEventKind = "run_stopped" // stopped by a person or the end of the program
	RunResumed        RunEventKind = "run_resumed"
	RunEventCancelled RunEventKind = "run_cancelled"
	// Repairs of a failed or stopped run: a node finishes with outputs that were set by hand, is executed again with
	// all nodes that depend on it, or is skipped; the workflow is replaced by a corrected one.
	RunNodeSet     RunEventKind = "node_set"
	RunNodeRetried RunEventKind = "node_retried"
	RunNodeSkipped RunEventKind = "node_skipped"
	RunReplaced    RunEventKind = "workflow_replaced"
	// Events of crews: a role did not answer in its turn; all roles start over after the event, or are shown again the
	// entries before the newest such reset; a role's notes or a summary were made.
	CrewRoleFailed RunEventKind = "role_failed"
	CrewReset      RunEventKind = "crew_reset"
	CrewRestored   RunEventKind = "crew_restored"
	CrewNoted      RunEventKind = "crew_noted"
)

// state returns the state of a run after an event; "" for no change.
func (k RunEventKind) state() RunState {
	switch k {
	case RunBegan, RunResumed:
		return RunRunning
	case RunEventWaiting:
		return RunWaiting
	case RunEventFinished:
		return RunFinished
	case RunEventFailed:
		return RunFailed
	case RunEventStopped:
		return RunStopped
	case RunEventCancelled:
		return RunCancelled
	default:
		return ""
	}
}

// RunChange is the change that an entry with a RunEvent makes to the index of runs. It is committed together with the
// entry.
type RunChange struct {
	RunID, WorkflowID string
	// Begins says that the change adds the run, with Seq as its FirstSeq; otherwise the run exists.
	Begins bool
	KeyID  string // of a change that Begins
	Seq    int64
	State  RunState // "" for no change; the state of a run that is over never changes
	At     time.Time
}

// RunChanges returns the changes that entries make to the index of their conversation's runs, in order. Stores also use
// it for entries that come from records.
func RunChanges(entries []Entry) []RunChange {
	var changes []RunChange
	for i := range entries {
		if event := entries[i].RunEvent; event != nil {
			changes = append(changes, RunChange{
				RunID: entries[i].RunID, WorkflowID: entries[i].WorkflowID, Begins: event.Kind == RunBegan, KeyID: event.KeyID,
				Seq: entries[i].Seq, State: event.Kind.state(), At: entries[i].CreatedAt,
			})
		}
	}
	return changes
}

// RunStore finds the runs of conversations. It holds the changes of [Batch].Runs for as long as the store has the
// entries: runs of deleted and of archived conversations are not found.
type RunStore interface {
	// Run finds a run of a project; ErrNotFound.
	Run(ctx context.Context, projectID, runID string) (Run, error)
	// Runs lists runs, the newest first.
	Runs(ctx context.Context, query RunQuery) ([]Run, error)
	// RunningRuns lists runs of all projects in the state RunRunning whose UpdatedAt is before a time, ordered by
	// UpdatedAt, the oldest first.
	RunningRuns(ctx context.Context, updatedBefore time.Time, limit int) ([]Run, error)
}

// RunQuery selects a page of runs, ordered by StartedAt and then ID, both descending, or by position in the log.
type RunQuery struct {
	ProjectID string
	UserID    string // of the runs' conversations; "": of any user
	// ConversationID, WorkflowID and State are filters; "" for none.
	ConversationID, WorkflowID string
	State                      RunState
	// BegunBy selects the runs of ConversationID that began at or before a seq, and orders them by FirstSeq,
	// descending: the clocks of several machines differ, the log's order does not. Before is then ignored. 0: ordered
	// by time.
	BegunBy int64
	// Of selects the runs of workflows, or the cycles of crews. Default: both.
	Of    RunsOf
	Limit int // at least 1
	// Before continues after the last run of the previous page; zero for the first page.
	Before RunCursor
}

// RunsOf is the kind of definition that a run executes.
type RunsOf string

// The kinds of definitions that a run can execute: see [CrewOf].
const (
	OfWorkflows RunsOf = "workflows"
	OfCrews     RunsOf = "crews"
)

// Has reports whether a run with a WorkflowID is of this kind.
func (of RunsOf) Has(workflowID string) bool {
	_, crew := CrewOf(workflowID)
	return of == "" || crew == (of == OfCrews)
}

// RunCursor is a position in the list of runs.
type RunCursor struct {
	StartedAt time.Time
	ID        string
}
