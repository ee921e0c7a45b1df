package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/plaintext"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// runRequest is the body of POST /api/runs.
type runRequest struct {
	WorkflowID string          `json:"workflow_id"`
	Inputs     json.RawMessage `json:"inputs"`
	SessionID  string          `json:"session_id"`
	UserID     string          `json:"user_id"` // the owner of a new conversation
	Message    string          `json:"message"`
	Stream     *bool           `json:"stream"`
}

// startRun begins a run. The run continues when the client disconnects.
func (s *server) startRun(w http.ResponseWriter, r *http.Request) error {
	request, err := s.readRun(w, r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	status, err := s.engine.Runs.Start(r.Context(), engine.RunRequest{
		Scope: scopeOf(r), UserID: request.UserID, SessionID: request.SessionID, Workflow: request.WorkflowID,
		Inputs: request.Inputs, Message: request.Message, Key: key, Detached: true,
	})
	if err != nil {
		return s.aboutRun(&request, err)
	}
	streamed := accepts(r, "text/event-stream")
	if request.Stream != nil {
		streamed = *request.Stream
	}
	if streamed {
		return s.streamRun(w, r, &runListener{run: status.Run, session: request.SessionID, seq: status.FirstSeq - 1})
	}
	return writeJSON(w, http.StatusCreated, status)
}

// readRun reads and checks the body of POST /api/runs.
func (s *server) readRun(w http.ResponseWriter, r *http.Request) (request runRequest, err error) {
	if _, err := parseQuery(r); err != nil {
		return request, err
	}
	body, err := s.readBody(w, r)
	if err != nil {
		return request, err
	}
	if err := decode(body, &request); err != nil {
		return request, err
	}
	if _, err := scopeOf(r).Owner(request.UserID); err != nil {
		return request, at("user_id", err)
	}
	if request.WorkflowID == "" {
		return request, refuse("workflow_id", "workflow_id must name the workflow to run; GET /api/workflows lists them")
	}
	if !workflowPattern.MatchString(request.WorkflowID) {
		return request, at("workflow_id", s.noWorkflow(request.WorkflowID))
	}
	if request.Message != "" && plaintext.IsBlank(request.Message) {
		return request, refuse("message", "message says nothing: leave it out for a sentence that names the workflow")
	}
	if rawjson.IsNull(request.Inputs) {
		request.Inputs = nil
		return request, nil
	}
	if eachMember(request.Inputs, func(string, json.RawMessage) error { return nil }) != nil {
		return request, refuse("inputs", "inputs must be an object whose fields come once")
	}
	return request, nil
}

// aboutRun adds the field that kept a run from starting. An Idempotency-Key finds its run even when the workflow is
// gone or has other inputs now, so these fields are only checked here.
func (s *server) aboutRun(request *runRequest, err error) error {
	found, missing := s.workflow(request.WorkflowID)
	switch {
	case missing != nil:
		return at("workflow_id", missing)
	case errors.Is(err, continuo.ErrArchived):
		return at("session_id", err)
	case !errors.Is(err, continuo.ErrInvalid):
		return aboutRequest(err)
	}
	if _, wrong := found.ReadInputs(request.Inputs); wrong != nil {
		return at("inputs", wrong)
	}
	return aboutRequest(err)
}

// run finds the run that a path names.
func (s *server) run(r *http.Request) (continuo.Run, error) {
	id := r.PathValue("run")
	if !engine.KeyPattern.MatchString(id) { // all ids match this pattern
		return continuo.Run{}, noRun(id)
	}
	found, err := s.engine.Log.FindRun(r.Context(), scopeOf(r), id)
	if _, cycle := continuo.CrewOf(found.WorkflowID); cycle || errors.Is(err, continuo.ErrNotFound) { // crews have calls of their own
		return continuo.Run{}, noRun(id)
	}
	return found, err
}

func noRun(id string) error { return fmt.Errorf("run %q: %w", bounded(id), continuo.ErrNotFound) }

func (s *server) getRun(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	found, err := s.run(r)
	if err != nil {
		return err
	}
	status, err := s.engine.Runs.Get(r.Context(), scopeOf(r), found.ID)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, status)
}

// runPlace is a cursor of the list of runs.
type runPlace struct {
	StartedAt time.Time `json:"started_at"`
	ID        string    `json:"id"`
}

func (s *server) listRuns(w http.ResponseWriter, r *http.Request) error {
	query, limit, err := s.runQuery(r)
	if err != nil {
		return err
	}
	found, err := s.engine.Runs.List(r.Context(), query)
	if err != nil {
		return err
	}
	page := paged(append([]continuo.Run{}, found...), limit, func(run continuo.Run) any { return runPlace{run.StartedAt, run.ID} })
	return writeJSON(w, http.StatusOK, page)
}

