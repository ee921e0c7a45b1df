package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/internal/charged"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/engine/start"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/turn"
)

// Tasks keeps tasks, and deploys agents that work on them.
type Tasks struct {
	log     *continuo.Log
	catalog *catalog.Catalog
	turns   *start.Turns
	life    *lifecycle.Lifecycle
	keeper  *turn.Keeper
	metrics *metrics.Metrics
	options Options
	agents  lifecycle.Quota // of deployed agents
}

// Options configures Tasks.
type Options struct {
	Handoff      task.Limits
	MaxAgents    int // that work at once for a project
	AgentTimeout time.Duration
	TakeUp       bool // resume the work of agents whose process is gone
	Requests     charged.Requests
	Logger       *slog.Logger
	LogText      bool
}

func New(
	log *continuo.Log, catalog *catalog.Catalog, turns *start.Turns, life *lifecycle.Lifecycle, keeper *turn.Keeper, metrics *metrics.Metrics, options Options,
) *Tasks {
	return &Tasks{log: log, catalog: catalog, turns: turns, life: life, keeper: keeper, metrics: metrics, options: options, agents: lifecycle.Quota{Most: options.MaxAgents}}
}

// Request is a request to create a task: work for an agent, with the conversation history that explains it.
type Request struct {
	Scope  continuo.Scope
	UserID string // the task's user, where the scope has none; "" for none
	task.Request
	Key string // the idempotency key; "" for none
	// Progress is called after each summary of the history with the number made and the total. Default: none.
	Progress func(made, total int)
}

// Status is a task and its state. The task's record is the first entry of a conversation of its own; each agent
// that was deployed for it has a conversation too.
type Status struct {
	ListItem
	Findings []Finding `json:"findings"`
}

// ListItem is a task and its state, without its findings.
type ListItem struct {
	ID             string          `json:"task_id" pattern:"^task_[0-9a-f]{32}$"`
	ConversationID string          `json:"conversation_id"`
	Scope          continuo.Scope  `json:"-"`                 // of the task, its agents among it
	UserID         string          `json:"user_id,omitempty"` // its owner; absent for none
	State          State           `json:"status"`
	Task           task.Task       `json:"task"`
	CreatedAt      time.Time       `json:"created_at"`
	UpdatedAt      time.Time       `json:"updated_at"` // of its newest entry, or when an agent of it ended
	ListedAt       time.Time       `json:"-"`          // its position in the list of tasks
	Agents         []DeployedAgent `json:"agents"`     // in the order of their deployment
}

// State is the state of a task or an agent. A task without a deployed agent is queued. Otherwise it has the state
// of a working agent, or, if none works, of the newest one. A blocked one waits for a person's decision. The conversation
// of an agent that is gone was deleted. A task with a redacted record and no working agent is redacted.
type State string

// The states of tasks and of agents.
const (
	StateQueued    State = "queued"
	StateRunning   State = "running"
	StateBlocked   State = "blocked" // a call of the agent waits for a person
	StateCompleted State = "completed"
	StateFailed    State = "failed"
	StateKilled    State = "killed"
	StateGone      State = "gone"     // the agent's conversation was deleted
	StateRedacted  State = "redacted" // of tasks only
)

// States are all states.
var States = []State{StateQueued, StateRunning, StateBlocked, StateCompleted, StateFailed, StateKilled, StateGone, StateRedacted}

// DeployedAgent is an agent that works on a task. Its work is a turn of its own conversation.
type DeployedAgent struct {
	ID             string    `json:"agent_id" pattern:"^agent_[0-9a-f]{32}$"`
	TaskID         string    `json:"task_id"`
	Type           string    `json:"agent_type"`       // a connector, an agent or a model of the settings
	ConversationID string    `json:"conversation_id"`  // the conversation of its work
	TurnID         string    `json:"turn_id"`          // empty before the work has begun
	State          State     `json:"status"`           // blocked: a call waits for a person; gone: its conversation was deleted
	Reason         string    `json:"reason,omitempty"` // why it failed, was killed or is gone
	StartedAt      time.Time `json:"started_at"`
	EndedAt        time.Time `json:"ended_at,omitzero"`
}

