package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/plaintext"
	"github.com/continuo-log/continuo/internal/rawjson"
)

func (s *Service) runOperations() []Operation {
	const runs, run = "/api/runs", "/api/runs/{run}"
	state := accepted("The state of the run.")
	over := shared(http.StatusConflict, "RunOver")
	invalid := shared(http.StatusUnprocessableEntity, "WorkflowInvalid")
	stream := events[RunStream]()
	return []Operation{
		define(Operation{
			ID: "listRuns", Method: "GET", Path: runs, Tag: "runs", Summary: "list runs of workflows, the newest first",
			Answers: answers(ok("A page of runs.")),
		}, s.ListRuns),
		define(Operation{
			ID: "startRun", Method: "POST", Path: runs, Tag: "runs", Summary: "begin a run of a workflow",
			Answers: answers(
				created("The run, started by this request or by an earlier one with the same `Idempotency-Key`."), ok("The run, as a stream.").as(stream),
				failing(404, "There is no such workflow, or no conversation with that id (`not_found`, with the field in `param`)."),
				failing(409, "The `Idempotency-Key` was used for something else (`idempotency_conflict`), the conversation is busy "+
					"(`conversation_busy`) or archived (`archived`)."),
				invalid,
			),
		}, s.StartRun),
		define(Operation{
			ID: "getRun", Method: "GET", Path: run, Tag: "runs", Summary: "show the state of a run",
			Answers: answers(ok("The run and its nodes.")),
		}, s.GetRun),
		define(Operation{
			ID: "followRun", Method: "GET", Path: run + "/events", Tag: "runs", Summary: "follow a run, live or from its start",
			Answers: answers(ok("The events.").as(stream), Answer{Status: http.StatusNoContent, Description: streamOver}),
		}, s.FollowRun),
		define(Operation{
			ID: "resumeRun", Method: "POST", Path: run + "/resume", Tag: "runs", Summary: "resume a run that failed or was stopped",
			Answers: answers(
				state, failing(409, "The run is over (`run_over`), or a person must decide first (`run_waiting`); with `workflow`: it is "+
					"running (`run_in_progress`), or the `Idempotency-Key` made another repair (`idempotency_conflict`)."), invalid,
			),
		}, s.ResumeRun),
		define(Operation{
			ID: "stopRun", Method: "POST", Path: run + "/stop", Tag: "runs", Summary: "stop a run until it is resumed",
			Answers: answers(state, over),
		}, s.StopRun),
		define(Operation{
			ID: "cancelRun", Method: "POST", Path: run + "/cancel", Tag: "runs", Summary: "cancel a run permanently",
			Answers: answers(state, over),
		}, s.CancelRun),
		define(Operation{
			ID: "decideRun", Method: "POST", Path: run + "/approvals", Tag: "runs", Summary: "answer the question of an approval node",
			Answers: answers(state, failing(404, "There is no such run, or no such node waits (`not_found`, with `node_id` in `param`)."), over),
		}, s.DecideRun),
	}
}

// RunPath names a run.
type RunPath struct {
	// A run's id.
	Run string `path:"run"`
}

// RunFilter selects a page of runs.
type RunFilter struct {
	// Only runs in this conversation, named by its id or key.
	ConversationID *string `query:"conversation_id"`
	// Only runs of this workflow, which need not exist any more.
	WorkflowID *string `query:"workflow_id" pattern:"^[a-z][a-z0-9_-]*$"`
	// Only runs in this state.
	State *continuo.RunState `query:"state"`
	// The maximum number of runs.
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor
}

// Check refuses unknown states and ids that no workflow can have.
func (in *RunFilter) Check() error {
	if in.State != nil {
		if *in.State == "" {
			return Refuse("state", "state is empty: leave it out for runs in any state")
		}
		if err := oneOf("state", *in.State, continuo.RunRunning, continuo.RunWaiting, continuo.RunFailed,
			continuo.RunStopped, continuo.RunFinished, continuo.RunCancelled); err != nil {
			return err
		}
	}
	if in.WorkflowID != nil && !engine.DefinitionIDPattern.MatchString(*in.WorkflowID) {
		return Refuse("workflow_id", "workflow_id must be a workflow's id: a small letter, then small letters, digits, _ and -")
	}
	return nil
}

// runCursor is a cursor of the list of runs.
type runCursor struct {
	StartedAt time.Time `json:"started_at"`
	ID        string    `json:"id"`
}