// runQuery reads the query of the list of runs, with a limit that is one higher than the page's.
func (s *server) runQuery(r *http.Request) (query continuo.RunQuery, limit int64, err error) {
	q, err := parseQuery(r, "conversation_id", "workflow_id", "state", "limit", "cursor")
	if err != nil {
		return query, 0, err
	}
	if limit, err = q.whole("limit", 1, 100, 20); err != nil {
		return query, 0, err
	}
	scope := scopeOf(r)
	query = continuo.RunQuery{
		ProjectID: scope.ProjectID, UserID: scope.UserID, WorkflowID: q.text("workflow_id"), State: continuo.RunState(q.text("state")), Of: continuo.OfWorkflows, Limit: int(limit) + 1,
	}
	if err := checkRunState(q.has("state"), query.State); err != nil {
		return query, 0, err
	}
	if q.has("workflow_id") && !workflowPattern.MatchString(query.WorkflowID) {
		return query, 0, refuse("workflow_id", "workflow_id must be a workflow's id: a small letter, then small letters, digits, _ and -")
	}
	if q.has("cursor") {
		var place runPlace
		if err := q.cursor(&place); err != nil {
			return query, 0, err
		}
		query.Before = continuo.RunCursor(place)
	}
	if q.has("conversation_id") {
		query.ConversationID, err = s.conversationOfRuns(r, q.text("conversation_id"))
	}
	return query, limit, err
}

func checkRunState(given bool, state continuo.RunState) error {
	if given && state == "" {
		return refuse("state", "state is empty: leave it out for runs in any state")
	}
	return oneOf("state", state, continuo.RunRunning, continuo.RunWaiting, continuo.RunFailed,
		continuo.RunStopped, continuo.RunFinished, continuo.RunCancelled)
}

// conversationOfRuns finds the conversation that a list of runs names by its id or key. The runs of an archived
// conversation are restored with it.
func (s *server) conversationOfRuns(r *http.Request, name string) (string, error) {
	found, err := s.searchedConversation(r, name)
	if err != nil {
		return "", at("conversation_id", err)
	}
	if !found.ArchivedAt.IsZero() {
		return "", at("conversation_id", fmt.Errorf("conversation %q: %w", bounded(name), continuo.ErrArchived))
	}
	return found.ID, nil
}

// stopRun stops a run until a client resumes it.
func (s *server) stopRun(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		Reason string `json:"reason"`
	}
	return s.changeRun(w, r, &request, func(run continuo.Run) (*engine.RunStatus, error) {
		if utf8.RuneCountInString(request.Reason) > maxReason {
			return nil, refuse("reason", "reason must have at most %d characters", maxReason)
		}
		return s.engine.Runs.Stop(r.Context(), run, request.Reason)
	})
}

// cancelRun ends a run permanently.
func (s *server) cancelRun(w http.ResponseWriter, r *http.Request) error {
	return s.changeRun(w, r, &struct{}{}, func(run continuo.Run) (*engine.RunStatus, error) {
		return s.engine.Runs.Cancel(r.Context(), run)
	})
}

// maxComment bounds the comment of a decision, in Unicode characters: later steps see it.
const maxComment = 10_000

// decideRun answers the question of an approval node, or decides on a tool call that waits.
func (s *server) decideRun(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		NodeID     string `json:"node_id"`
		ToolCallID string `json:"tool_call_id"`
		Decision   string `json:"decision"`
		Comment    string `json:"comment"`
	}
	return s.changeRun(w, r, &request, func(run continuo.Run) (*engine.RunStatus, error) {
		switch {
		case !slices.Contains([]string{"approve", "allow", "reject", "deny"}, request.Decision):
			return nil, refuse("decision", "decision must be approve or allow, or reject or deny")
		case utf8.RuneCountInString(request.Comment) > maxComment:
			return nil, refuse("comment", "comment must have at most %d characters", maxComment)
		}
		decision := engine.RunDecision{Node: request.NodeID, Call: request.ToolCallID, Approved: request.Decision == "approve" || request.Decision == "allow", Comment: request.Comment}
		status, err := s.engine.Runs.Decide(r.Context(), run, decision, true)
		if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrInvalid) {
			field := "node_id"
			if request.ToolCallID != "" {
				field = "tool_call_id"
			}
			err = at(field, err)
		}
		return status, err
	})
}

// changeRun reads an optional body, changes the state of the run that the path names, and answers with its status. The
// answer is 202, since the process that executes the run learns of the change a moment later.
func (s *server) changeRun(w http.ResponseWriter, r *http.Request, body any, change func(continuo.Run) (*engine.RunStatus, error)) error {
	if err := s.readOptional(w, r, body); err != nil {
		return err
	}
	found, err := s.run(r)
	if err != nil {
		return err
	}
	status, err := change(found)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, status)
}