// Finding is an agent's report during its work.
type Finding struct {
	AgentID  string          `json:"agent_id,omitempty"`
	Type     FindingType     `json:"finding_type" enum:"issue,solution,insight,recommendation,progress,"` // empty, as the message, where it was redacted
	Severity FindingSeverity `json:"severity" enum:"low,medium,high,critical,"`
	Message  string          `json:"message"`
	Data     json.RawMessage `json:"data,omitempty" type:"object"`
	Seq      int64           `json:"seq,omitempty" required:"true"` // of its entry in the task's conversation
	At       time.Time       `json:"created_at,omitzero" required:"true"`
}

// FindingType is what a finding is.
type FindingType string

// The types of findings.
const (
	FindingIssue          FindingType = "issue"
	FindingSolution       FindingType = "solution"
	FindingInsight        FindingType = "insight" // the default
	FindingRecommendation FindingType = "recommendation"
	FindingProgress       FindingType = "progress"
)

// FindingSeverity is how serious a finding is.
type FindingSeverity string

// The severities of findings.
const (
	SeverityLow      FindingSeverity = "low"
	SeverityMedium   FindingSeverity = "medium" // the default
	SeverityHigh     FindingSeverity = "high"
	SeverityCritical FindingSeverity = "critical"
)

// DeployRequest is a request to start an agent's work on a task.
type DeployRequest struct {
	Scope  continuo.Scope
	TaskID string
	// Type names a connector, an agent or a model of the settings; "" is the default model.
	Type string
	// Prompt is added to the task's own. It may be empty.
	Prompt string
	Key    string // the idempotency key; "" for none
}

// AgentOutput is an agent and its output so far.
type AgentOutput struct {
	DeployedAgent
	// Output is a part of its text, from the character From on.
	Output string `json:"output"`
	From   int    `json:"from"`
	Total  int    `json:"total"` // length of the whole text in characters
}

// The id of a task or an agent is that of its conversation with another prefix.
const (
	conversationPrefix = "conv_"
	taskPrefix         = "task_"
	agentPrefix        = "agent_"
)

// Create checks a request, reads the conversation that it names, if any, prepares the history, and stores the
// task. A *task.ValidationError lists the problems of the request.
func (tk *Tasks) Create(ctx context.Context, request Request) (*Status, []task.Warning, error) {
	user, err := request.Scope.Owner(request.UserID)
	if err != nil {
		return nil, nil, err
	}
	source := continuo.Scope{ProjectID: request.Scope.ProjectID, UserID: user}
	draft, warnings, err := task.Check(request.Request, tk.log.Now(), tk.options.Handoff)
	if err != nil {
		return nil, nil, err
	}
	if err := tk.readSource(ctx, source, &draft); err != nil {
		return nil, nil, err
	}
	draft.Progress = request.Progress
	made, more, err := draft.Shape(ctx, tk.summarizer())
	if err != nil {
		return nil, nil, err
	}
	conversation, err := tk.createOnce(ctx, continuo.Conversation{
		ProjectID: source.ProjectID, UserID: user, Kind: continuo.KindTask, ActiveMode: continuo.ModeAgent, Title: brief.Shorten(firstLine(made.Description), 60),
	}, request.Key)
	if err != nil {
		return nil, nil, err
	}
	record := continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: taskEventPart, Content: continuo.Text("Task: " + made.Description),
		TaskEvent: &continuo.TaskEvent{Kind: continuo.TaskCreated, Task: rawjson.MustMarshal(made)},
	}
	options := continuo.AppendOptions{Key: "task", Identity: brief.Hash(string(rawjson.MustMarshal(request.Request)))}
	id := taskPrefix + strings.TrimPrefix(conversation.ID, conversationPrefix)
	if _, err := tk.log.Append(ctx, conversation.ID, []continuo.Entry{record}, options); errors.Is(err, continuo.ErrKeyReused) {
		return nil, nil, fmt.Errorf("%w: it made %s of something else", continuo.ErrKeyReused, id)
	} else if err != nil {
		return nil, nil, err
	}
	audit.Targets(ctx, id)
	status, err := tk.Get(ctx, request.Scope, id)
	return status, append(warnings, more...), err
}