// ListRuns lists runs of workflows.
//
// The newest first. The runs of an archived conversation are not listed until it is restored.
func (s *Service) ListRuns(ctx context.Context, scope continuo.Scope, in RunFilter) (page List[continuo.Run], err error) {
	query := continuo.RunQuery{ProjectID: scope.ProjectID, UserID: scope.UserID, Of: continuo.OfWorkflows, Limit: in.Limit + 1}
	if in.State != nil {
		query.State = *in.State
	}
	if in.WorkflowID != nil {
		query.WorkflowID = *in.WorkflowID
	}
	var position runCursor
	if _, err := in.decode(&position); err != nil {
		return page, err
	}
	query.Before = continuo.RunCursor(position)
	if in.ConversationID != nil {
		if query.ConversationID, err = s.conversationOfRuns(ctx, scope, *in.ConversationID); err != nil {
			return page, At("conversation_id", err)
		}
	}
	found, err := s.Engine.Runs.List(ctx, query)
	if err != nil {
		return page, err
	}
	return listed(found, in.Limit, func(run continuo.Run) any { return runCursor{run.StartedAt, run.ID} }), nil
}

// conversationOfRuns finds the conversation that a list of runs names by its id or key. The runs of an archived
// conversation are restored with it.
func (s *Service) conversationOfRuns(ctx context.Context, scope continuo.Scope, name string) (string, error) {
	found, err := s.Engine.Conversations.Get(ctx, scope, name)
	return found.ID, err
}

// RunRequest is a request to begin a run.
type RunRequest struct {
	Once
	// One of `/api/workflows`.
	WorkflowID string `json:"workflow_id"`
	// The run's inputs, as the workflow declares them.
	Inputs json.RawMessage `json:"inputs,omitempty" type:"object"`
	// A conversation's id, or a key, as in `POST /chat`. An unknown key begins a conversation.
	SessionID string `json:"session_id,omitempty"`
	// The owner of a new conversation. A conversation without an owner gets this one; another user's is refused with
	// 403, `other_user`.
	UserID UserID `json:"user_id,omitempty"`
	// The person's message. The default is a sentence that names the workflow and the inputs.
	Message string `json:"message,omitempty"`
	Stream  *bool  `json:"stream,omitempty"`
}

// Check refuses what no workflow could be run with.
func (in *RunRequest) Check() error {
	if in.WorkflowID == "" {
		return Refuse("workflow_id", "workflow_id must name the workflow to run; GET /api/workflows lists them")
	}
	if in.Message != "" && plaintext.IsBlank(in.Message) {
		return Refuse("message", "message says nothing: leave it out for a sentence that names the workflow")
	}
	if rawjson.IsNull(in.Inputs) {
		in.Inputs = nil
		return nil
	}
	if !isObject(in.Inputs) {
		return Refuse("inputs", "inputs must be an object whose fields come once")
	}
	return nil
}

// isObject reports whether a JSON value is an object without duplicate members.
func isObject(value json.RawMessage) bool {
	return eachMember(value, func(string, json.RawMessage) error { return nil }) == nil
}

// StartRun begins a run. The run continues when the client disconnects.
//
// A run executes a workflow in one conversation: everything it does is recorded in that conversation's log. Without
// `session_id` it begins a new conversation, with an unknown one a conversation of that key. **The run continues when the
// client disconnects**, until it is over, waits for a person, fails or is stopped; it also continues after a crash.
//
// The answer is sent as soon as the log has the run's first entry. With `"stream": true`, or with `Accept:
// text/event-stream` and no `stream`, it is the stream of `GET /api/runs/{run}/events` from the run's first entry.
//
// A request that is sent again with its `Idempotency-Key` gets the run that it began, in its current state.
func (s *Service) StartRun(ctx context.Context, scope continuo.Scope, in RunRequest) (*engine.RunStatus, error) {
	if _, err := scope.Owner(string(in.UserID)); err != nil {
		return nil, At("user_id", err)
	}
	if !engine.DefinitionIDPattern.MatchString(in.WorkflowID) {
		return nil, At("workflow_id", s.noWorkflow(in.WorkflowID))
	}
	status, err := s.Engine.Runs.Start(ctx, engine.RunRequest{
		Scope: scope, UserID: string(in.UserID), SessionID: in.SessionID, Workflow: in.WorkflowID,
		Inputs: in.Inputs, Message: in.Message, Key: string(in.Key), Detached: true,
	})
	if err != nil {
		return nil, s.aboutRun(in, err)
	}
	return status, nil
}

// aboutRun adds the field that kept a run from starting. An Idempotency-Key finds its run even when the workflow is
// gone or has other inputs now, so these fields are only checked here.
func (s *Service) aboutRun(in RunRequest, err error) error {
	found, missing := s.workflow(in.WorkflowID)
	switch {
	case missing != nil:
		return At("workflow_id", missing)
	case errors.Is(err, continuo.ErrArchived), errors.Is(err, continuo.ErrNotFound), errors.Is(err, continuo.ErrBusy), errors.Is(err, continuo.ErrOtherUser):
		return At("session_id", err)
	case !errors.Is(err, continuo.ErrInvalid):
		return err
	}
	if _, wrong := found.ReadInputs(in.Inputs); wrong != nil {
		return At("inputs", wrong)
	}
	return At("session_id", err)
}

