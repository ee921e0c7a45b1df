package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/engine/crews"
	"github.com/continuo-log/continuo/engine/metrics"
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
	Context        = contexts.Context
	ContextRequest = contexts.ContextRequest
	Format         = contexts.Format
	Replayed       = contexts.Replayed
)

// Of package contexts.
const (
	FormatAnthropic  = contexts.FormatAnthropic
	FormatHandoff    = contexts.FormatHandoff
	FormatOpenAI     = contexts.FormatOpenAI
	FormatTranscript = contexts.FormatTranscript
	RoleView         = contexts.RoleView
)

// Of package conversations.
type (
	Imported  = conversations.Imported
	KindError = conversations.KindError
)

// Of package conversations.
var (
	IDPattern  = conversations.IDPattern
	KeyPattern = conversations.KeyPattern
)

// Of package crews.
type (
	Comparison   = crews.Comparison
	CrewMessage  = crews.CrewMessage
	CrewOptions  = crews.CrewOptions
	CrewProgress = crews.CrewProgress
	CrewSession  = crews.CrewSession
	CrewStatus   = crews.CrewStatus
	DiffLine     = crews.DiffLine
	RoleRound    = crews.RoleRound
	RoleStatus   = crews.RoleStatus
	Sight        = crews.Sight
	SightError   = crews.SightError
	Sighted      = crews.Sighted
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
	RunDecision = runs.RunDecision
	RunProgress = runs.RunProgress
	RunRepair   = runs.RunRepair
	RunRequest  = runs.RunRequest
	RunStatus   = runs.RunStatus
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
	ErrDecided     = runs.ErrDecided
	ErrRunOver     = runs.ErrRunOver
	ErrRunUnderWay = runs.ErrRunUnderWay
	ErrRunWaits    = runs.ErrRunWaits
)

// Of package start.
type (
	Chat          = start.Chat
	ChatRequest   = start.ChatRequest
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
	ErrClosing      = start.ErrClosing
	ErrNotResumable = start.ErrNotResumable
	ErrTooManyTurns = start.ErrTooManyTurns
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
	ListedTask      = tasks.ListedTask
	TaskQuery       = tasks.TaskQuery
	TaskRequest     = tasks.TaskRequest
	TaskState       = tasks.TaskState
	TaskStatus      = tasks.TaskStatus
)

// Of package tasks.
const (
	TaskBlocked   = tasks.TaskBlocked
	TaskCompleted = tasks.TaskCompleted
	TaskFailed    = tasks.TaskFailed
	TaskGone      = tasks.TaskGone
	TaskKilled    = tasks.TaskKilled
	TaskQueued    = tasks.TaskQueued
	TaskRedacted  = tasks.TaskRedacted
	TaskRunning   = tasks.TaskRunning
)

// Of package tasks.
var (
	ErrTooManyAgents = tasks.ErrTooManyAgents
	FindingTypes     = tasks.FindingTypes
	Severities       = tasks.Severities
	TaskStates       = tasks.TaskStates
)

// NewMetrics makes metrics and registers them; see [metrics.NewMetrics].
func NewMetrics(registry prometheus.Registerer) *Metrics { return metrics.NewMetrics(registry) }
