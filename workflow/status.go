package workflow

import (
	"encoding/json"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Status is the state of a run, for people and programs.
type Status struct {
	WorkflowName string          `json:"workflow_name"` // for people
	Inputs       json.RawMessage `json:"inputs,omitempty" type:"object"`
	Outputs      json.RawMessage `json:"outputs,omitempty" type:"object"` // of a run that has finished
	Reason       string          `json:"reason,omitempty"`                // why it failed or was stopped
	Nodes        []NodeStatus    `json:"nodes"`                           // in the order of the file
}

// NodeStatus is the state of a node of a run.
type NodeStatus struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // for people
	Agent   string    `json:"agent,omitempty"`
	State   NodeState `json:"state"`
	Visit   int       `json:"visit" minimum:"0"`         // counts the run's visits of the node; 0 before the first
	Attempt int       `json:"attempt" minimum:"0"`       // counts the turns of the visit; 0 before the first
	Seq     int64     `json:"seq,omitempty" minimum:"1"` // of the visit's first entry
	// Outputs are those of its newest finished visit.
	Outputs  json.RawMessage `json:"outputs,omitempty" type:"object"`
	Question string          `json:"question,omitempty"` // of an approval
	// Repairs are the corrections of values in the answer that were not exactly as declared; Outputs are of that answer.
	Repairs []string `json:"repairs,omitempty"`
	// Reason is why its last answer was refused, why it failed, or why it waits for a retry at RetryAt.
	Reason string `json:"reason,omitempty"`
	// RetryAt is the time of the next attempt, in the state retrying.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Refused counts the refused answers of its newest visit since the run was last resumed.
	Refused int `json:"refused,omitempty" minimum:"1"`
	// Branch is the conversation of its newest visit, a fork of the run's; absent where it is the run's own.
	Branch string `json:"branch,omitempty"`
	// TurnID is its running turn, in Branch or in the run's conversation; absent for none.
	TurnID string `json:"turn_id,omitempty"`
	// WaitingFor are its tool calls that wait for a person's decision; absent for none.
	WaitingFor []WaitingCall `json:"waiting_for,omitempty"`
}

// WaitingCall is a tool call that waits for a person's decision.
type WaitingCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`      // the tool's own
	Arguments string `json:"arguments"` // as the model wrote them; possibly invalid JSON
}

// NodeState is the state of a node. A node is waiting for a person's decision; it is failed when the run failed or was
// stopped in it, and skipped when no edge led to it or a person skipped it. A retrying one is tried again later.
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
