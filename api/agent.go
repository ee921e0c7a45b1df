package api

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// agentOperations are those of agents that work on tasks.
func (s *Service) agentOperations() []Operation {
	const agents, agent = "/api/tasks/{task}/agents", "/api/tasks/{task}/agents/{agent}"
	return []Operation{
		define(Operation{
			ID: "deployAgent", Method: "POST", Path: agents, Tag: "tasks", Summary: "set an agent to work on it",
			Answers: answers(
				created("The agent."),
				failing(400, "There is no such agent (`invalid_value`; `param` is `agent_type`), or as for any other call."),
				failing(429, "The project has as many running agents as it may have (`too_many_agents`), or too many turns (`too_many_turns`)."),
			),
		}, s.DeployAgent),
		define(Operation{
			ID: "getDeployedAgent", Method: "GET", Path: agent, Tag: "tasks", Summary: "show the state of an agent",
			Answers: answers(ok("The agent.")),
		}, s.GetDeployedAgent),
		define(Operation{
			ID: "showAgentOutput", Method: "GET", Path: agent + "/output", Tag: "tasks", Summary: "show what it has said",
			Answers: answers(ok("A part of it, and the state of the agent.")),
		}, s.ShowAgentOutput),
		define(Operation{
			ID: "killAgent", Method: "POST", Path: agent + "/kill", Tag: "tasks", Summary: "end its work permanently",
			Answers: answers(
				accepted("The agent. It is `killed`, or still `running` where its program has not ended yet."),
				failing(409, "It has ended already (`not_running`)."),
			),
		}, s.KillAgent),
	}
}

// TaskPath names a task.
type TaskPath struct {
	// A task's id.
	Task string `path:"task" arg:"task_id" pattern:"^task_"`
}

// AgentPath names an agent that works on a task.
type AgentPath struct {
	TaskPath
	// The id of an agent that works on the task.
	Agent string `path:"agent"`
}

// DeployRequest is a request to start an agent on a task.
type DeployRequest struct {
	TaskPath
	// The agent: a connector, an agent or a model of the settings. The default is the default model.
	Type string `json:"agent_type,omitempty"`
	// A prompt for the agent besides the task.
	Prompt string `json:"prompt,omitempty" maxLength:"100000"`
	Once
}

// DeployAgent starts an agent on a task. The agent continues when the client disconnects.
//
// The agent is sent the task, and works in a turn of its own conversation. **It continues when the client disconnects.**
// `/api/conversations/{id}/turns/{turn}/events` with the `conversation_id` and the `turn_id` of the answer follows it;
// `…/turns/{turn}/approvals` decides on a call that waits for a person.
//
// A request that is sent again with its `Idempotency-Key` gets the agent that it deployed.
func (s *Service) DeployAgent(ctx context.Context, scope continuo.Scope, in DeployRequest) (*engine.DeployedAgent, error) {
	return s.Engine.Tasks.Deploy(ctx, engine.DeployRequest{Scope: scope, TaskID: in.Task, Type: in.Type, Prompt: in.Prompt, Key: string(in.Key)})
}

// GetDeployedAgent shows an agent that works on a task.
func (s *Service) GetDeployedAgent(ctx context.Context, scope continuo.Scope, in AgentPath) (*engine.DeployedAgent, error) {
	agent, err := s.Engine.Tasks.Agent(ctx, scope, in.Agent)
	if errors.Is(err, continuo.ErrNotFound) || err == nil && agent.TaskID != in.Task {
		return nil, fmt.Errorf("agent %q of task %q: %w", Bounded(in.Agent), Bounded(in.Task), continuo.ErrNotFound)
	}
	return agent, err
}

// OutputRequest selects a part of an agent's output.
type OutputRequest struct {
	AgentPath
	// The first character, counted from 0; a negative number counts from the end.
	From int `query:"from" minimum:"-2147483647" default:"0"`
	// The maximum number of characters.
	Limit int `query:"limit" minimum:"1" maximum:"1000000" default:"100000"`
}

// ShowAgentOutput shows a part of an agent's output.
//
// Its text so far, with a line for each tool call. The next part begins at `from` plus the number of characters of
// `output`.
func (s *Service) ShowAgentOutput(ctx context.Context, scope continuo.Scope, in OutputRequest) (*engine.AgentOutput, error) {
	agent, err := s.GetDeployedAgent(ctx, scope, in.AgentPath)
	if err != nil {
		return nil, err
	}
	return s.Engine.Tasks.Output(ctx, scope, agent.ID, in.From, in.Limit)
}

// KillRequest is a request to end an agent's work.
type KillRequest struct {
	AgentPath
	StopRequest
}

// KillAgent ends an agent's work permanently.
//
// And all of its processes, on any host. Its output so far is kept.
func (s *Service) KillAgent(ctx context.Context, scope continuo.Scope, in KillRequest) (*engine.DeployedAgent, error) {
	agent, err := s.GetDeployedAgent(ctx, scope, in.AgentPath)
	if err != nil {
		return nil, err
	}
	return s.Engine.Tasks.Kill(ctx, scope, agent.ID, in.Reason)
}
