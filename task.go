package continuo

import "encoding/json"

// TaskEvent is what a task records on an entry of its conversation: what is to be done, who was set to work on it,
// and what they found. Only tasks write them.
type TaskEvent struct {
	Kind TaskEventKind `json:"kind"`
	// Task is the task as package task writes it; of TaskCreated.
	Task json.RawMessage `json:"task,omitempty"`
	// AgentID and AgentType name an agent that was deployed; of TaskDeployed, and of TaskFound where one found it.
	AgentID   string `json:"agent_id,omitempty"`
	AgentType string `json:"agent_type,omitempty"`
	// Prompt is what the agent is told besides the task; of TaskDeployed.
	Prompt string `json:"prompt,omitempty"`
	// Finding is what was found, a JSON object; of TaskFound.
	Finding json.RawMessage `json:"finding,omitempty"`
}

// TaskEventKind says what a TaskEvent tells.
type TaskEventKind string

// The kinds of task events.
const (
	TaskCreated  TaskEventKind = "task_created"
	TaskDeployed TaskEventKind = "agent_deployed"
	TaskFound    TaskEventKind = "finding"
)
