package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/task"
)

// taskOperations are those of tasks; agentOperations are those of the agents that work on them.
func (s *Service) taskOperations() []Operation {
	const tasks, one = "/api/tasks", "/api/tasks/{task}"
	return []Operation{
		define(Operation{
			ID: "listTasks", Method: "GET", Path: tasks, Tag: "tasks", Summary: "list tasks, the newest change first",
			Answers: answers(ok("A page of tasks.")),
		}, s.ListTasks),
		define(Operation{
			ID: "createTask", Method: "POST", Path: tasks, Tag: "tasks", Summary: "create a task, with the history that explains it",
			Answers: answers(
				created("The task that was created, now or before with the same `Idempotency-Key`."),
				failing(http.StatusBadRequest, "As for any other call; or a value has the wrong type (`type_error`), a field is missing (`missing_field`), "+
					"or a value is not allowed (`invalid_value`). `param` names the field, or the part of it, such as `conversation_history[2].role`."),
				failing(http.StatusConflict, "The `Idempotency-Key` was used for another request (`idempotency_conflict`), or the conversation of the "+
					"history is archived (`archived`)."),
			),
		}, s.CreateTask),
		define(Operation{
			ID: "getTask", Method: "GET", Path: one, Tag: "tasks", Summary: "show the state of a task",
			Answers: answers(ok("The task, its agents and their findings.")),
		}, s.GetTask),
		define(Operation{
			ID: "showTaskPrompt", Method: "GET", Path: one + "/prompt", Tag: "tasks", Summary: "show the prompt of an agent",
			Answers: answers(ok("The prompt.").as(Media{Type: "text/plain"})),
		}, s.ShowTaskPrompt),
		define(Operation{
			ID: "reportFinding", Method: "POST", Path: one + "/findings", Tag: "tasks", Summary: "report a finding",
			Answers: answers(created("The finding."), failing(http.StatusBadRequest,
				"As for any other call; or a field is missing or not allowed, or the agent works on another task (`invalid_value`).")),
		}, s.ReportFinding),
	}
}

// TaskFilter selects a page of tasks.
type TaskFilter struct {
	// Only tasks in this state.
	State *engine.TaskState `query:"status"`
	UserFilter
	// The maximum number of tasks.
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor
}

// Check refuses unknown states.
func (in *TaskFilter) Check() error {
	if in.State != nil && *in.State == "" {
		return Refuse("status", "status is empty: leave it out for all tasks")
	}
	return oneOf("status", valueOf(in.State), engine.TaskStates...)
}

// ListTasks lists tasks.
//
// The newest change first, without their `task_context` and their findings. With `status`, a page may have fewer tasks
// than `limit`, even none, while `has_more` says that there are further pages.
func (s *Service) ListTasks(ctx context.Context, scope continuo.Scope, in TaskFilter) (page List[engine.ListedTask], err error) {
	query := engine.TaskQuery{Scope: scope, State: valueOf(in.State), Limit: in.Limit}
	if query.Scope.UserID, err = in.user(scope); err != nil {
		return page, err
	}
	var position conversationCursor
	if _, err := in.decode(&position); err != nil {
		return page, err
	}
	query.Before = continuo.ConversationCursor(position)
	found, next, err := s.Engine.Tasks.List(ctx, query)
	if err != nil {
		return page, err
	}
	page.Data = []engine.ListedTask{}
	for _, status := range found {
		page.Data = append(page.Data, TaskRow(status))
	}
	if next != nil {
		page.HasMore, page.NextCursor = true, WriteCursor(conversationCursor(*next))
	}
	return page, nil
}

// TaskRow is a task in a list, without its findings and the texts that explain it.
func TaskRow(status engine.TaskStatus) engine.ListedTask {
	status.Task.Context = task.Context{}
	return status.ListItem
}

