package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/task"
)

// TaskRequest asks for a task: work that is given away with the history that explains it.
type TaskRequest struct {
	ProjectID string
	task.Request
	Key string // the idempotency key; "" for none
}

// TaskStatus is a task and how it stands. Its record is the first entry of a conversation of its own; each agent
// that was deployed for it has a conversation too.
type TaskStatus struct {
	ID             string          `json:"task_id"`
	ConversationID string          `json:"conversation_id"`
	ProjectID      string          `json:"-"`
	State          TaskState       `json:"status"`
	Task           task.Task       `json:"task"`
	CreatedAt      time.Time       `json:"created_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
	Agents         []DeployedAgent `json:"agents"`
	Findings       []Finding       `json:"findings"`
}

// TaskState says how far a task or an agent is. A task that nobody was deployed for is queued; otherwise it is as
// its agents are, the newest counting where none is at work.
type TaskState string

// The states of tasks and of agents.
const (
	TaskQueued    TaskState = "queued"
	TaskRunning   TaskState = "running"
	TaskBlocked   TaskState = "blocked" // a call of the agent waits for a person
	TaskCompleted TaskState = "completed"
	TaskFailed    TaskState = "failed"
	TaskKilled    TaskState = "killed"
)

// DeployedAgent is an agent that works on a task. Its work is a turn of its own conversation.
type DeployedAgent struct {
	ID             string    `json:"agent_id"`
	TaskID         string    `json:"task_id"`
	Type           string    `json:"agent_type"` // a connector, an agent or a model of the settings
	ConversationID string    `json:"conversation_id"`
	TurnID         string    `json:"turn_id"`
	State          TaskState `json:"status"`
	Reason         string    `json:"reason,omitempty"` // why it failed
	StartedAt      time.Time `json:"started_at"`
	EndedAt        time.Time `json:"ended_at,omitzero"`
}

// Finding is what an agent reports while it works.
type Finding struct {
	AgentID  string          `json:"agent_id,omitempty"`
	Type     string          `json:"finding_type"` // issue, solution, insight, recommendation, progress
	Severity string          `json:"severity"`     // low, medium, high, critical
	Message  string          `json:"message"`
	Data     json.RawMessage `json:"data,omitempty"` // a JSON object
	Seq      int64           `json:"seq"`            // of its entry in the task's conversation
	At       time.Time       `json:"created_at"`
}

// DeployRequest sets an agent to work on a task.
type DeployRequest struct {
	ProjectID, TaskID string
	// Type names a connector, an agent or a model of the settings; "" is the default model.
	Type string
	// Prompt is added to the task's own. It may be empty.
	Prompt string
	Key    string // the idempotency key; "" for none
}

// AgentOutput is what an agent has said so far.
type AgentOutput struct {
	DeployedAgent
	// Output is its text from the rune From on, as much as was asked for.
	Output string `json:"output"`
	From   int    `json:"from"`
	Total  int    `json:"total"` // characters there are
}

// CreateTask checks a request, reads the conversation that it names, if any, shapes the history, and keeps the task.
// A *task.ValidationError says what is wrong.
func (e *Engine) CreateTask(ctx context.Context, request TaskRequest) (*TaskStatus, []task.Warning, error) {
	return nil, nil, errors.ErrUnsupported
}

// Task finds a task of a project; continuo.ErrNotFound.
func (e *Engine) Task(ctx context.Context, projectID, id string) (*TaskStatus, error) {
	return nil, errors.ErrUnsupported
}

// TaskQuery selects a page of tasks, the newest first.
type TaskQuery struct {
	ProjectID string
	Limit     int // at least 1
	Before    continuo.ConversationCursor // by UpdatedAt
}

// Tasks lists tasks, the newest change first, without their findings.
func (e *Engine) Tasks(ctx context.Context, query TaskQuery) ([]TaskStatus, error) {
	return nil, errors.ErrUnsupported
}

// DeployAgent begins an agent's work on a task, in a conversation of its own that names the task. The work goes on
// when ctx ends. ErrTooManyAgents says that the project has as many at work as the settings allow.
func (e *Engine) DeployAgent(ctx context.Context, request DeployRequest) (*DeployedAgent, error) {
	return nil, errors.ErrUnsupported
}

// Agent finds an agent that was deployed; continuo.ErrNotFound.
func (e *Engine) Agent(ctx context.Context, projectID, id string) (*DeployedAgent, error) {
	return nil, errors.ErrUnsupported
}

// AgentOutput reads what an agent has said, from a character on, at most limit characters (0: 100 000); from below 0
// counts from the end.
func (e *Engine) AgentOutput(ctx context.Context, projectID, id string, from, limit int) (*AgentOutput, error) {
	return nil, errors.ErrUnsupported
}

// KillAgent ends an agent's work for good, with all of its processes, wherever it runs; continuo.ErrNotRunning.
func (e *Engine) KillAgent(ctx context.Context, projectID, id, reason string) (*DeployedAgent, error) {
	return nil, errors.ErrUnsupported
}

// ReportFinding keeps a finding as an entry of the task's conversation.
func (e *Engine) ReportFinding(ctx context.Context, projectID, taskID string, finding Finding) (*Finding, error) {
	return nil, errors.ErrUnsupported
}

// ErrTooManyAgents says that a project has as many agents at work as Options.MaxAgents allows.
var ErrTooManyAgents = errors.New("too many agents are at work")
