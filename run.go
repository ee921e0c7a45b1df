package continuo

import (
	"context"
	"encoding/json"
	"time"
)

// Run is what is known about one execution of a workflow, or one cycle of a crew ([CrewOf]). It is an index of what the log holds: the entries
// of the run, those with a RunEvent first of all, decide how it goes on.
type Run struct {
	ID             string   `json:"id"`
	ConversationID string   `json:"conversation_id"`
	ProjectID      string   `json:"project_id"`
	WorkflowID     string   `json:"workflow_id"`
	State          RunState `json:"state"`
	// FirstSeq is the seq of the entry that the run began with.
	FirstSeq  int64     `json:"first_seq"`
	StartedAt time.Time `json:"started_at"`
	UpdatedAt time.Time `json:"updated_at"`        // of its newest RunEvent
	EndedAt   time.Time `json:"ended_at,omitzero"` // zero while it may go on
}

// RunState says how far a run is.
type RunState string

// The states of a run. A waiting run goes on when a person has decided, a failed or stopped one when a person
// resumes it; finished and cancelled ones are over.
const (
	RunRunning   RunState = "running"
	RunWaiting   RunState = "waiting"
	RunFailed    RunState = "failed"
	RunStopped   RunState = "stopped"
	RunFinished  RunState = "finished"
	RunCancelled RunState = "cancelled"
)

// IsOver reports whether a run of this state can never go on.
func (s RunState) IsOver() bool { return s == RunFinished || s == RunCancelled }

// RunEvent is what a run records on an entry of its log. In their order the events of a run are all that it
// takes to go on with it, on any machine. Only runs write them.
type RunEvent struct {
	Kind RunEventKind `json:"kind"`
	// Workflow is the SHA-256 of the workflow's text, which is kept as a blob, in hex; of RunBegan and RunReplaced.
	Workflow string `json:"workflow,omitempty"`
	// Inputs are the run's own, of RunBegan and RunReplaced; a JSON object.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// Visit counts how often the run has come to the node, from 1: a loop comes again.
	Visit int `json:"visit,omitempty"`
	// Attempt counts the turns of the visit, from 1; of RunNodeBegan and RunNodeRefused.
	Attempt int `json:"attempt,omitempty"`
	// Outputs are a node's, of RunNodeFinished and RunNodeSet, or the run's own, of RunEnded; a JSON object. Of RunNodeRefused they are
	// those that were right: the node's next answer need not give them again.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// Next are the nodes to which the run goes on from a node, in order; of RunNodeFinished, RunNodeSet and RunNodeSkipped.
	Next []string `json:"next,omitempty"`
	// Repairs say in words what was read of an answer although it was not exactly what was asked for.
	Repairs []string `json:"repairs,omitempty"`
	// Cut says of RunNodeRefused that the answer reached the model's limit of tokens: the next attempt goes on with it.
	Cut bool `json:"cut,omitempty"`
	// Reason says in words why an answer was refused, why an attempt waits, or why a node or a run failed or stopped.
	Reason string `json:"reason,omitempty"`
	// Branch is the conversation that the node's turns are in, a fork of the run's, where it is carried out beside others;
	// of RunNodeBegan. Default: the run's own.
	Branch string `json:"branch,omitempty"`
	// Until is when the next attempt begins, the same for every process; of RunNodeDelayed.
	Until time.Time `json:"until,omitzero"`
	// Followed are the edges that are followed again from finished nodes, by node, and Dropped the nodes that had finished
	// and are no longer in the workflow; of RunReplaced.
	Followed map[string][]string `json:"followed,omitempty"`
	Dropped  []string            `json:"dropped,omitempty"`
	// By names the caller who repaired the run; of RunReplaced, RunNodeSet, RunNodeRetried and RunNodeSkipped.
	By string `json:"by,omitempty"`
	// Crew is how the crew stands after the event; nil for the runs of workflows, and where nothing changed. In the
	// cycle of a crew a node is a role, Workflow is the SHA-256 of the crew's text, and Visit counts the turns.
	Crew *CrewState `json:"crew,omitempty"`
}

// RunEventKind says what a RunEvent tells.
type RunEventKind string

