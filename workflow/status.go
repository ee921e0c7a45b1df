package workflow

import (
	"encoding/json"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Status is the state of a run, for people and programs.
type Status struct {
	WorkflowName string          `json:"workflow_name"`
	Inputs       json.RawMessage `json:"inputs,omitempty"`
	Outputs      json.RawMessage `json:"outputs,omitempty"` // of a run that has finished
	Reason       string          `json:"reason,omitempty"`  // why it failed or was stopped
	Nodes        []NodeStatus    `json:"nodes"`             // in the order of the file
}

// NodeStatus is the state of a node of a run.
type NodeStatus struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Agent    string          `json:"agent,omitempty"`
	State    NodeState       `json:"state"`
	Visit    int             `json:"visit"`              // 0 before the first
	Attempt  int             `json:"attempt"`            // of the visit; 0 before the first
	Seq      int64           `json:"seq,omitempty"`      // of the visit's first entry
	Outputs  json.RawMessage `json:"outputs,omitempty"`  // of its newest finished visit
	Question string          `json:"question,omitempty"` // of an approval
	// Repairs are the corrections of values in the answer that were not exactly as declared; Outputs are of that answer.
	Repairs []string `json:"repairs,omitempty"`
	// Reason is why its last answer was refused, why it failed, or why it waits for a retry at RetryAt.
	Reason  string    `json:"reason,omitempty"`
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Refused counts the refused answers of its newest visit since the run was last resumed.
	Refused int `json:"refused,omitempty"`
	// Branch is the conversation of its newest visit, where that is not the run's own.
	Branch string `json:"branch,omitempty"`
	// TurnID is its running turn; it is set by callers that read the run's turns.
	TurnID string `json:"turn_id,omitempty"`
	// WaitingFor are its tool calls that wait for a person's decision; set likewise.
	WaitingFor []WaitingCall `json:"waiting_for,omitempty"`
}

// WaitingCall is a tool call that waits for a person's decision.
type WaitingCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"` // the tool's own
	Arguments string `json:"arguments"`
}

// NodeState is the state of a node.
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

// Status returns the state of a run.
func (s *State) Status() Status {
	status := Status{WorkflowName: s.Workflow.Name, Inputs: canonical(s.inputs), Reason: s.Reason}
	if s.outputs != nil {
		status.Outputs = canonical(s.outputs)
	}
	for i := range s.Workflow.Nodes {
		node := &s.Workflow.Nodes[i]
		progress := s.nodes[node.ID]
		nodeStatus := NodeStatus{
			ID: node.ID, Name: node.Name, Agent: node.Agent, State: progress.state, Visit: progress.visit, Attempt: progress.attempt,
			Seq: progress.began, Reason: progress.reason, Refused: progress.refused, Branch: progress.branch,
		}
		if progress.outputs != nil {
			nodeStatus.Outputs, nodeStatus.Repairs = canonical(progress.outputs), progress.repairs
		}
		if node.Approval != nil {
			nodeStatus.Question = node.Approval.Question
		}
		if progress.state == NodeRunning && !progress.delayed.IsZero() {
			nodeStatus.State, nodeStatus.RetryAt = NodeRetrying, progress.delayed
		}
		if progress.state == NodeRunning && s.Run != continuo.RunRunning {
			nodeStatus.State = NodeFailed
		}
		if progress.state == NodeWaiting && s.Run == continuo.RunCancelled {
			nodeStatus.State = NodeFailed // no decision is possible any more
		}
		status.Nodes = append(status.Nodes, nodeStatus)
	}
	return status
}
