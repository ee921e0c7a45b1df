package continuo

import "encoding/json"

// TaskEvent is an event of a task, recorded on an entry of its conversation: the task itself, a deployed agent, or a
// finding. Only tasks write them.
type TaskEvent struct {
	Kind TaskEventKind `json:"kind"`
	// Task is the task in the encoding of package task; of TaskCreated.
	Task json.RawMessage `json:"task,omitempty"`
	// AgentID and AgentType name a deployed agent; of TaskDeployed, and of TaskFound when an agent reported it.
	AgentID   string `json:"agent_id,omitempty"`
	AgentType string `json:"agent_type,omitempty"`
	// Prompt is the agent's instruction in addition to the task; of TaskDeployed.
	Prompt string `json:"prompt,omitempty"`
	// Finding is the finding, a JSON object; of TaskFound.
	Finding json.RawMessage `json:"finding,omitempty"`
}

// TaskEventKind is the kind of a TaskEvent.
type TaskEventKind string

// The kinds of task events.
const (
	TaskCreated  TaskEventKind = "task_created"
	TaskDeployed TaskEventKind = "agent_deployed"
	TaskFound    TaskEventKind = "finding"
)
