// Package config reads Continuo's settings from defaults, a YAML file, the environment and flags, of which the later
// takes precedence, and records the origin of each value.
//
// The tags of the structs hold every key with its default, its bounds and its meaning (field.go); reading, validation,
// doctor, docs/settings.md and the example file all use them. The file is read into a small tree with a line and a
// column for each value (yaml.go), so that every error can point at its cause.
//
// Pitfalls: models, agents, connectors and MCP servers are set in the file only. The file never contains a secret, but
// the name of the environment variable that holds it, and no error repeats a value where a secret may have been pasted
// by mistake. Relative paths are relative to the working directory, not to the file.
package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/model/known"
)

// DemoModel names the built-in model, which needs no upstream.
const DemoModel = "demo"

// Config is all settings, validated. It is read-only once loaded, and then safe for concurrent use. The tags of its
// fields, and of those of the sections, are what the program knows of each setting; see [binder].
type Config struct {
	// File is the settings file that was read; "" when there is none.
	File string

	Listen  string `key:"listen" kind:"address" default:"127.0.0.1:8787" help:"Where serve listens, as host:port. Port 0 takes a free one."`
	Project string `key:"project" kind:"project" default:"default" help:"The project that conversations belong to when nothing else says so."`
	// DefaultModel is DemoModel or a key of Models or Connectors.
	DefaultModel string `key:"model" allowed:"demo or a name under models or connectors" default:"demo" help:"The model that is used when a request or an agent names none: demo, which is built in and needs no upstream, or a name under models or connectors."`

	Log        LogConfig        `key:"log"`
	Store      StoreConfig      `key:"store"`
	Objects    ObjectsConfig    `key:"objects"`
	Context    ContextConfig    `key:"context"`
	Chat       ChatConfig       `key:"chat"`
	Memory     MemoryConfig     `key:"memory"`
	Recall     RecallConfig     `key:"recall"`
	Transcript TranscriptConfig `key:"transcript"`
	Handoff    HandoffConfig    `key:"handoff"`
	Crews      CrewsConfig      `key:"crews"`
	Crew       CrewConfig       `key:"crew"`
	Telegram   TelegramConfig   `key:"telegram"`
	Turn       TurnConfig       `key:"turn"`
	Server     ServerConfig     `key:"server"`
	Budgets    BudgetsConfig    `key:"budgets"`
	Retention  RetentionConfig  `key:"retention"`
	Audit      AuditConfig      `key:"audit"`
	Gateway    GatewayConfig    `key:"gateway"`
	Demo       DemoConfig       `key:"demo"`
	Prompts    PromptsConfig    `key:"prompts"`
	Workflows  WorkflowsConfig  `key:"workflows"`
	Tools      ToolsConfig      `key:"tools"`
	Telemetry  TelemetryConfig  `key:"telemetry"`
	Catalogue  CatalogueConfig  `key:"catalogue"`

	// Known are the models whose limits and prices are known.
	Known known.Catalogue

	Models     map[string]ModelConfig
	Upstreams  map[string]UpstreamConfig
	Webhooks   map[string]WebhookConfig
	Agents     map[string]AgentConfig
	Connectors map[string]ConnectorConfig
	MCP        MCPConfig

	settings []Setting
	hints    []string
	ignored  []IgnoredVariable
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
		return "did you mean " + keyText(near) + "?"
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

// IgnoredVariable is a variable of the environment whose name begins like those of settings, and that is no setting.
// Kubernetes, for one, sets CONTINUO_PORT and others for a Service with the name continuo.
type IgnoredVariable struct {
	// Name is quoted where it has characters that names of settings have not.
	Name string
	// Advice says how to set what was perhaps meant. Default: no setting has a similar name.
	Advice string
}

// Ignored returns the variables that were ignored, sorted by name.
func (c *Config) Ignored() []IgnoredVariable { return slices.Clone(c.ignored) }