// taskEventPart is the part type of entries with a TaskEvent.
const taskEventPart = "task_event"

// createOnce creates a conversation; with an idempotency key it returns the one that the key created.
func (tk *Tasks) createOnce(ctx context.Context, begin continuo.Conversation, key string) (continuo.Conversation, error) {
	if key != "" {
		begin.Key = keyOfKind(begin.Scope(), begin.Kind, key)
	}
	conversation, err := tk.log.Create(ctx, begin)
	if errors.Is(err, continuo.ErrExists) {
		return tk.log.Find(ctx, begin.Scope(), begin.Key)
	}
	return conversation, err
}

// keyOfKind is the key of the conversation that an idempotency key creates for a task or an agent.
func keyOfKind(scope continuo.Scope, kind continuo.Kind, key string) string {
	return conversations.OnceKey(scope, string(kind)+"\n"+key) // no key contains a line break
}

// readSource reads the conversation from which a draft's history is made, if it names one.
func (tk *Tasks) readSource(ctx context.Context, scope continuo.Scope, draft *task.Draft) error {
	source := draft.Task.Source
	if source == nil {
		return nil
	}
	conversation, err := tk.log.Find(ctx, scope, source.ConversationID)
	if errors.Is(err, continuo.ErrNotFound) {
		return sourceError("conversation_history names the conversation '%s', which there is not", source.ConversationID)
	}
	if err != nil {
		return err
	}
	if source.From > conversation.LastSeq || source.To > conversation.LastSeq {
		return sourceError("conversation_history asks for entries %d to %d, and the conversation has entries 1 to %d", max(source.From, 1), cmp.Or(source.To, conversation.LastSeq), conversation.LastSeq)
	}
	source.ConversationID = conversation.ID
	if conversation.LastSeq == 0 {
		return nil
	}
	source.From, source.To = max(source.From, 1), cmp.Or(source.To, conversation.LastSeq)
	return draft.Read(tk.log.Read(ctx, conversation, continuo.Range{From: source.From, To: source.To, Backward: true}))
}

func sourceError(format string, args ...any) error {
	return &task.ValidationError{Type: task.InvalidValue, Field: "conversation_history", Index: -1, Message: fmt.Sprintf(format, args...)}
}

// Get finds a task within a scope; continuo.ErrNotFound.
func (tk *Tasks) Get(ctx context.Context, scope continuo.Scope, id string) (*Status, error) {
	conversation, err := tk.ofKind(ctx, scope, id, taskPrefix, continuo.KindTask)
	if err != nil {
		return nil, err
	}
	return tk.taskStatus(ctx, conversation)
}

// ofKind finds the conversation of a task or an agent by id.
func (tk *Tasks) ofKind(ctx context.Context, scope continuo.Scope, id, prefix string, kind continuo.Kind) (continuo.Conversation, error) {
	missing := fmt.Errorf("%s %q: %w", kind, brief.Shorten(id, 60), continuo.ErrNotFound)
	rest, ok := strings.CutPrefix(id, prefix)
	if !ok || !conversations.OwnID.MatchString(conversationPrefix+rest) {
		return continuo.Conversation{}, missing
	}
	conversation, err := tk.log.Find(ctx, scope, conversationPrefix+rest)
	if errors.Is(err, continuo.ErrNotFound) || err == nil && conversation.Kind != kind {
		return continuo.Conversation{}, missing
	}
	audit.About(ctx, conversation.ID)
	return conversation, err
}

// errMissingRecord says that a task's conversation has no record: its process ended before it was written.
var errMissingRecord = fmt.Errorf("%w: it has no record", continuo.ErrNotFound)

