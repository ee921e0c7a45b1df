package workflow

import (
	"encoding/json"

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
	Reason   string          `json:"reason,omitempty"`   // why its last answer was refused
}

// NodeState says how far a node is.
type NodeState string

// The states of a node.
const (
	NodePending  NodeState = "pending"
	NodeRunning  NodeState = "running"
	NodeWaiting  NodeState = "waiting" // for a person
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
			Seq: progress.began, Reason: progress.reason,
		}
		if progress.outputs != nil {
			told.Outputs = canonical(progress.outputs)
		}
		if node.Approval != nil {
			told.Question = node.Approval.Question
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