// The kinds of run events.
const (
	RunBegan        RunEventKind = "run_began"
	RunNodeBegan    RunEventKind = "node_began"    // a turn of the node: its first, or one that goes on or tries again
	RunNodeRefused  RunEventKind = "node_refused"  // the node's answer is not what its brief asks for
	RunNodeFinished RunEventKind = "node_finished" // with its outputs
	RunNodeDelayed  RunEventKind = "node_delayed"  // an attempt broke off for a reason that passes; the next one waits
	RunNodeFailed   RunEventKind = "node_failed"   // the node cannot go on until a person resumes the run
	RunNodeAsked    RunEventKind = "node_asked"    // a person is to decide
	RunHeld         RunEventKind = "run_waiting"   // nothing can go on until a person has decided
	RunEnded        RunEventKind = "run_finished"
	RunBrokeOff     RunEventKind = "run_failed"
	RunHalted       RunEventKind = "run_stopped" // a person or the end of the program stopped it
	RunResumed      RunEventKind = "run_resumed"
	RunCalledOff    RunEventKind = "run_cancelled"
	// Repairs of a run that failed or was stopped: a node finishes with outputs that were set by hand, is carried out
	// again with all that depends on it, or is passed over; the workflow is replaced by a corrected one.
	RunNodeSet     RunEventKind = "node_set"
	RunNodeRetried RunEventKind = "node_retried"
	RunNodeSkipped RunEventKind = "node_skipped"
	RunReplaced    RunEventKind = "workflow_replaced"
	// Of crews: a role did not answer in its turn; all roles begin anew behind the event, or see again what stands
	// before the newest such beginning; a role's notes or a summary were made.
	CrewRoleFailed RunEventKind = "role_failed"
	CrewReset      RunEventKind = "crew_reset"
	CrewRestored   RunEventKind = "crew_restored"
	CrewNoted      RunEventKind = "crew_noted"
)

// state is the state that an event puts its run in; "" leaves it as it is.
func (k RunEventKind) state() RunState {
	switch k {
	case RunBegan, RunResumed:
		return RunRunning
	case RunHeld:
		return RunWaiting
	case RunEnded:
		return RunFinished
	case RunBrokeOff:
		return RunFailed
	case RunHalted:
		return RunStopped
	case RunCalledOff:
		return RunCancelled
	default:
		return ""
	}
}

// RunChange is what an entry with a RunEvent changes in the index of runs. It is committed together with
// the entry.
type RunChange struct {
	RunID, WorkflowID string
	// Begins says that the change adds the run, with Seq for its FirstSeq; otherwise it is there.
	Begins bool
	Seq    int64
	State  RunState // "" leaves it as it is; one that is over stays so
	At     time.Time
}

// RunChanges returns what entries change in the index of their conversation's runs, in order. Stores that
// take entries over from records use it too.
func RunChanges(entries []Entry) []RunChange {
	var changes []RunChange
	for i := range entries {
		if event := entries[i].RunEvent; event != nil {
			changes = append(changes, RunChange{
				RunID: entries[i].RunID, WorkflowID: entries[i].WorkflowID, Begins: event.Kind == RunBegan,
				Seq: entries[i].Seq, State: event.Kind.state(), At: entries[i].CreatedAt,
			})
		}
	}
	return changes
}

// RunStore finds the runs of conversations. It has what [Batch].Runs told it, for as long as the entries are
// in the store: those of a deleted conversation and of one that is archived are not found.
type RunStore interface {
	// Run finds a run of a project; ErrNotFound.
	Run(ctx context.Context, projectID, runID string) (Run, error)
	// Runs lists runs, the newest first.
	Runs(ctx context.Context, query RunQuery) ([]Run, error)
	// RunningRuns lists runs of all projects in the state RunRunning whose UpdatedAt is before a time, the
	// oldest UpdatedAt first.
	RunningRuns(ctx context.Context, updatedBefore time.Time, limit int) ([]Run, error)
	// RemakeRuns makes the index of a conversation's runs anew from its entries; ErrNotFound.
	RemakeRuns(ctx context.Context, conversationID string) error
}

// RunQuery selects a page of runs, ordered by StartedAt and then ID, both descending, or by their place in the log.
type RunQuery struct {
	ProjectID string
	UserID    string // of the runs' conversations; "": of any user
	// ConversationID and WorkflowID and State narrow the list; "" does not.
	ConversationID, WorkflowID string
	State                      RunState
	// BegunBy narrows it to the runs of ConversationID that began at or before a seq, and orders them by FirstSeq,
	// descending: clocks of several machines differ, the log's order does not. Before is not looked at then. 0: by time.
	BegunBy int64
	// Of narrows it to the runs of workflows, or the cycles of crews. Default: both.
	Of    RunsOf
	Limit int // at least 1
	// Before continues after the last run of the page before; zero for the first page.
	Before RunCursor
}

// RunsOf tells what executes a run.
type RunsOf string

// What can execute a run: see [CrewOf].
const (
	OfWorkflows RunsOf = "workflows"
	OfCrews     RunsOf = "crews"
)

// Has reports whether a run of a WorkflowID is one of these.
func (of RunsOf) Has(workflowID string) bool {
	_, crew := CrewOf(workflowID)
	return of == "" || crew == (of == OfCrews)
}

// RunCursor is a place in the list of runs.
type RunCursor struct {
	StartedAt time.Time
	ID        string
}