// taskStatus reads a task's conversation.
func (tk *Tasks) taskStatus(ctx context.Context, conversation continuo.Conversation) (*Status, error) {
	status := newStatus(conversation)
	recorded, redacted := false, false
	for entry, err := range tk.log.Read(ctx, conversation, continuo.Range{}) {
		if err != nil {
			return nil, err
		}
		event := entry.TaskEvent
		if event == nil {
			continue
		}
		switch event.Kind {
		case continuo.TaskCreated:
			recorded, redacted = true, entry.Redacted != nil
			err = status.readRecord(entry)
		case continuo.TaskDeployed:
			var agent DeployedAgent
			agent, err = tk.deployed(ctx, status, entry)
			status.Agents = append(status.Agents, agent)
		case continuo.TaskFound:
			finding := Finding{}
			if entry.Redacted == nil {
				err = json.Unmarshal(event.Finding, &finding)
			}
			finding.Seq, finding.At = entry.Seq, entry.CreatedAt
			status.Findings = append(status.Findings, finding)
		}
		if err != nil {
			return nil, fmt.Errorf("task %s: entry %d: %w", status.ID, entry.Seq, err)
		}
	}
	if !recorded {
		return nil, fmt.Errorf("task %s: %w", status.ID, errMissingRecord)
	}
	status.deriveState(redacted)
	return status, nil
}

// newStatus is the status of a task by its conversation alone.
func newStatus(conversation continuo.Conversation) *Status {
	return &Status{ListItem: ListItem{
		ID: taskPrefix + strings.TrimPrefix(conversation.ID, conversationPrefix), ConversationID: conversation.ID,
		Scope: conversation.Scope(), UserID: conversation.UserID, State: StateQueued, Agents: []DeployedAgent{},
		CreatedAt: conversation.CreatedAt, UpdatedAt: conversation.UpdatedAt, ListedAt: conversation.UpdatedAt,
	}, Findings: []Finding{}}
}

// readRecord decodes a task from its record; a redacted record has no content.
func (s *Status) readRecord(entry continuo.Entry) error {
	if entry.Redacted != nil {
		return nil
	}
	return json.Unmarshal(entry.TaskEvent.Task, &s.Task)
}

// deriveState sets the state and the time of the newest change from the agents.
func (s *Status) deriveState(redacted bool) {
	for _, agent := range s.Agents {
		if agent.EndedAt.After(s.UpdatedAt) {
			s.UpdatedAt = agent.EndedAt
		}
	}
	s.State = stateOf(s.Agents)
	if redacted && !isAtWork(s.State) {
		s.State = StateRedacted
	}
}

// deployed is the agent of a deployment entry in a task's conversation.
func (tk *Tasks) deployed(ctx context.Context, status *Status, entry continuo.Entry) (DeployedAgent, error) {
	id := entry.TaskEvent.AgentID
	conversation, err := tk.ofKind(ctx, continuo.Scope{ProjectID: status.Scope.ProjectID}, id, agentPrefix, continuo.KindAgent)
	var agent *DeployedAgent
	if err == nil {
		agent, _, err = tk.agentOf(ctx, conversation)
	}
	if errors.Is(err, continuo.ErrNotFound) {
		agent, err = &DeployedAgent{
			ID: id, ConversationID: conversationPrefix + strings.TrimPrefix(id, agentPrefix),
			State: StateGone, Reason: "its conversation was deleted", StartedAt: entry.CreatedAt,
		}, nil
	}
	if err != nil {
		return DeployedAgent{}, err
	}
	agent.TaskID, agent.Type = status.ID, entry.TaskEvent.AgentType
	return *agent, nil
}

// Prompt is the task's text for an agent. A *task.ValidationError says that nothing of the task is left.
func (s *Status) Prompt() (string, error) {
	if strings.TrimSpace(s.Task.Description) == "" {
		return "", &task.ValidationError{Type: task.InvalidValue, Field: "task_id", Index: -1, Message: "the task was redacted: there is nothing left to do"}
	}
	return task.Prompt(s.Task), nil
}

func isAtWork(state State) bool { return state == StateRunning || state == StateBlocked }

