// Package config reads Continuo's settings from defaults, a YAML file, the environment and flags, of which the later
// takes precedence, and records the origin of each value.
//
// One table (table.go, model.go) holds every key with its default, its bounds and its meaning; reading, validation,
// doctor, docs/settings.md and the example file all use it. The file is read into a small tree with a line and a column
// for each value (yaml.go), so that every error can point at its cause.
//
// Pitfalls: models, agents, connectors and MCP servers are set in the file only. The file never contains a secret, but
// the name of the environment variable that holds it, and no error repeats a value where a secret may have been pasted
// by mistake. Relative paths are relative to the working directory, not to the file.
package config

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/continuo-log/continuo/internal/nearest"

	"github.com/continuo-log/continuo"
)

// DemoModel names the built-in model, which needs no upstream.
const DemoModel = "demo"

// Config is all settings, validated. It is read-only once loaded, and then safe for concurrent use.
type Config struct {
	// File is the settings file that was read; "" when there is none.
	File string

	Listen       string
	Project      string
	DefaultModel string // DemoModel or a key of Models or Connectors
	Models       map[string]ModelConfig
	Agents       map[string]AgentConfig
	Connectors   map[string]ConnectorConfig
	Store        StoreConfig
	Objects      ObjectsConfig
	Log          LogConfig
	Context      ContextConfig
	Chat         ChatConfig
	Transcript   TranscriptConfig
	Handoff      HandoffConfig
	Crews        CrewsConfig
	Crew         CrewConfig
	Telegram     TelegramConfig
	Turn         TurnConfig
	Server       ServerConfig
	Prompts      PromptsConfig
	Workflows    WorkflowsConfig
	Tools        ToolsConfig
	Demo         DemoConfig
	MCP          MCPConfig
	Telemetry    TelemetryConfig

	settings []Setting
	hints    []string
}

// LogConfig is the section log.
type LogConfig struct {
	Level       slog.Level
	Format      string // "text" or "json"
	MessageText bool
}

// ContextConfig is the section context.
type ContextConfig struct {
	MaxMessages        int
	MaxChars           int // Unicode characters
	MaxTokens          int // 0: from the model's window
	IncludeToolResults bool
	IncludeCollapsed   bool
	LowWater           float64 // share of the budget that a window move leaves filled, above 0, at most 1
	ToolOutputChars    int     // Unicode characters
	PreviewChars       int     // Unicode characters
	Strategy           string  // "truncate" or "summarize"
	Summarizer         string  // a key of Models; "": the built-in summarizer
}

// ChatConfig is the section chat.
type ChatConfig struct {
	MaxHistoryMessages int
	MaxContextTokens   int
	// MaxContextTokensGiven says that MaxContextTokens was set and is no default.
	MaxContextTokensGiven bool
	ReservedTokens        int
	Strategy              string // "truncate" or "summarize"
}

// TranscriptConfig is the section transcript.
type TranscriptConfig struct {
	HistoryMessages int
}

// TurnConfig is the section turn.
type TurnConfig struct {
	MaxRounds   int
	Timeout     time.Duration
	WaitTimeout time.Duration
	ToolTimeout time.Duration
	Lease       time.Duration
	KeepEvents  time.Duration
	ShowEvents  string // ShowDurable or ShowImmediate

	// The limits on one model request.
	ConnectTimeout    time.Duration
	FirstTokenTimeout time.Duration
	IdleTimeout       time.Duration

	Retries      int // after the first attempt
	RetryMaxWait time.Duration
	RetryTimeout time.Duration

	BreakerFailures int // 0: no breaker
	BreakerCooldown time.Duration
}

// The values of turn.show_events.
const (
	ShowDurable   = "durable"
	ShowImmediate = "immediate"
)

// The values of server.keys.
const (
	KeysOnceMade = "once-made"
	KeysAlways   = "always"
	KeysNever    = "never"
)

// ServerConfig is the section server.
type ServerConfig struct {
	Keys            string // KeysOnceMade, KeysAlways or KeysNever
	MaxTurns        int    // per project; 0: unlimited
	MaxRequestRate  int    // per API key and second; 0: unlimited
	MaxBodyBytes    int64
	BodyTimeout     time.Duration
	MemoryBudgetMiB int64 // 0: a quarter of the available memory
	MaxConnections  int   // 0: as many as the limit on open files allows
	ShutdownTimeout time.Duration
}

// DemoConfig is the section demo.
type DemoConfig struct {
	Pace time.Duration // 0: 20 ms in a terminal, else none
}

// PromptsConfig is the section prompts.
type PromptsConfig struct {
	Dir string // "": the embedded prompts
}

// WorkflowsConfig is the section workflows.
type WorkflowsConfig struct {
	Dir string // "": none are read; a missing folder has none
}

// ToolsConfig is the section tools.
type ToolsConfig struct {
	// Allow, Ask and Deny are patterns of tool names. A pattern that matches no tool is no error here.
	Allow, Ask, Deny []string
	Otherwise        string // "ask", "allow" or "deny"
	AskTimeout       time.Duration
	MaxOutputBytes   int
	ProjectDir       string   // "": no @project
	DenyFiles        []string // patterns of names of files that no tool may access
}

// Model finds a model by its name; "" means the default model. The demo model always exists, with Protocol
// ProtocolDemo. An unknown name is ErrNotFound, with a sentence that suggests the nearest.
func (c *Config) Model(name string) (ModelConfig, error) {
	if name == "" {
		name = c.DefaultModel
	}
	if name == DemoModel {
		return ModelConfig{Name: DemoModel, Protocol: ProtocolDemo, Provider: DemoModel, Model: DemoModel}, nil
	}
	if model, ok := c.Models[name]; ok {
		return model, nil
	}
	return ModelConfig{}, fmt.Errorf("find model %s: %w; %s", quoted(name), continuo.ErrNotFound, modelAdvice(name, c.ModelNames()))
}

// ModelNames returns the names that Model accepts, sorted, the demo model included.
func (c *Config) ModelNames() []string {
	return slices.Sorted(maps.Keys(withDemo(c.Models)))
}

// AnswerNames returns the names that are valid wherever a model is named, sorted: those of ModelNames and of the
// connectors.
func (c *Config) AnswerNames() []string {
	return slices.Sorted(maps.Keys(withConnectors(withDemo(c.Models), c.Connectors)))
}

func withConnectors(models map[string]ModelConfig, connectors map[string]ConnectorConfig) map[string]ModelConfig {
	for name := range connectors {
		models[name] = ModelConfig{}
	}
	return models
}

func withDemo(models map[string]ModelConfig) map[string]ModelConfig {
	all := map[string]ModelConfig{DemoModel: {}}
	maps.Copy(all, models)
	return all
}

// modelAdvice lists the names that exist instead of name.
func modelAdvice(name string, names []string) string {
	if near := nearest.Name(name, names); near != "" {
		return "did you mean " + word(near) + "?"
	}
	if len(names) == 1 {
		return "the only model is the built-in demo; add others under models in continuo.yaml"
	}
	return "the models are " + strings.Join(names, ", ")
}

// Settings returns every setting with its value and origin, sorted by key, for doctor. It contains no secrets: of an
// API key only whether its variable is set, of headers only their names.
func (c *Config) Settings() []Setting { return slices.Clone(c.settings) }

// Hints returns sentences about settings that are valid but probably not what was meant, such as a key
// in the environment that no model uses.
func (c *Config) Hints() []string { return slices.Clone(c.hints) }
