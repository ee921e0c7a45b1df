package workflow

import (
	"encoding/json"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Status is how a run stands, for people and programs.
type Status struct {
	WorkflowName string          `json:"workflow_name"`
	Inputs       json.RawMessage `json:"inputs,omitempty"`
	Outputs      json.RawMessage `json:"outputs,omitempty"` // of a run that has finished
	Reason       string          `json:"reason,omitempty"`  // why it failed or was stopped
	Nodes        []NodeStatus    `json:"nodes"`             // in the order of the file
}

// NodeStatus is how a node of a run stands.
type NodeStatus struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Agent    string          `json:"agent,omitempty"`
	State    NodeState       `json:"state"`
	Visit    int             `json:"visit"`              // 0 before the first
	Attempt  int             `json:"attempt"`            // of the visit; 0 before the first
	Seq      int64           `json:"seq,omitempty"`      // of the entry that the visit began with
	Outputs  json.RawMessage `json:"outputs,omitempty"`  // of its newest finished visit
	Question string          `json:"question,omitempty"` // of an approval
	// Repairs say what was read of the answer that Outputs are of although it was not exactly what was asked for.
	Repairs []string `json:"repairs,omitempty"`
	// Reason is why its last answer was refused, why it failed, or why it waits until RetryAt to be tried again.
	Reason  string    `json:"reason,omitempty"`
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Refused counts the answers of its newest visit that were refused since somebody resumed the run.
	Refused int `json:"refused,omitempty"`
	// Branch is the conversation of its newest visit, where that is not the run's own.
	Branch string `json:"branch,omitempty"`
	// TurnID is its turn that is under way; only who looks at the turns knows it.
	TurnID string `json:"turn_id,omitempty"`
	// WaitingFor are its calls of tools that wait for a person's decision; likewise.
	WaitingFor []WaitingCall `json:"waiting_for,omitempty"`
}

// WaitingCall is a call of a tool that waits for a person's decision.
type WaitingCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"` // the tool's own
	Arguments string `json:"arguments"`
}

// NodeState says how far a node is.
type NodeState string

// The states of a node.
const (
	NodePending  NodeState = "pending"
	NodeRunning  NodeState = "running"
	NodeRetrying NodeState = "retrying" // it broke off and waits until RetryAt
	NodeWaiting  NodeState = "waiting"  // for a person
	NodeFinished NodeState = "finished"
	NodeFailed   NodeState = "failed" // the run broke off or was stopped in it
	NodeSkipped  NodeState = "skipped"
)

// Status tells how a run stands.
func (s *State) Status() Status {
	status := Status{WorkflowName: s.Workflow.Name, Inputs: canonical(s.inputs), Reason: s.Reason}
	if s.outputs != nil {
		status.Outputs = canonical(s.outputs)
	}
	for i := range s.Workflow.Nodes {
		node := &s.Workflow.Nodes[i]
		progress := s.nodes[node.ID]
		told := NodeStatus{
			ID: node.ID, Name: node.Name, Agent: node.Agent, State: progress.state, Visit: progress.visit, Attempt: progress.attempt,
			Seq: progress.began, Reason: progress.reason, Refused: progress.refused, Branch: progress.branch,
		}
		if progress.outputs != nil {
			told.Outputs, told.Repairs = canonical(progress.outputs), progress.repairs
		}
		if node.Approval != nil {
			told.Question = node.Approval.Question
		}
		if progress.state == NodeRunning && !progress.delayed.IsZero() {
			told.State, told.RetryAt = NodeRetrying, progress.delayed
		}
		if progress.state == NodeRunning && s.Run != continuo.RunRunning {
			told.State = NodeFailed
		}
		if progress.state == NodeWaiting && s.Run == continuo.RunCancelled {
			told.State = NodeFailed // nobody can decide any more
		}
		status.Nodes = append(status.Nodes, told)
	}
	return status
}
