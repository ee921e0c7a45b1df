package engine

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// maxDeployed bounds how many agents work on one task, one after another or at once.
const maxDeployed = 100

// agentLink is the metadata of an agent's conversation: what it works on, as what, and why somebody ended it.
type agentLink struct {
	TaskID     string `json:"task_id"`
	AgentType  string `json:"agent_type"`
	KillReason string `json:"kill_reason,omitempty"`
	// Asked is a hash of what was asked for, to tell a retry from another request with the same key.
	Asked string `json:"asked,omitempty"`
}

// DeployAgent begins an agent's work on a task, in a conversation of its own that names the task. The work goes on
// when ctx ends. ErrTooManyAgents says that the project has as many at work as the settings allow.
func (e *Engine) DeployAgent(ctx context.Context, request DeployRequest) (*DeployedAgent, error) {
	status, err := e.Task(ctx, request.Scope, request.TaskID)
	if err != nil {
		return nil, err
	}
	if _, err := status.Prompt(); err != nil {
		return nil, err
	}
	if len(status.Agents) >= maxDeployed {
		return nil, &task.ValidationError{Type: task.InvalidValue, Field: "task_id", Index: -1, Message: fmt.Sprintf("%d agents were set to work on the task already, as many as a task may have", maxDeployed)}
	}
	chosen, err := e.chooseAgent(request.Type)
	if err != nil {
		return nil, err
	}
	if e.isClosed() {
		return nil, ErrClosing
	}
	link := agentLink{TaskID: status.ID, AgentType: cmp.Or(request.Type, chosen.model)}
	if request.Key != "" {
		link.Asked = hashOf(status.ID + "\n" + request.Type + "\n" + request.Prompt)
	}
	if begun, err := e.begunAgent(ctx, status.Scope, request.Key, link); begun != nil || err != nil {
		return begun, err
	}
	if err := e.agents.enter(request.Scope.ProjectID); err != nil {
		return nil, fmt.Errorf("%w: the project may have %d at once; wait until one has ended, or end one", ErrTooManyAgents, e.agents.most)
	}
	id, err := e.putToWork(ctx, request, chosen, status, link)
	if err != nil {
		return nil, err
	}
	return e.Agent(ctx, request.Scope, id)
}

// begunAgent gives the agent that a request's key has set to work before; nil where there is none.
func (e *Engine) begunAgent(ctx context.Context, scope continuo.Scope, key string, link agentLink) (*DeployedAgent, error) {
	if key == "" {
		return nil, nil
	}
	conversation, err := e.Log.Find(ctx, scope, keyOfKind(scope, continuo.KindAgent, key))
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var begun agentLink
	if err := json.Unmarshal(conversation.Metadata, &begun); err != nil || begun.Asked != link.Asked {
		return nil, fmt.Errorf("%w: it set another agent to work", continuo.ErrKeyReused)
	}
	agent, work, err := e.agentOf(ctx, conversation)
	if work == nil && err == nil {
		return nil, nil // its program ended before it had begun
	}
	return agent, err
}

// chooseAgent looks up what an agent's type names: an agent of the settings, or a model, connectors included.
func (e *Engine) chooseAgent(name string) (resolvedTurn, error) {
	c := turnChoice{mode: continuo.ModeAgent, usualView: string(continuo.ModeAgent), alone: true}
	if _, ok := e.options.Agents[name]; ok {
		c.agent = name
	} else if _, ok := e.options.Models[name]; ok || name == "" {
		c.model = name
	} else {
		known := e.Models()
		for _, agent := range e.Agents() {
			known = append(known, agent.ID)
		}
		return resolvedTurn{}, &task.ValidationError{
			Type: task.InvalidValue, Field: "agent_type", Index: -1,
			Message: fmt.Sprintf("there is no agent_type '%s'; known are %s%s", shorten(name, 60), strings.Join(known, ", "), e.demoNote(known)),
		}
	}
	found, err := e.resolve(c)
	found.view.Limits = window.Limits{} // the prompt is shown whole, or the turn says that it does not fit
	return found, err
}

// demoNote says what to do where nothing but the demo model is known.
func (e *Engine) demoNote(known []string) string {
	if len(known) > 1 || !e.DefaultModel().Demo {
		return ""
	}
	return ", the built-in model, which does no real work; agents, connectors and models stand in continuo.yaml"
}

