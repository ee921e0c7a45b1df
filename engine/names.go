package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/engine/crews"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/engine/replays"
	"github.com/continuo-log/continuo/engine/runs"
	"github.com/continuo-log/continuo/engine/start"
	"github.com/continuo-log/continuo/engine/tasks"
)

// The names of the features' packages that adapters use: one import suffices.

// Of package catalog.
type (
	Agent    = catalog.Agent
	Upstream = catalog.Upstream
)

// Of package catalog.
var (
	ErrUnknownAgent = catalog.ErrUnknownAgent
)

// Of package contexts.
type (
	ComparisonSide    = contexts.ComparisonSide
	Context           = contexts.Context
	ContextRequest    = contexts.Request
	Format            = contexts.Format
	Replayed          = contexts.Replayed
	RequestComparison = contexts.Comparison
	SideError         = contexts.SideError
	RequestVariant    = contexts.Variant
)

// Of package contexts.
const (
	FormatAnthropic  = contexts.FormatAnthropic
	FormatHandoff    = contexts.FormatHandoff
	FormatOpenAI     = contexts.FormatOpenAI
	FormatTranscript = contexts.FormatTranscript
	RoleViewPrefix   = contexts.RoleViewPrefix
)

// Of package replays.
type (
	Replay             = replays.Request
	ReplayAnswer       = replays.Answer
	ReplayMessage      = replays.Message
	ReplayConversation = replays.Conversation
	ReplayResult       = replays.Result
	ReplayTotals       = replays.Totals
	ReplayVariant      = replays.Variant
)

// Of package replays.
const (
	ReplayAnswered = replays.StateAnswered
	ReplayFailed   = replays.StateFailed
)

// Of package conversations.
type (
	Imported  = conversations.Imported
	Round     = conversations.Round
	KindError = conversations.KindError
)

// Of package conversations.
var (
	DefinitionIDPattern = conversations.DefinitionIDPattern
	KeyPattern          = conversations.KeyPattern
)

// Of package crews.
type (
	Comparison       = crews.Comparison
	ComparisonError  = crews.ComparisonError
	CrewMessage      = crews.Message
	CrewProgress     = crews.Progress
	CrewSession      = crews.Session
	CrewStatus       = crews.Status
	DiffLine         = crews.DiffLine
	RoleContext      = crews.RoleContext
	RoleContextQuery = crews.RoleContextQuery
	RoleDefaults     = crews.RoleDefaults
	RoleRound        = crews.RoleRound
	RoleStatus       = crews.RoleStatus
)

// Of package crews.
var (
	ErrNoCycle = crews.ErrNoCycle
)

// Of package metrics.
type (
	Metrics = metrics.Metrics
)

// Of package runs.
type (
	RunDecision = runs.Decision
	RunProgress = runs.Progress
	RunRepair   = runs.Repair
	RunRequest  = runs.Request
	RunStatus   = runs.Status
)

// Of package runs.
const (
	RepairReplace = runs.RepairReplace
	RepairRetry   = runs.RepairRetry
	RepairSet     = runs.RepairSet
	RepairSkip    = runs.RepairSkip
)

// Of package runs.
var (
	ErrDecided       = runs.ErrDecided
	ErrRunOver       = runs.ErrOver
	ErrRunInProgress = runs.ErrInProgress
	ErrRunWaits      = runs.ErrWaiting
)

// Of package catalog.
const (
	WindowAuto   = catalog.WindowAuto
	WindowClient = catalog.WindowClient
)

// Of package start.
type (
	Chat          = start.Chat
	ChatRequest   = start.ChatRequest
	ClientRequest = start.ClientRequest
	ApprovedCall  = start.ApprovedCall
	// Repeat says how a client's request may be recognised when it is sent again.
	Repeat = start.Repeat
	// PassRequest is a client's request that is forwarded without being recorded.
	PassRequest   = start.PassRequest
	OnBusy        = start.OnBusy
	ResumeRequest = start.ResumeRequest
	Resumed       = start.Resumed
)

// Of package start.
const (
	Interrupt = start.Interrupt
	Reject    = start.Reject
	Wait      = start.Wait
)

// Of package start.
var (
	ErrClosing      = lifecycle.ErrClosing
	ErrNotResumable = start.ErrNotResumable
	ErrTooManyTurns = lifecycle.ErrTooManyTurns
)

// Of package tasks.
type (
	AgentOutput     = tasks.AgentOutput
	Connector       = tasks.Connector
	DeployRequest   = tasks.DeployRequest
	DeployedAgent   = tasks.DeployedAgent
	Finding         = tasks.Finding
	FindingSeverity = tasks.FindingSeverity
	FindingType     = tasks.FindingType
	ListedTask      = tasks.ListItem
	TaskQuery       = tasks.Query
	TaskRequest     = tasks.Request
	TaskState       = tasks.State
	TaskStatus      = tasks.Status
)

// Of package tasks.
const (
	TaskBlocked   = tasks.StateBlocked
	TaskCompleted = tasks.StateCompleted
	TaskFailed    = tasks.StateFailed
	TaskGone      = tasks.StateGone
	TaskKilled    = tasks.StateKilled
	TaskQueued    = tasks.StateQueued
	TaskRedacted  = tasks.StateRedacted
	TaskRunning   = tasks.StateRunning
)

// Of package tasks.
var (
	ErrTooManyAgents = tasks.ErrTooManyAgents
	FindingTypes     = tasks.FindingTypes
	Severities       = tasks.Severities
	TaskStates       = tasks.States
)

// ReadReport reads what metrics say; see [metrics.ReadReport].
func ReadReport(registry prometheus.Gatherer) (metrics.Report, error) {
	return metrics.ReadReport(registry)
}

// NewMetrics makes metrics and registers them; see [metrics.NewMetrics].
func NewMetrics(registry prometheus.Registerer) *Metrics { return metrics.NewMetrics(registry) }