// GetRun shows a run.
func (s *Service) GetRun(ctx context.Context, scope continuo.Scope, in RunPath) (*engine.RunStatus, error) {
	return s.changeRun(ctx, scope, in, func(run continuo.Run) (*engine.RunStatus, error) { return s.Engine.Runs.Get(ctx, scope, run.ID) })
}

// changeRun finds a run and changes its state, or reads it.
func (s *Service) changeRun(
	ctx context.Context, scope continuo.Scope, path RunPath, change func(continuo.Run) (*engine.RunStatus, error),
) (*engine.RunStatus, error) {
	run, err := s.Engine.Runs.Find(ctx, scope, path.Run)
	if err != nil {
		return nil, err
	}
	return change(run)
}

// RunEvents is a request to follow a run.
type RunEvents struct {
	RunPath
	After
}

// FollowRun finds the run that a client follows; the adapter sends its events.
//
// The entries of the run after the last one that the client received, and then new ones, until the run is over, fails
// or is stopped. The stream stays open while the run waits for a person. Every client gets each entry once and in order,
// whichever process executes the run; a client that was disconnected continues with `Last-Event-ID`, which an `EventSource`
// sends by itself.
//
// The live events of the running step's turn come between the entries, as in the turn's own stream but without ids. They
// are not sent again after a reconnect: the entries contain the same text.
func (s *Service) FollowRun(ctx context.Context, scope continuo.Scope, in RunEvents) (continuo.Run, error) {
	return s.Engine.Runs.Find(ctx, scope, in.Run)
}

// StopRequest is the body of requests that stop something.
type StopRequest struct {
	// Recorded in the log.
	Reason string `json:"reason,omitempty" maxLength:"500"`
}

// RunStopRequest is a request to stop a run.
type RunStopRequest struct {
	RunPath
	StopRequest
}

// StopRun stops a run until a client resumes it.
//
// Whichever process executes it. The running step ends with the text that it has produced.
func (s *Service) StopRun(ctx context.Context, scope continuo.Scope, in RunStopRequest) (*engine.RunStatus, error) {
	return s.changeRun(ctx, scope, in.RunPath, func(run continuo.Run) (*engine.RunStatus, error) { return s.Engine.Runs.Stop(ctx, run, in.Reason) })
}

// RunCancelRequest is a request to cancel a run.
type RunCancelRequest struct {
	RunPath
	EmptyBody
}

// CancelRun ends a run permanently.
//
// Whichever process executes it. The running step ends with the text that it has produced.
func (s *Service) CancelRun(ctx context.Context, scope continuo.Scope, in RunCancelRequest) (*engine.RunStatus, error) {
	return s.changeRun(ctx, scope, in.RunPath, func(run continuo.Run) (*engine.RunStatus, error) { return s.Engine.Runs.Cancel(ctx, run) })
}

// RunDecisionRequest is a person's decision.
type RunDecisionRequest struct {
	RunPath
	// The node that waits; optional where only one decision is pending.
	NodeID string `json:"node_id,omitempty"`
	// The tool call that waits (`waiting_for` of a node); optional likewise.
	ToolCallID string      `json:"tool_call_id,omitempty"`
	Decision   RunDecision `json:"decision"`
	// The node's output `comment`, which later steps may be shown.
	Comment string `json:"comment,omitempty" maxLength:"10000"`
}

// RunDecision is a decision on the question of an approval node, or on a tool call.
type RunDecision string

// The decisions: two names for each.
const (
	Approve RunDecision = "approve"
	Allow   RunDecision = "allow"
	Reject  RunDecision = "reject"
	Deny    RunDecision = "deny"
)

// Check refuses unknown decisions.
func (in *RunDecisionRequest) Check() error {
	switch in.Decision {
	case Approve, Allow, Reject, Deny:
		return nil
	}
	return Refuse("decision", "decision must be approve or allow, or reject or deny")
}

// DecideRun records a person's decision.
//
// And resumes the run. The decision is the answer to the question of an approval node, or whether a tool call may run
// (`waiting_for` of a node). The first decision counts; an opposite decision on a call that comes second is refused (409
// `decided`). Where several decisions are pending, `node_id` or `tool_call_id` names one. A run waits without a limit.
func (s *Service) DecideRun(ctx context.Context, scope continuo.Scope, in RunDecisionRequest) (*engine.RunStatus, error) {
	return s.changeRun(ctx, scope, in.RunPath, func(run continuo.Run) (*engine.RunStatus, error) {
		approved := in.Decision == Approve || in.Decision == Allow
		decision := engine.RunDecision{Node: in.NodeID, Call: in.ToolCallID, Approved: approved, Comment: in.Comment}
		status, err := s.Engine.Runs.Decide(ctx, run, decision, true)
		if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrInvalid) {
			if in.ToolCallID != "" {
				return nil, At("tool_call_id", err)
			}
			return nil, At("node_id", err)
		}
		return status, err
	})
}
