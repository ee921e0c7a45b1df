package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/task"
)

// taskFields are the fields of the body of POST /api/tasks that package task reads.
var taskFields = []string{
	"description", "priority", "client_cwd", "background_context", "expected_deliverables", "success_criteria", "constraints",
	"relevant_files", "related_documentation", "conversation_history", "compression", "relevance",
}

// createTask stores a task.
func (s *server) createTask(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	request, userID, err := readTask(body)
	if err != nil {
		return err
	}
	if _, err := scopeOf(r).Owner(userID); err != nil {
		return at("user_id", err)
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	status, warnings, err := s.engine.Tasks.Create(r.Context(), engine.TaskRequest{Scope: scopeOf(r), UserID: userID, Request: request, Key: key})
	if err != nil {
		return aboutHistory(err)
	}
	return writeJSON(w, http.StatusCreated, struct {
		*engine.TaskStatus
		Warnings []task.Warning `json:"warnings"`
	}{status, append([]task.Warning{}, warnings...)})
}

// readTask reads a task, and its owner.
func readTask(body []byte) (request task.Request, userID string, err error) {
	var rest rawjson.Object
	err = eachMember(body, func(name string, value json.RawMessage) error {
		if name == "user_id" {
			if err := json.Unmarshal(value, &userID); err != nil {
				return api.WrongValue(name, err)
			}
			return nil
		}
		rest.Set(name, value)
		if !slices.Contains(taskFields, name) {
			return refuse(name, "unknown field %q%s", name, suggestion(name, taskFields))
		}
		return nil
	})
	if err != nil {
		return request, "", err
	}
	request, err = task.Parse(rawjson.MustMarshal(rest), task.Limits{})
	return request, userID, err
}

// aboutHistory says that an unreadable conversation is the one of the task's history.
func aboutHistory(err error) error {
	if errors.Is(err, continuo.ErrArchived) {
		return at("conversation_history", err)
	}
	return err
}

// listedTask is a task of the list, without its context and its findings.
type listedTask struct {
	engine.TaskStatus
	Findings []engine.Finding `json:"findings,omitempty"`
}

func (s *server) listTasks(w http.ResponseWriter, r *http.Request) error {
	query, err := readTaskQuery(r)
	if err != nil {
		return err
	}
	found, next, err := s.engine.Tasks.List(r.Context(), query)
	if err != nil {
		return err
	}
	page := list[listedTask]{Data: []listedTask{}, HasMore: next != nil}
	for _, status := range found {
		status.Task.Context = task.Context{}
		page.Data = append(page.Data, listedTask{TaskStatus: status})
	}
	if next != nil {
		page.NextCursor = writeCursor(conversationPlace(*next))
	}
	return writeJSON(w, http.StatusOK, page)
}

// readTaskQuery reads the query of the list of tasks.
func readTaskQuery(r *http.Request) (query engine.TaskQuery, err error) {
	q, err := parseQuery(r, "status", "limit", "cursor", "user_id")
	if err != nil {
		return query, err
	}
	most, err := q.whole("limit", 1, 100, 20)
	if err != nil {
		return query, err
	}
	query = engine.TaskQuery{Scope: scopeOf(r), Limit: int(most)}
	if query.Scope.UserID, err = q.user(scopeOf(r)); err != nil {
		return query, err
	}
	if query.State = engine.TaskState(q.text("status")); q.has("status") && query.State == "" {
		return query, refuse("status", "status is empty: leave it out for all tasks")
	}
	err = oneOf("status", query.State, engine.TaskQueued, engine.TaskRunning, engine.TaskBlocked, engine.TaskCompleted, engine.TaskFailed, engine.TaskKilled, engine.TaskGone, engine.TaskRedacted)
	if err == nil && q.has("cursor") {
		var place conversationPlace
		err = q.cursor(&place)
		query.Before = continuo.ConversationCursor(place)
	}
	return query, err
}

// task finds the task that a path names.
func (s *server) task(r *http.Request) (*engine.TaskStatus, error) {
	return s.engine.Tasks.Get(r.Context(), scopeOf(r), r.PathValue("task"))
}

func (s *server) getTask(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	status, err := s.task(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, status)
}

// showTaskPrompt writes the prompt that an agent receives.
func (s *server) showTaskPrompt(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	status, err := s.task(r)
	if err != nil {
		return err
	}
	prompt, err := status.Prompt()
	if err != nil {
		return err
	}
	return writeText(w, []byte(prompt))
}

// reportFinding stores a finding of an agent, or of another worker on a task.
func (s *server) reportFinding(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		AgentID  string          `json:"agent_id"`
		Type     string          `json:"finding_type"`
		Severity string          `json:"severity"`
		Message  string          `json:"message"`
		Data     json.RawMessage `json:"data"`
	}
	if err := s.readOptional(w, r, &request); err != nil {
		return err
	}
	finding := engine.Finding{AgentID: request.AgentID, Type: request.Type, Severity: request.Severity, Message: request.Message}
	if !rawjson.IsNull(request.Data) {
		finding.Data = request.Data
	}
	kept, err := s.engine.Tasks.Report(r.Context(), scopeOf(r), r.PathValue("task"), finding)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, kept)
}

// conversationPlace is a cursor of the list of tasks.
type conversationPlace struct {
	UpdatedAt time.Time `json:"updated_at"`
	ID        string    `json:"id"`
}