// putToWork begins an agent's conversation and its turn, and records the deployment in between: what is refused leaves
// nothing. The agent leaves the quota when its work has ended.
func (e *Engine) putToWork(ctx context.Context, request DeployRequest, c resolvedTurn, status *TaskStatus, link agentLink) (id string, err error) {
	ctx = context.WithoutCancel(ctx) // a client that leaves must not leave half of it
	working := false
	defer func() {
		if !working {
			e.agents.leave(request.Scope.ProjectID)
		}
	}()
	conversation, err := e.begunOnce(ctx, continuo.Conversation{
		ProjectID: status.Scope.ProjectID, UserID: status.Scope.UserID, Kind: continuo.KindAgent, ActiveMode: continuo.ModeAgent, ActiveAgent: c.agent,
		Title: shorten(link.AgentType, 40) + " on " + status.ID, Metadata: rawjson.MustMarshal(link),
	}, request.Key)
	if err != nil {
		return "", err
	}
	id = agentPrefix + strings.TrimPrefix(conversation.ID, conversationPrefix)
	wanted := continuo.Turn{ID: workTurnID(conversation.ID), ConversationID: conversation.ID}
	wanted.Mode, wanted.AgentID, wanted.View, wanted.Model = c.mode, c.agent, c.viewName, c.model
	order := &order{taskID: status.ID, agentID: id, agentType: link.AgentType, task: status.Task, prompt: request.Prompt}
	message, err := order.text()
	if err != nil {
		return "", err
	}
	begin := func(context.Context, continuo.Conversation) (*turn.Runner, turn.Input, error) { // once nothing refuses the work any more
		input := turn.Input{Message: continuo.Text(message), Mode: c.mode, AgentID: c.agent, Leave: true}
		return e.worker(c, status.ID, id), input, e.recordDeployment(ctx, status, order)
	}
	reading, stop := context.WithCancel(withSession(ctx, conversation)) // until the work ends, or is left because this process does
	context.AfterFunc(e.closing, stop)
	chat, err := e.startTurn(reading, conversation.ProjectID, wanted, Reject, true, begin)
	if errors.Is(err, continuo.ErrExists) || errors.Is(err, continuo.ErrBusy) { // another call with the key was faster
		return id, nil
	}
	if err != nil {
		return "", errors.Join(err, e.Log.Delete(ctx, conversation.ID))
	}
	working = true
	if err := e.hasStarted(conversation.ProjectID, chat); err != nil {
		return "", errors.Join(err, e.Log.Delete(ctx, conversation.ID))
	}
	return id, nil
}

// hasStarted returns when what an agent is to do stands in the log, so that its work is taken up whatever becomes of
// this process, or says why it does not. The agent leaves the quota when its work has ended.
func (e *Engine) hasStarted(project string, chat *Chat) error {
	works := e.metrics.AgentWorks()
	started := make(chan error, 1)
	go func() {
		defer e.agents.leave(project)
		defer works()
		for _, err := range chat.Events { // what comes of it stands in the agent's conversation
			select {
			case started <- err:
			default:
			}
		}
		close(started)
	}()
	return <-started
}

// Connector is a model that is a program.
type Connector interface {
	model.Model
	// AtWork is the model for an agent's work on a task: its program knows both ids, and has the time that such work has.
	AtWork(taskID, agentID string) model.Model
}

// reportText tells an agent who it is, and how it reports what it finds.
//
//go:embed task_agent.md
var reportText string

// reportRules is the end of an agent's prompt.
func reportRules(taskID, agentID string) string {
	return strings.NewReplacer("{{task_id}}", taskID, "{{agent_id}}", agentID).Replace(reportText)
}

// recordDeployment keeps, as an entry of the task's conversation, that an agent was set to work, once for each agent, and
// counts it for lists.
func (e *Engine) recordDeployment(ctx context.Context, status *TaskStatus, order *order) error {
	id, agentType := order.agentID, order.agentType
	event := continuo.TaskEvent{Kind: continuo.TaskDeployed, AgentID: id, AgentType: agentType, Prompt: order.prompt}
	stored, err := e.Log.Append(ctx, status.ConversationID, []continuo.Entry{{
		Role: continuo.System, Hidden: true, PartType: taskEventPart, Content: continuo.Text(fmt.Sprintf("The agent %s (%s) was set to work.", id, agentType)), TaskEvent: &event,
	}}, continuo.AppendOptions{Key: "deployed/" + id, Identity: id})
	if err != nil {
		return err
	}
	_, err = e.Log.AdvanceMark(ctx, status.ConversationID, deploymentsMark, continuo.Mark{Seq: stored[0].Seq, Part: int64(len(status.Agents)) + 1})
	return err
}

// workTurnID is the id of the turn that is an agent's work; other turns of its conversation are not.
func workTurnID(conversationID string) string {
	return "turn_" + strings.TrimPrefix(conversationID, conversationPrefix) + "_work"
}

