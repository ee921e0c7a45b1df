package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/start"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/turn"
)

// maxStarts bounds how many processes begin or resume one agent's work, one after another.
const maxStarts = 5

// deployment is the deployment of an agent, as recorded in the task's log.
type deployment struct {
	taskID, agentID, agentType string
	task                       task.Task
	prompt                     string
}

// text is the first message of an agent's work.
func (o *deployment) text() (string, error) {
	status := Status{ListItem: ListItem{Task: o.task}}
	message, err := status.Prompt()
	if err != nil {
		return "", err
	}
	if more := strings.TrimSpace(o.prompt); more != "" {
		message += "\n" + more + "\n"
	}
	return message + "\n" + reportRules(o.taskID, o.agentID), nil
}

// deploymentOf reads the deployment of an agent; nil where it was not recorded.
func (tk *Tasks) deploymentOf(ctx context.Context, agent continuo.Conversation) (*deployment, error) {
	var link agentLink
	_ = json.Unmarshal(agent.Metadata, &link) // metadata that a person has changed names no task
	id := agentPrefix + strings.TrimPrefix(agent.ID, conversationPrefix)
	conversation, err := tk.ofKind(ctx, continuo.Scope{ProjectID: agent.ProjectID}, link.TaskID, taskPrefix, continuo.KindTask)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := &deployment{taskID: link.TaskID, agentID: id}
	for entry, err := range tk.log.Read(ctx, conversation, continuo.Range{}) {
		if err != nil {
			return nil, err
		}
		switch event := entry.TaskEvent; {
		case event == nil || entry.Redacted != nil:
		case event.Kind == continuo.TaskCreated:
			if err := json.Unmarshal(event.Task, &found.task); err != nil {
				return nil, fmt.Errorf("task %s: %w", link.TaskID, err)
			}
		case event.Kind == continuo.TaskDeployed && event.AgentID == id:
			found.agentType, found.prompt = event.AgentType, event.Prompt
			return found, nil
		}
	}
	return nil, nil
}

// TakeUp decides on a running turn whose process is gone: an agent's work is resumed, in this process or in another
// one with Options.TakeUp. Other turns are closed.
func (tk *Tasks) TakeUp(ctx context.Context, seen continuo.Turn) (turn.Recovery, error) {
	if seen.ID != workTurnID(seen.ConversationID) {
		return turn.RecoveryClose, nil
	}
	conversation, err := tk.log.Conversation(ctx, seen.ConversationID)
	if errors.Is(err, continuo.ErrNotFound) {
		return turn.RecoveryClose, nil
	}
	if err != nil {
		return turn.RecoveryLeave, err
	}
	deployment, err := tk.deploymentOf(ctx, conversation)
	if err != nil {
		return turn.RecoveryLeave, err
	}
	if deployment == nil { // the deployment was not recorded, or its task was deleted
		return turn.RecoveryClose, nil
	}
	if !tk.options.TakeUp {
		return turn.RecoveryLeave, nil
	}
	return tk.takeUpAgent(ctx, conversation, seen, deployment)
}

// takeUpAgent resumes an agent's work in this process, unless the project has as many agents or turns as it may.
func (tk *Tasks) takeUpAgent(ctx context.Context, conversation continuo.Conversation, seen continuo.Turn, deployment *deployment) (turn.Recovery, error) {
	c, err := tk.chooseAgent(deployment.agentType)
	message, unsaid := deployment.text()
	if err != nil || unsaid != nil { // the type is no longer in the settings, or the task was redacted
		return turn.RecoveryClose, nil //nolint:nilerr // the turn's end says that it broke off
	}
	project := conversation.ProjectID
	if tk.agents.Enter(project) != nil {
		return turn.RecoveryLeave, nil
	}
	works := tk.metrics.AgentWorks()
	taken, err := tk.turns.TakeOver(ctx, start.Takeover{
		Conversation: conversation, Turn: seen, MaxStarts: maxStarts,
		Prepare: func(started bool) (*turn.Runner, turn.Input) {
			tk.options.Logger.WarnContext(ctx, "agent_resumed", "agent_id", deployment.agentID, "task_id", deployment.taskID)
			input := turn.Input{Message: continuo.Text(message), Resume: started, Mode: c.Mode, AgentID: c.Agent, Leave: true}
			return tk.worker(c, deployment.taskID, deployment.agentID), input
		},
		Ended: func() { works(); tk.agents.Leave(project) },
	})
	if !taken {
		return turn.RecoveryLeave, nil
	}
	return turn.RecoveryTaken, err
}

// worker makes the runner of an agent's work.
func (tk *Tasks) worker(c catalog.ResolvedTurn, taskID, agentID string) *turn.Runner {
	runner := tk.catalog.Runner(c)
	runner.Limits.Turn = tk.options.AgentTimeout
	runner.Limits.OverTime = turn.OverTime("the work", tk.options.AgentTimeout, "handoff.agent_timeout")
	if connector, ok := runner.Model.(Connector); ok {
		runner.Model = connector.AtWork(taskID, agentID)
	}
	return runner
}