// stateOf is the state of a task with these agents, the newest last.
func stateOf(agents []DeployedAgent) State {
	for _, state := range []State{StateBlocked, StateRunning} {
		if slices.ContainsFunc(agents, func(a DeployedAgent) bool { return a.State == state }) {
			return state
		}
	}
	if len(agents) == 0 {
		return StateQueued
	}
	return agents[len(agents)-1].State
}

// Report appends a finding to the task's conversation.
func (tk *Tasks) Report(ctx context.Context, scope continuo.Scope, taskID string, finding Finding) (*Finding, error) {
	if err := finding.check(); err != nil {
		return nil, err
	}
	conversation, err := tk.ofKind(ctx, scope, taskID, taskPrefix, continuo.KindTask)
	if err != nil {
		return nil, err
	}
	if finding.AgentID != "" {
		agent, err := tk.Agent(ctx, scope, finding.AgentID)
		if errors.Is(err, continuo.ErrNotFound) || err == nil && agent.TaskID != taskID {
			return nil, &task.ValidationError{Type: task.InvalidValue, Field: "agent_id", Index: -1, Message: fmt.Sprintf("no agent '%s' works on task %s", brief.Shorten(finding.AgentID, 60), taskID)}
		}
		if err != nil {
			return nil, err
		}
	}
	if conversation.LastSeq >= maxFindings {
		return nil, &task.ValidationError{Type: task.InvalidValue, Field: "task_id", Index: -1, Message: fmt.Sprintf("the task has as many findings as a task may have, about %d", maxFindings)}
	}
	finding.Seq, finding.At = 0, time.Time{}
	stored, err := tk.log.Append(ctx, conversation.ID, []continuo.Entry{{
		Role: continuo.System, Hidden: true, PartType: taskEventPart, Content: continuo.Text(fmt.Sprintf("Finding (%s, %s): %s", finding.Type, finding.Severity, finding.Message)),
		TaskEvent: &continuo.TaskEvent{Kind: continuo.TaskFound, AgentID: finding.AgentID, Finding: rawjson.MustMarshal(finding)},
	}}, continuo.AppendOptions{})
	if err != nil {
		return nil, err
	}
	finding.Seq, finding.At = stored[0].Seq, stored[0].CreatedAt
	return &finding, nil
}

// The values of a finding's fields.
var (
	FindingTypes = []FindingType{FindingIssue, FindingSolution, FindingInsight, FindingRecommendation, FindingProgress}
	Severities   = []FindingSeverity{SeverityLow, SeverityMedium, SeverityHigh, SeverityCritical}
)

// maxFindings bounds a task's findings, which every read of the task returns.
const maxFindings = 1000

// maxFinding bounds a finding's message and its data, in bytes.
const maxFinding = 64 << 10

// check fills in defaults of a finding and refuses invalid values.
func (f *Finding) check() error {
	f.Type, f.Severity = cmp.Or(f.Type, FindingInsight), cmp.Or(f.Severity, SeverityMedium)
	refuse := func(field, format string, args ...any) error {
		return &task.ValidationError{Type: task.InvalidValue, Field: field, Index: -1, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case !slices.Contains(FindingTypes, f.Type):
		return refuse("finding_type", "finding_type must be one of %s, not '%s'", listOf(FindingTypes), brief.Shorten(string(f.Type), 60))
	case !slices.Contains(Severities, f.Severity):
		return refuse("severity", "severity must be one of %s, not '%s'", listOf(Severities), brief.Shorten(string(f.Severity), 60))
	case strings.TrimSpace(f.Message) == "":
		return refuse("message", "message must say what was found")
	case len(f.Message) > maxFinding || len(f.Data) > maxFinding:
		return refuse("message", "message and data may have at most %d bytes each", maxFinding)
	}
	if _, err := rawjson.ParseObject(f.Data); f.Data != nil && err != nil {
		return refuse("data", "data must be a JSON object")
	}
	return nil
}

// listOf joins names with commas between them.
func listOf[T ~string](names []T) string {
	var list []string
	for _, name := range names {
		list = append(list, string(name))
	}
	return strings.Join(list, ", ")
}

// firstLine is the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
