package tasks

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
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/start"
	"github.com/continuo-log/continuo/engine/summary"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// maxDeployed bounds the agents of one task, one after another or at once.
const maxDeployed = 100

// agentLink is the metadata of an agent's conversation: its task, its type, and the reason for which it was killed.
type agentLink struct {
	TaskID     string `json:"task_id"`
	AgentType  string `json:"agent_type"`
	KillReason string `json:"kill_reason,omitempty"`
	// Asked is a hash of the request, to distinguish a retry from another request with the same key.
	Asked string `json:"asked,omitempty"`
}

// Deploy starts an agent's work on a task, in a conversation of its own that names the task. The work continues
// when ctx ends. ErrTooManyAgents says that the project has as many working agents as Options.MaxAgents allows.
func (tk *Tasks) Deploy(ctx context.Context, request DeployRequest) (*DeployedAgent, error) {
	status, err := tk.Get(ctx, request.Scope, request.TaskID)
	if err != nil {
		return nil, err
	}
	if _, err := status.Prompt(); err != nil {
		return nil, err
	}
	if len(status.Agents) >= maxDeployed {
		return nil, &task.ValidationError{Type: task.InvalidValue, Field: "task_id", Index: -1, Message: fmt.Sprintf("%d agents were set to work on the task already, as many as a task may have", maxDeployed)}
	}
	chosen, err := tk.chooseAgent(request.Type)
	if err != nil {
		return nil, err
	}
	if tk.life.IsClosed() {
		return nil, lifecycle.ErrClosing
	}
	link := agentLink{TaskID: status.ID, AgentType: cmp.Or(request.Type, chosen.Model)}
	if request.Key != "" {
		link.Asked = brief.Hash(status.ID + "\n" + request.Type + "\n" + request.Prompt)
	}
	if begun, err := tk.existingAgent(ctx, status.Scope, request.Key, link); begun != nil || err != nil {
		return begun, err
	}
	err = tk.agents.AwaitPlace(ctx, request.Scope.ProjectID)
	if err == nil {
		err = tk.agents.Enter(request.Scope.ProjectID)
	}
	switch {
	case errors.Is(err, lifecycle.ErrTooManyTurns):
		return nil, fmt.Errorf("%w: the project may have %d at once; wait until one has ended, or end one", ErrTooManyAgents, tk.agents.Most)
	case err != nil:
		return nil, err
	}
	id, err := tk.startWork(ctx, request, chosen, status, link)
	if err != nil {
		return nil, err
	}
	return tk.Agent(ctx, request.Scope, id)
}

// existingAgent returns the agent that a request's key has already deployed; nil where there is none.
func (tk *Tasks) existingAgent(ctx context.Context, scope continuo.Scope, key string, link agentLink) (*DeployedAgent, error) {
	if key == "" {
		return nil, nil
	}
	conversation, err := tk.log.Find(ctx, scope, keyOfKind(scope, continuo.KindAgent, key))
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
	agent, work, err := tk.agentOf(ctx, conversation)
	if work == nil && err == nil {
		return nil, nil // its process ended before the work had begun
	}
	return agent, err
}

// chooseAgent resolves an agent's type: an agent of the settings, or a model, connectors included.
func (tk *Tasks) chooseAgent(name string) (catalog.ResolvedTurn, error) {
	c := catalog.TurnSpec{Mode: continuo.ModeAgent, UsualView: string(continuo.ModeAgent), Alone: true}
	if _, err := tk.catalog.Agent(name); err == nil {
		c.Agent = name
	} else if _, err := tk.catalog.Upstream(name); err == nil {
		c.Model = name
	} else {
		known := tk.catalog.Models()
		for _, agent := range tk.catalog.Agents() {
			known = append(known, agent.ID)
		}
		return catalog.ResolvedTurn{}, &task.ValidationError{
			Type: task.InvalidValue, Field: "agent_type", Index: -1,
			Message: fmt.Sprintf("there is no agent_type '%s'; allowed: %s%s", brief.Shorten(name, 60), strings.Join(known, ", "), tk.demoNote(known)),
		}
	}
	found, err := tk.catalog.Resolve(c)
	found.View.Limits = window.Limits{} // the prompt is shown whole, or the turn fails because it does not fit
	return found, err
}

// demoNote is a hint for settings that have only the demo model.
func (tk *Tasks) demoNote(known []string) string {
	if len(known) > 1 || !tk.catalog.DefaultModel().Demo {
		return ""
	}
	return ", the built-in model, which does no real work; agents, connectors and models are defined in continuo.yaml"
}

