package config

import (
	"slices"
	"strings"
)

// The values of the setting credentials.
const (
	CredentialsOwn     = "own"
	CredentialsForward = "forward"
)

// UpstreamConfig is where the gateway sends requests for models that are not under models, under the names that clients
// ask for.
type UpstreamConfig struct {
	Name        string // the key under upstreams
	APIKeySet   bool
	Protocol    string            `key:"protocol" enum:"openai-chat,openai-responses,anthropic-messages,gemini" default:"openai-chat" help:"The wire format that the upstream speaks. Of several upstreams for a model, a request goes to the one that speaks the client's."`
	BaseURL     string            `key:"base_url" kind:"base_url" unset:"as for a model" example:"https://api.openai.com/v1" help:"Where the upstream is, as for a model."`
	APIKeyEnv   string            `key:"api_key_env" kind:"variable" unset:"as for a model" example:"OPENAI_API_KEY" help:"The environment variable that holds the API key; empty sends none."`
	Credentials string            `key:"credentials" enum:"own,forward" default:"own" help:"Whose credentials a forwarded request has: own is the key in api_key_env; forward passes the client's own on, which are never stored. A server with keys of its own takes its key in X-Continuo-Key then."`
	Models      []string          `key:"models" kind:"models" default:"*" help:"The names of models that the upstream serves; * stands for any characters. A list."`
	Window      string            `key:"window" kind:"window" unset:"gateway.window" example:"client" help:"What the upstream's models are shown of a client's request, as gateway.window says it for all."`
	Provider    string            `key:"provider" unset:"as for a model" example:"openai" help:"Who answers, as the log records it."`
	Headers     map[string]string `key:"headers" kind:"plain_headers" unset:"none" help:"HTTP headers that each request to the upstream carries besides its own."`
}

func (u *UpstreamConfig) finish(r *fileReader, e *entry, _ bool) {
	p, err := ProtocolOf(u.Protocol)
	if err != nil { // a refused value leaves the default
		row := e.row("protocol")
		r.problems.add(row.origin, "%s: %w", row.key, err)
		return
	}
	provider, keyEnv := p.Provider, p.APIKeyEnv
	e.row("base_url").setDefault(p.BaseURL)
	if u.BaseURL != p.BaseURL {
		keyEnv = ""
		if !p.AnyHost {
			provider = hostOf(u.BaseURL)
		}
	}
	e.row("provider").setDefault(provider)
	e.row("api_key_env").setDefault(keyEnv)
	u.APIKeySet = u.APIKeyEnv != "" && r.env[u.APIKeyEnv] != ""
	r.config.Upstreams[u.Name] = *u
}

func (u *UpstreamConfig) check(*loader, *entry) {}

// Model is the model of a name that a client asks for.
func (u UpstreamConfig) Model(name string) ModelConfig {
	protocol, _ := ProtocolOf(u.Protocol) // finish has checked it
	return ModelConfig{
		Name: name, Model: name, APIKeySet: u.APIKeySet, Protocol: u.Protocol, ToolCalls: ToolCallsNative, StructuredOutputs: StructuredAuto,
		InlineThinking: InlineThinkingOff, Strict: StrictAuto, BaseURL: u.BaseURL, APIKeyEnv: u.APIKeyEnv, Provider: u.Provider,
		MaxOutputTokens: protocol.MaxOutputTokens, ReasoningEffort: ReasoningAuto, Headers: u.Headers,
	}
}

// vendorModels are the names of the models of vendors, by the variables of their keys.
var vendorModels = map[string][]string{
	"OPENAI_API_KEY": {"gpt-*", "chatgpt-*", "codex-*", "o1*", "o3*", "o4*", "text-embedding-*"}, "ANTHROPIC_API_KEY": {"claude-*"}, "GEMINI_API_KEY": {"gemini-*", "gemma-*"},
}

// FoundUpstreams returns the upstreams of the vendors whose keys are in the environment; none where the file has models or
// upstreams. The key of one vendor alone serves every name.
func (c *Config) FoundUpstreams(isSet func(variable string) bool) []UpstreamConfig {
	if len(c.Upstreams) > 0 || len(c.Models) > 0 {
		return nil
	}
	var found []UpstreamConfig
	vendors := map[string]bool{}
	for _, p := range Protocols() {
		if isSet(p.APIKeyEnv) {
			vendors[p.APIKeyEnv] = true
			found = append(found, UpstreamConfig{
				Name: strings.ToLower(strings.TrimSuffix(p.APIKeyEnv, "_API_KEY")), APIKeySet: true, Protocol: p.Name, BaseURL: p.BaseURL, APIKeyEnv: p.APIKeyEnv,
				Credentials: CredentialsOwn, Models: vendorModels[p.APIKeyEnv], Provider: p.Provider,
			})
		}
	}
	if len(vendors) == 1 {
		for i := range found {
			found[i].Models = []string{"*"}
		}
	}
	return found
}

// UpstreamNames returns the names of the upstreams of the file, sorted.
func (c *Config) UpstreamNames() []string {
	var names []string
	for name := range c.Upstreams {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