// TaskRequest is a request to create a task.
type TaskRequest struct {
	task.Request
	UserID UserID `json:"user_id,omitempty"`
	Once
	// Body is the whole body: package task reads it, so that its errors name the part of a list or of a message.
	Body []byte `body:"raw"`
	// Progress is called after each summary of the history with the number made and the total. Default: none.
	Progress func(made, total int) `json:"-"`
}

// taskFields are the members of a TaskRequest.
var taskFields = bind(reflect.TypeFor[TaskRequest]()).members

// Check reads the body.
func (in *TaskRequest) Check() error {
	var rest rawjson.Object
	err := eachMember(in.Body, func(name string, value json.RawMessage) error {
		switch {
		case name == "user_id":
			if err := json.Unmarshal(value, &in.UserID); err != nil {
				return wrongValue(name, err)
			}
		case !slices.Contains(taskFields, name):
			return Refuse(name, "unknown field %q%s", name, suggestion(name, taskFields))
		default:
			rest.Set(name, value)
		}
		return nil
	})
	if err == nil {
		in.Request, err = task.Parse(rawjson.MustMarshal(rest), task.Limits{})
	}
	return err
}

// CreatedTask is a new task, and warnings about the request.
type CreatedTask struct {
	*engine.TaskStatus
	Warnings []task.Warning `json:"warnings"`
}

// CreateTask creates a task. It deploys no agent.
//
// A task is stored together with the conversation that explains it, reduced to what an agent needs. No agent is deployed
// yet. `warnings` say how a request that was accepted was changed.
//
// A request that is sent again with its `Idempotency-Key` gets the task that it created.
func (s *Service) CreateTask(ctx context.Context, scope continuo.Scope, in TaskRequest) (made CreatedTask, err error) {
	if _, err := scope.Owner(string(in.UserID)); err != nil {
		return made, At("user_id", err)
	}
	request := engine.TaskRequest{Scope: scope, UserID: string(in.UserID), Request: in.Request, Key: string(in.Key), Progress: in.Progress}
	made.TaskStatus, made.Warnings, err = s.Engine.Tasks.Create(ctx, request)
	if errors.Is(err, continuo.ErrArchived) {
		return made, At("conversation_history", err)
	}
	made.Warnings = append([]task.Warning{}, made.Warnings...)
	return made, err
}

// GetTask shows a task.
func (s *Service) GetTask(ctx context.Context, scope continuo.Scope, in TaskPath) (*engine.TaskStatus, error) {
	return s.Engine.Tasks.Get(ctx, scope, in.Task)
}

// ShowTaskPrompt shows the prompt that an agent of a task gets.
func (s *Service) ShowTaskPrompt(ctx context.Context, scope continuo.Scope, in TaskPath) ([]byte, error) {
	status, err := s.GetTask(ctx, scope, in)
	if err != nil {
		return nil, err
	}
	prompt, err := status.Prompt()
	return []byte(prompt), err
}

// FindingRequest is a finding that is reported.
type FindingRequest struct {
	TaskPath
	// The agent, one of those that work on the task.
	AgentID string             `json:"agent_id,omitempty"`
	Type    engine.FindingType `json:"finding_type,omitempty" default:"insight"`
	// How serious the finding is.
	Severity engine.FindingSeverity `json:"severity,omitempty" default:"medium"`
	// The finding; up to 64 KiB.
	Message string `json:"message,omitempty" required:"true" doc:"minLength=1"`
	// Data for programs; up to 64 KiB of JSON.
	Data json.RawMessage `json:"data,omitempty" type:"object"`
}

// ReportFinding stores a finding of an agent, or of another worker on a task.
func (s *Service) ReportFinding(ctx context.Context, scope continuo.Scope, in FindingRequest) (*engine.Finding, error) {
	finding := engine.Finding{AgentID: in.AgentID, Type: in.Type, Severity: in.Severity, Message: in.Message}
	if !rawjson.IsNull(in.Data) {
		finding.Data = in.Data
	}
	return s.Engine.Tasks.Report(ctx, scope, in.Task, finding)
}