// startWork creates an agent's conversation, records the deployment, and begins the turn. A refused deployment leaves
// no data. The agent leaves the quota when its work has ended.
func (tk *Tasks) startWork(ctx context.Context, request DeployRequest, c catalog.ResolvedTurn, status *Status, link agentLink) (id string, err error) {
	ctx = context.WithoutCancel(ctx) // a client that disconnects must not leave it incomplete
	working := false
	defer func() {
		if !working {
			tk.agents.Leave(request.Scope.ProjectID)
		}
	}()
	conversation, err := tk.createOnce(ctx, continuo.Conversation{
		ProjectID: status.Scope.ProjectID, UserID: status.Scope.UserID, Kind: continuo.KindAgent, ActiveMode: continuo.ModeAgent, ActiveAgent: c.Agent,
		Title: brief.Shorten(link.AgentType, 40) + " on " + status.ID, Metadata: rawjson.MustMarshal(link),
	}, request.Key)
	if err != nil {
		return "", err
	}
	id = agentPrefix + strings.TrimPrefix(conversation.ID, conversationPrefix)
	requested := continuo.Turn{ID: workTurnID(conversation.ID), ConversationID: conversation.ID}
	requested.Mode, requested.AgentID, requested.View, requested.Model = c.Mode, c.Agent, c.ViewName, c.Model
	deployment := &deployment{taskID: status.ID, agentID: id, agentType: link.AgentType, task: status.Task, prompt: request.Prompt}
	message, err := deployment.text()
	if err != nil {
		return "", err
	}
	begin := func(context.Context, continuo.Conversation) (*turn.Runner, turn.Input, error) { // after the last check that can refuse the work
		input := turn.Input{Message: continuo.Text(message), Mode: c.Mode, AgentID: c.Agent, Leave: true}
		return tk.worker(c, status.ID, id), input, tk.recordDeployment(ctx, status, deployment)
	}
	reading, stop := context.WithCancel(ctx) // until the work ends, or this process shuts down
	context.AfterFunc(tk.life.Closing, stop)
	chat, err := tk.turns.Start(reading, start.Request{
		Project: conversation.ProjectID, Turn: requested, Conversation: conversation, Policy: start.Reject, Detached: true, Prepare: begin, LeaseFirst: true,
	})
	if errors.Is(err, continuo.ErrExists) || errors.Is(err, continuo.ErrBusy) { // a concurrent request with the same key was first
		return id, nil
	}
	if err != nil {
		return "", errors.Join(err, tk.log.Delete(ctx, conversation.ID))
	}
	working = true
	if err := tk.awaitStart(conversation.ProjectID, chat); err != nil {
		return "", errors.Join(err, tk.log.Delete(ctx, conversation.ID))
	}
	return id, nil
}