// Agent finds an agent that was deployed; continuo.ErrNotFound.
func (e *Engine) Agent(ctx context.Context, scope continuo.Scope, id string) (*DeployedAgent, error) {
	conversation, err := e.ofKind(ctx, scope, id, agentPrefix, continuo.KindAgent)
	if err != nil {
		return nil, err
	}
	agent, _, err := e.agentOf(ctx, conversation)
	if err != nil || !isAtWork(agent.State) {
		return agent, err
	}
	_, err = e.ofKind(ctx, scope, agent.TaskID, taskPrefix, continuo.KindTask)
	if errors.Is(err, continuo.ErrNotFound) { // nothing else tells of it any more
		agent.Reason, err = "its task was deleted", nil
	}
	return agent, err
}

// agentOf tells how an agent stands, by the turn of its conversation; nil for one that has not begun.
func (e *Engine) agentOf(ctx context.Context, conversation continuo.Conversation) (*DeployedAgent, *continuo.Turn, error) {
	var link agentLink
	_ = json.Unmarshal(conversation.Metadata, &link) // a person may have written something else: the task still names it
	agent := &DeployedAgent{
		ID: agentPrefix + strings.TrimPrefix(conversation.ID, conversationPrefix), TaskID: link.TaskID, Type: link.AgentType,
		ConversationID: conversation.ID, State: TaskQueued, StartedAt: conversation.CreatedAt,
	}
	if !conversation.ArchivedAt.IsZero() { // its turn is in the archive
		agent.State, agent.Reason, agent.EndedAt = TaskCompleted, "archived", conversation.ArchivedAt
		return agent, nil, nil
	}
	work, err := e.Log.Turns().Turn(ctx, conversation.ID, workTurnID(conversation.ID))
	if errors.Is(err, continuo.ErrNotFound) || err == nil && work.State == continuo.TurnVoid {
		return agent, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if work.State == continuo.TurnRunning {
		if work, err = e.keeper.RecoverIfAbandoned(ctx, work); err != nil {
			return nil, nil, err
		}
	}
	agent.TurnID, agent.StartedAt, agent.EndedAt = work.ID, work.StartedAt, work.EndedAt
	agent.State, err = e.stateOfWork(ctx, work)
	switch {
	case err != nil:
	case agent.State == TaskRunning && e.keeper.Abandoned(work):
		agent.State, agent.Reason = TaskQueued, leftReason
	case agent.State == TaskFailed:
		agent.Reason, err = e.whyFailed(ctx, work)
	case agent.State == TaskKilled:
		agent.Reason = link.KillReason
	}
	return agent, &work, err
}

// leftReason says that an agent's process is gone, and that this one does not go on with its work.
const leftReason = "its program has ended; continuo serve or continuo mcp with the same store goes on with it"

// stateOfWork is the state of an agent whose work is a turn.
func (e *Engine) stateOfWork(ctx context.Context, work continuo.Turn) (TaskState, error) {
	switch {
	case work.State == continuo.TurnFinished:
		return TaskCompleted, nil
	case work.State == continuo.TurnFailed && work.Reason == continuo.ReasonCancelled:
		return TaskKilled, nil
	case work.State == continuo.TurnFailed:
		return TaskFailed, nil
	case work.State == continuo.TurnVoid:
		return TaskQueued, nil
	}
	waiting, err := e.Waiting(ctx, work)
	if err == nil && len(waiting) > 0 {
		return TaskBlocked, nil
	}
	return TaskRunning, err
}

// whyFailed is what the newest answer of a failed turn says.
func (e *Engine) whyFailed(ctx context.Context, work continuo.Turn) (string, error) {
	failure, err := e.failureOf(ctx, work)
	if err != nil || failure == nil {
		return string(work.Reason), err
	}
	return failure.Message, nil
}

// maxOutput is how many characters AgentOutput reads where no limit is given.
const maxOutput = 100_000

// AgentOutput reads what an agent has said, from a character on, at most limit characters (0: 100 000); from below 0
// counts from the end.
func (e *Engine) AgentOutput(ctx context.Context, scope continuo.Scope, id string, from, limit int) (*AgentOutput, error) {
	conversation, err := e.ofKind(ctx, scope, id, agentPrefix, continuo.KindAgent)
	if err != nil {
		return nil, err
	}
	agent, said, err := e.heard(ctx, conversation)
	if err != nil {
		return nil, err
	}
	all := []rune(said)
	if from < 0 {
		from = max(0, len(all)+from)
	}
	from = min(from, len(all))
	to := min(len(all), from+cmp.Or(max(limit, 0), maxOutput))
	return &AgentOutput{DeployedAgent: *agent, Output: string(all[from:to]), From: from, Total: len(all)}, nil
}

// heard is how an agent stands, and everything that it has said by then: its answers and what has come of the one under
// way. Where an entry came while the turn was looked at, which may be the answer that was under way, both are read again.
func (e *Engine) heard(ctx context.Context, conversation continuo.Conversation) (*DeployedAgent, string, error) {
	for {
		agent, work, err := e.agentOf(ctx, conversation)
		if err != nil {
			return nil, "", err
		}
		partial := ""
		if work != nil && work.State == continuo.TurnRunning {
			if partial, err = e.keeper.Partial(ctx, *work); err != nil {
				return nil, "", err
			}
		}
		now, err := e.Log.Conversation(ctx, conversation.ID)
		if err != nil {
			return nil, "", err
		}
		if now.LastSeq == conversation.LastSeq {
			said, err := e.saidIn(ctx, now, partial)
			return agent, said, err
		}
		conversation = now
	}
}

// saidIn is what the answers of an agent's conversation say, with a line for each call, and then what has come of the one
// under way.
func (e *Engine) saidIn(ctx context.Context, conversation continuo.Conversation, partial string) (string, error) {
	var pieces []string
	say := func(text string, calls []continuo.ToolCall) {
		if text != "" {
			pieces = append(pieces, text)
		}
		for _, call := range calls {
			pieces = append(pieces, fmt.Sprintf("[calls %s %s]", call.Name, shorten(call.Arguments, 200)))
		}
	}
	for entry, err := range e.Log.Read(ctx, conversation, continuo.Range{}) {
		if err != nil {
			return "", err
		}
		if entry.Role == continuo.Assistant {
			say(entry.Content.String(), entry.ToolCalls)
		}
	}
	say(partial, nil)
	return strings.Join(pieces, "\n\n"), nil
}

// KillAgent ends an agent's work for good, with all of its processes, wherever it runs; continuo.ErrNotRunning.
func (e *Engine) KillAgent(ctx context.Context, scope continuo.Scope, id, reason string) (*DeployedAgent, error) {
	conversation, err := e.ofKind(ctx, scope, id, agentPrefix, continuo.KindAgent)
	if err != nil {
		return nil, err
	}
	agent, work, err := e.agentOf(ctx, conversation)
	if err != nil {
		return nil, err
	}
	if work == nil || work.State != continuo.TurnRunning {
		return nil, fmt.Errorf("agent %s: %w: it is %s", id, continuo.ErrNotRunning, agent.State)
	}
	reason = shorten(strings.ToValidUTF8(reason, "\uFFFD"), maxKillReason)
	if err := e.keepKillReason(ctx, conversation, reason); err != nil {
		return nil, err
	}
	if err := e.endWork(ctx, *work); err != nil {
		return nil, err
	}
	attributes := []any{"agent_id", id, "task_id", agent.TaskID}
	if e.options.LogText {
		attributes = append(attributes, "reason", reason)
	}
	e.options.Logger.InfoContext(ctx, "agent_killed", attributes...)
	waiting, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	for range e.keeper.Follow(waiting, work.ConversationID, work.ID, 0) { // it takes a moment to end
	}
	return e.Agent(ctx, scope, id)
}

// endWork cancels an agent's work, or closes it where no process has it.
func (e *Engine) endWork(ctx context.Context, work continuo.Turn) error {
	if e.keeper.Abandoned(work) {
		_, err := e.keeper.Close(ctx, work)
		return err
	}
	return e.Cancel(ctx, work)
}

// maxKillReason bounds why an agent was killed, in characters.
const maxKillReason = 500

// keepKillReason keeps why an agent is killed, beside whatever else its conversation's metadata says.
func (e *Engine) keepKillReason(ctx context.Context, conversation continuo.Conversation, reason string) error {
	if reason == "" {
		return nil
	}
	metadata, _ := rawjson.ParseObject(conversation.Metadata) // the log keeps nothing but objects
	metadata.Set("kill_reason", rawjson.MustMarshal(reason))
	_, err := e.Log.Update(ctx, conversation.ID, continuo.ConversationChange{Metadata: metadata.Raw()})
	return err
}

// killPatience is how long KillAgent waits for the end of the work.
const killPatience = 10 * time.Second

// summarizer makes summaries for histories: the default model, or, where that is the built-in one, nobody.
func (e *Engine) summarizer() task.Summarizer {
	upstream := e.options.Models[e.options.Default]
	if upstream.Model.Info().Demo {
		return nil
	}
	return summarizer{upstream, e.options.Logger}
}

// ErrTooManyAgents says that a project has as many agents at work as Options.MaxAgents allows.
var ErrTooManyAgents = errors.New("too many agents are at work")