// awaitStart returns nil when the agent's first message is in the log, so that another process can resume the work if
// this one ends, or else the error. The agent leaves the quota when its work has ended.
func (tk *Tasks) awaitStart(project string, chat *start.Chat) error {
	works := tk.metrics.AgentWorks()
	started := make(chan error, 1)
	go func() {
		defer tk.agents.Leave(project)
		defer works()
		for _, err := range chat.Events { // the results are in the agent's conversation
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
	// AtWork is the model for an agent's work on a task: its program gets both ids, and the time limit of such work.
	AtWork(taskID, agentID string) model.Model
}

// reportText describes to an agent its ids and how it reports findings.
//
//go:embed task_agent.md
var reportText string

// reportRules is the end of an agent's prompt.
func reportRules(taskID, agentID string) string {
	return strings.NewReplacer("{{task_id}}", taskID, "{{agent_id}}", agentID).Replace(reportText)
}

// recordDeployment appends the deployment of an agent to the task's conversation, once for each agent, and counts it
// for lists.
func (tk *Tasks) recordDeployment(ctx context.Context, status *Status, deployment *deployment) error {
	id, agentType := deployment.agentID, deployment.agentType
	event := continuo.TaskEvent{Kind: continuo.TaskDeployed, AgentID: id, AgentType: agentType, Prompt: deployment.prompt}
	stored, err := tk.log.Append(ctx, status.ConversationID, []continuo.Entry{{
		Role: continuo.System, Hidden: true, PartType: taskEventPart, Content: continuo.Text(fmt.Sprintf("The agent %s (%s) was set to work.", id, agentType)), TaskEvent: &event,
	}}, continuo.AppendOptions{Key: "deployed/" + id, Identity: id})
	if err != nil {
		return err
	}
	_, err = tk.log.AdvanceMark(ctx, status.ConversationID, deploymentsMark, continuo.Mark{Seq: stored[0].Seq, Part: int64(len(status.Agents)) + 1})
	return err
}

// workTurnID is the id of the turn with an agent's work; other turns of its conversation have other ids.
func workTurnID(conversationID string) string {
	return "turn_" + strings.TrimPrefix(conversationID, conversationPrefix) + "_work"
}

// Agent finds a deployed agent; continuo.ErrNotFound.
func (tk *Tasks) Agent(ctx context.Context, scope continuo.Scope, id string) (*DeployedAgent, error) {
	conversation, err := tk.ofKind(ctx, scope, id, agentPrefix, continuo.KindAgent)
	if err != nil {
		return nil, err
	}
	agent, _, err := tk.agentOf(ctx, conversation)
	if err != nil || !isAtWork(agent.State) {
		return agent, err
	}
	_, err = tk.ofKind(ctx, scope, agent.TaskID, taskPrefix, continuo.KindTask)
	if errors.Is(err, continuo.ErrNotFound) { // the task has been deleted
		agent.Reason, err = "its task was deleted", nil
	}
	return agent, err
}

// agentOf returns the state of an agent by the turn of its conversation; nil for one that has not begun.
func (tk *Tasks) agentOf(ctx context.Context, conversation continuo.Conversation) (*DeployedAgent, *continuo.Turn, error) {
	var link agentLink
	_ = json.Unmarshal(conversation.Metadata, &link) // a person may have changed the metadata: the task still names the agent
	agent := &DeployedAgent{
		ID: agentPrefix + strings.TrimPrefix(conversation.ID, conversationPrefix), TaskID: link.TaskID, Type: link.AgentType,
		ConversationID: conversation.ID, State: StateQueued, StartedAt: conversation.CreatedAt,
	}
	if !conversation.ArchivedAt.IsZero() { // its turn is in the archive
		agent.State, agent.Reason, agent.EndedAt = StateCompleted, "archived", conversation.ArchivedAt
		return agent, nil, nil
	}
	work, err := tk.log.Turns().Turn(ctx, conversation.ID, workTurnID(conversation.ID))
	if errors.Is(err, continuo.ErrNotFound) || err == nil && work.State == continuo.TurnVoid {
		return agent, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if work.State == continuo.TurnRunning {
		if work, err = tk.keeper.RecoverIfAbandoned(ctx, work); err != nil {
			return nil, nil, err
		}
	}
	agent.TurnID, agent.StartedAt, agent.EndedAt = work.ID, work.StartedAt, work.EndedAt
	agent.State, err = tk.stateOfWork(ctx, work)
	switch {
	case err != nil:
	case agent.State == StateRunning && tk.keeper.Abandoned(work):
		agent.State, agent.Reason = StateQueued, abandonedReason
	case agent.State == StateFailed:
		agent.Reason, err = tk.failureMessage(ctx, work)
	case agent.State == StateKilled:
		agent.Reason = link.KillReason
	}
	return agent, &work, err
}

// abandonedReason says that an agent's process is gone, and that this process does not resume its work.
const abandonedReason = "its program has ended; continuo serve or continuo mcp with the same store resumes it"

// stateOfWork is the state of an agent by the turn with its work.
func (tk *Tasks) stateOfWork(ctx context.Context, work continuo.Turn) (State, error) {
	switch {
	case work.State == continuo.TurnFinished:
		return StateCompleted, nil
	case work.State == continuo.TurnFailed && work.Reason == continuo.ReasonCancelled:
		return StateKilled, nil
	case work.State == continuo.TurnFailed:
		return StateFailed, nil
	case work.State == continuo.TurnVoid:
		return StateQueued, nil
	}
	waiting, err := tk.turns.Waiting(ctx, work)
	if err == nil && len(waiting) > 0 {
		return StateBlocked, nil
	}
	return StateRunning, err
}

// failureMessage is the error message of the newest answer of a failed turn.
func (tk *Tasks) failureMessage(ctx context.Context, work continuo.Turn) (string, error) {
	failure, err := tk.turns.FailureOf(ctx, work)
	if err != nil || failure == nil {
		return string(work.Reason), err
	}
	return failure.Message, nil
}

// maxOutput is how many characters Tasks.Output reads without a limit.
const maxOutput = 100_000

// Output reads the output of an agent, from a character on, at most limit characters (0: 100 000); a from below
// 0 counts from the end.
func (tk *Tasks) Output(ctx context.Context, scope continuo.Scope, id string, from, limit int) (*AgentOutput, error) {
	conversation, err := tk.ofKind(ctx, scope, id, agentPrefix, continuo.KindAgent)
	if err != nil {
		return nil, err
	}
	agent, output, err := tk.currentOutput(ctx, conversation)
	if err != nil {
		return nil, err
	}
	all := []rune(output)
	if from < 0 {
		from = max(0, len(all)+from)
	}
	from = min(from, len(all))
	to := min(len(all), from+cmp.Or(max(limit, 0), maxOutput))
	return &AgentOutput{DeployedAgent: *agent, Output: string(all[from:to]), From: from, Total: len(all)}, nil
}

// currentOutput returns the state of an agent and its output so far: its answers, and the part of the current answer that has
// arrived. If an entry is appended during the read, which may be the current answer, both are read again.
func (tk *Tasks) currentOutput(ctx context.Context, conversation continuo.Conversation) (*DeployedAgent, string, error) {
	for {
		agent, work, err := tk.agentOf(ctx, conversation)
		if err != nil {
			return nil, "", err
		}
		partial := ""
		if work != nil && work.State == continuo.TurnRunning {
			if partial, err = tk.keeper.Partial(ctx, *work); err != nil {
				return nil, "", err
			}
		}
		now, err := tk.log.Conversation(ctx, conversation.ID)
		if err != nil {
			return nil, "", err
		}
		if now.LastSeq == conversation.LastSeq {
			output, err := tk.outputText(ctx, now, partial)
			return agent, output, err
		}
		conversation = now
	}
}

// outputText is the text of the answers in an agent's conversation, with a line for each call, followed by the part of
// the current answer that has arrived.
func (tk *Tasks) outputText(ctx context.Context, conversation continuo.Conversation, partial string) (string, error) {
	var pieces []string
	add := func(text string, calls []continuo.ToolCall) {
		if text != "" {
			pieces = append(pieces, text)
		}
		for _, call := range calls {
			pieces = append(pieces, fmt.Sprintf("[calls %s %s]", call.Name, brief.Shorten(call.Arguments, 200)))
		}
	}
	for entry, err := range tk.log.Read(ctx, conversation, continuo.Range{}) {
		if err != nil {
			return "", err
		}
		if entry.Role == continuo.Assistant {
			add(entry.Content.String(), entry.ToolCalls)
		}
	}
	add(partial, nil)
	return strings.Join(pieces, "\n\n"), nil
}

// Kill ends an agent's work permanently, with all of its processes, whichever process runs it;
// continuo.ErrNotRunning.
func (tk *Tasks) Kill(ctx context.Context, scope continuo.Scope, id, reason string) (*DeployedAgent, error) {
	conversation, err := tk.ofKind(ctx, scope, id, agentPrefix, continuo.KindAgent)
	if err != nil {
		return nil, err
	}
	agent, work, err := tk.agentOf(ctx, conversation)
	if err != nil {
		return nil, err
	}
	if work == nil || work.State != continuo.TurnRunning {
		return nil, fmt.Errorf("agent %s: %w: it is %s", id, continuo.ErrNotRunning, agent.State)
	}
	reason = brief.Shorten(strings.ToValidUTF8(reason, "\uFFFD"), maxKillReason)
	if err := tk.storeKillReason(ctx, conversation, reason); err != nil {
		return nil, err
	}
	if err := tk.endWork(ctx, *work); err != nil {
		return nil, err
	}
	attributes := []any{"agent_id", id, "task_id", agent.TaskID}
	if tk.options.LogText {
		attributes = append(attributes, "reason", reason)
	}
	tk.options.Logger.InfoContext(ctx, "agent_killed", attributes...)
	waiting, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	for range tk.keeper.Follow(waiting, work.ConversationID, work.ID, 0) { // until the work has ended
	}
	return tk.Agent(ctx, scope, id)
}

// endWork cancels an agent's work, or closes it where its process is gone.
func (tk *Tasks) endWork(ctx context.Context, work continuo.Turn) error {
	if tk.keeper.Abandoned(work) {
		_, err := tk.keeper.Close(ctx, work)
		return err
	}
	return tk.turns.Cancel(ctx, work)
}

// maxKillReason bounds the reason of a kill, in characters.
const maxKillReason = 500

// storeKillReason stores the reason of a kill in the conversation's metadata, beside its other values.
func (tk *Tasks) storeKillReason(ctx context.Context, conversation continuo.Conversation, reason string) error {
	if reason == "" {
		return nil
	}
	metadata, _ := rawjson.ParseObject(conversation.Metadata) // the log stores only objects
	metadata.Set("kill_reason", rawjson.MustMarshal(reason))
	_, err := tk.log.Update(ctx, conversation.ID, continuo.ConversationChange{Metadata: metadata.Raw()})
	return err
}

// killTimeout is how long Kill waits for the end of the work.
const killTimeout = 10 * time.Second

// summarizer returns the summarizer for histories: the default model, or nil where that is the built-in one.
func (tk *Tasks) summarizer() task.Summarizer {
	upstream, err := tk.catalog.Upstream("")
	if err != nil || upstream.Model.Info().Demo {
		return nil
	}
	upstream.Model = tk.options.Requests.Model(upstream.Model)
	return summary.NewSummarizer(upstream, tk.options.Logger)
}

// ErrTooManyAgents says that a project has as many working agents as Options.MaxAgents allows.
var ErrTooManyAgents = errors.New("too many agents are at work")
