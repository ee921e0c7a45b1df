package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The ways in which a model calls tools.
const (
	ToolCallsNative     = "native"
	ToolCallsTranscript = "transcript"
)

// The values of the setting structured_outputs.
const (
	StructuredAuto   = "auto"
	StructuredOff    = "off"
	StructuredObject = "json_object"
	StructuredSchema = "json_schema"
)

// The values of the setting inline_thinking.
const (
	InlineThinkingAuto = "auto"
	InlineThinkingOff  = "off"
)

// ReasoningAuto is the value of the setting reasoning_effort that sends none.
const ReasoningAuto = "auto"

// The values of the setting strict.
const (
	StrictAuto     = "auto"
	StrictOn       = "true"
	StrictOff      = "false"
	StrictNoSystem = "no_system"
)

// ModelConfig is one model of the file. It never contains an API key, only the name of the variable that does.
type ModelConfig struct {
	Name              string // the key under models
	APIKeySet         bool
	Protocol          string `key:"protocol" enum:"openai-chat,openai-responses,anthropic-messages,gemini" default:"openai-chat" help:"The wire format that the upstream speaks."`
	ToolCalls         string `key:"tool_calls" enum:"native,transcript" default:"native" help:"How the model calls tools: native is the protocol's own way; transcript is for a model or server without tool calls, which is shown the conversation as text and writes its calls as text."`
	StructuredOutputs string `key:"structured_outputs" enum:"auto,off,json_object,json_schema" default:"auto" help:"How steps of workflows ask for their outputs (response_format): json_schema and json_object do so in each request; auto is json_schema, where the request offers no tools or the provider is openai, because many servers cannot do both. An upstream that refuses one is asked in the next simpler way until the program ends. anthropic-messages has auto, with tools too, and off only; tool_calls: transcript has none."`
	InlineThinking    string `key:"inline_thinking" enum:"auto,off" default:"auto" help:"What <think>…</think> (or <thinking>) at the very beginning of an answer is: auto takes it for reasoning, which is neither shown as the answer nor sent back; off leaves it in the text."`
	Strict            string `key:"strict" enum:"auto,true,false,no_system" default:"auto" help:"Whether requests keep to what strict chat templates take: one system message first, then user and assistant in turn. no_system puts the system message at the beginning of the first user message. auto begins without, and goes over to the form that the upstream's refusal asks for until the program ends. Only for openai-chat."`
	// BaseURL has no slash at its end.
	BaseURL string `key:"base_url" kind:"base_url" unset:"https://api.openai.com/v1, https://api.anthropic.com or https://generativelanguage.googleapis.com" example:"https://api.openai.com/v1" help:"Where the upstream is; the protocol's own path (/chat/completions, /responses, /v1/messages, /v1beta/models/…) is put behind it. The default follows the protocol."`
	Model   string `key:"model" unset:"the key under models" help:"The upstream's name for the model."`
	// APIKeyEnv is the name of the environment variable with the key, "" if no key is sent; APIKeySet says whether it
	// had a value when the settings were loaded.
	APIKeyEnv     string `key:"api_key_env" kind:"variable" unset:"OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY" example:"OPENAI_API_KEY" help:"The environment variable that holds the API key; empty sends none. The default applies only to the protocol's default base_url: another host gets no key that was not named for it."`
	Provider      string `key:"provider" unset:"anthropic for anthropic-messages, google for gemini; else openai, or the host of base_url" example:"openai" help:"Who answers, as the log records it. Data that a provider wants back is only given back to the same provider."`
	ContextWindow int    `key:"context_window" unset:"the model's own, where the catalogue has it; else 0" example:"200000" help:"How many tokens the model takes, prompt and answer together. 0: not known, so that requests are bounded by messages and characters only."`
	// MaxOutputTokens is 0 where the request leaves it to the provider. Anthropic's protocol requires a number: it is 0
	// there only with a ReasoningEffort, to which the request's number is adapted.
	MaxOutputTokens   int               `key:"max_output_tokens" unset:"0; for anthropic-messages the model's own limit, or 4096" example:"0" help:"How many tokens the model may answer with. 0 leaves it to the provider; anthropic-messages demands a number and takes the model's limit for 0 where the catalogue has it, else 4096."`
	Temperature       *float64          `key:"temperature" max:"2" unset:"the provider's own" example:"1" help:"The sampling temperature: how random the answer is; at most 1 for anthropic-messages."`
	ReasoningEffort   string            `key:"reasoning_effort" enum:"auto,none,minimal,low,medium,high,xhigh" default:"auto" help:"How much a reasoning model reasons: more takes longer and costs more. auto leaves it to the model; any other value also asks openai-responses and gemini for the readable text of the reasoning. Older models of anthropic-messages get a thinking budget in tokens for the effort; where neither max_output_tokens nor the catalogue has a limit, it is added to what the answer may have. Models without reasoning refuse it."`
	ThinkingBudget    int               `key:"thinking_budget" default:"0" help:"How many tokens the model may reason, for models that take a number (older ones of anthropic-messages and gemini); others get the reasoning_effort nearest to it. 0 leaves it to reasoning_effort. Not for requests of the gateway's clients."`
	TopP              *float64          `key:"top_p" max:"1" unset:"the provider's own" example:"1" help:"Nucleus sampling: only the likeliest tokens with this much probability together are drawn from. Models that reason, and refuse it, are not sent it. Not for requests of the gateway's clients."`
	Stop              []string          `key:"stop" kind:"texts" help:"Texts at which the answer ends. Not for openai-responses, nor for requests of the gateway's clients."`
	Seed              *int64            `key:"seed" min:"-9223372036854775807" max:"9223372036854775807" unset:"none" example:"1" help:"A seed that makes sampling repeat itself where the provider can. For openai-chat and gemini; not for requests of the gateway's clients."`
	ResponseFormat    json.RawMessage   `key:"response_format" unset:"none" help:"The format of answers, in the form of chat completions, whatever the protocol: {type: json_object}, or {type: json_schema, json_schema: {name: NAME, schema: …}}, which alone anthropic-messages has. Steps of workflows and requests of the gateway's clients have their own."`
	ExtraBody         json.RawMessage   `key:"extra_body" unset:"none" help:"Members that each request has besides its own, as the provider's documentation has them, such as {enable_thinking: false}. A member that the request has is replaced, but not what says which model is shown what."`
	KnownAs           string            `key:"known_as" empty:"to look for the provider and the model" allowed:"a vendor and a model of the catalogue, such as openai/gpt-5.5" help:"The entry of the catalogue of models that has this model's limits and prices, where provider and model do not name it: behind a proxy, or for a deployment with a name of its own."`
	InputPrice        *float64          `key:"input_price" max:"1000000" unset:"the catalogue's" example:"3" help:"What a million tokens of input cost, in US dollars. Given together with output_price, it replaces the catalogue's prices."`
	CachedInputPrice  *float64          `key:"cached_input_price" max:"1000000" unset:"the catalogue's, or input_price if that is given" example:"0.3" help:"What a million tokens of input cost that the provider had cached, in US dollars."`
	CacheWritePrice   *float64          `key:"cache_write_price" max:"1000000" unset:"the catalogue's, or input_price if that is given" example:"3.75" help:"What a million tokens of input cost that are written to the provider's cache, in US dollars."`
	OutputPrice       *float64          `key:"output_price" max:"1000000" unset:"the catalogue's" example:"15" help:"What a million tokens of the answer cost, reasoning included, in US dollars."`
	Fallback          string            `key:"fallback" allowed:"another name under models" empty:"for none" help:"The model that is asked when this one has failed before it showed anything, after its retries. The fallback's own fallback is not asked."`
	FirstTokenTimeout time.Duration     `key:"first_token_timeout" unset:"turn.first_token_timeout" example:"15m" help:"How long the model may take until the first text, reasoning or tool call of its answer. Raise it for one that thinks in silence."`
	Window            string            `key:"window" kind:"window" unset:"gateway.window" example:"client" help:"What the model is shown of a client's request to the gateway, as gateway.window says it for all."`
	Headers           map[string]string `key:"headers" kind:"plain_headers" unset:"none" help:"HTTP headers that each request to the upstream carries besides its own. Headers for keys are refused: name the key's variable in api_key_env."`
}

func takenByDemo(name string) string {
	if name == DemoModel {
		return "the name demo is taken by the built-in model; choose another"
	}
	return ""
}

func (m *ModelConfig) finish(r *fileReader, e *entry, _ bool) {
	p, err := ProtocolOf(m.Protocol)
	if err != nil { // a refused value leaves the default
		row := e.row("protocol")
		r.problems.add(row.origin, "%s: %w", row.key, err)
		return
	}
	m.resolve(e, r.env, p)
	if key, err := m.conflict(p); err != nil {
		row := e.row(key)
		r.problems.add(row.origin, "%s: %w", row.key, err)
	}
	r.config.Models[m.Name] = *m
}

// check takes what the catalogue knows of the model, and refuses a fallback that is not another model.
func (m *ModelConfig) check(l *loader, e *entry) {
	m.fromCatalogue(l, e)
	if _, known := l.config.Models[m.Fallback]; m.Fallback == "" || known && m.Fallback != m.Name {
		return
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(l.config.Models)), func(other string) bool { return other == m.Name })
	advice := "there is no other model"
	if len(others) > 0 {
		advice = "the other models are " + strings.Join(others, ", ")
	}
	row := e.row("fallback")
	l.problems.add(row.origin, "%s: given %s, which is no other model; %s", row.key, quoted(m.Fallback), advice)
}

// resolve sets the defaults that follow from other values of the model.
func (m *ModelConfig) resolve(e *entry, env map[string]string, p Protocol) {
	provider, keyEnv := p.Provider, p.APIKeyEnv
	e.row("base_url").setDefault(p.BaseURL)
	if m.BaseURL != p.BaseURL {
		keyEnv = ""
		if !p.AnyHost {
			provider = hostOf(m.BaseURL)
		}
	}
	e.row("model").setDefault(m.Name)
	e.row("provider").setDefault(provider)
	e.row("api_key_env").setDefault(keyEnv)
	if m.ThinkingBudget > 0 {
		e.row("reasoning_effort").setDefault(effortOf(m.ThinkingBudget))
	}
	most := p.MaxOutputTokens
	if m.ReasoningEffort != ReasoningAuto {
		most = 0 // the request has room for the thinking too
	}
	e.row("max_output_tokens").setDefault(strconv.Itoa(most))
	m.MaxOutputTokens = cmp.Or(m.MaxOutputTokens, most)
	m.APIKeySet = m.APIKeyEnv != "" && env[m.APIKeyEnv] != ""
	e.row("api_key_env").value.show = func() string {
		switch {
		case m.APIKeyEnv == "":
			return ""
		case m.APIKeySet:
			return m.APIKeyEnv + " (set)"
		default:
			return m.APIKeyEnv + " (not set)"
		}
	}
}

// conflict returns a conflict between values that are each valid; nil if there is none.
func (m *ModelConfig) conflict(p Protocol) (key string, err error) {
	switch {
	case m.Temperature != nil && *m.Temperature > p.MaxTemperature:
		return "temperature", fmt.Errorf("given %v; allowed: a number from 0 to %v for %s", *m.Temperature, p.MaxTemperature, m.Protocol)
	case !p.Strict && m.Strict != StrictAuto:
		return "strict", fmt.Errorf("given %s; allowed: auto for %s, whose requests keep to that form anyway", m.Strict, m.Protocol)
	case m.StructuredOutputs != StructuredAuto && m.StructuredOutputs != StructuredOff && (!p.StructuredOutputs || m.ToolCalls == ToolCallsTranscript):
		return "structured_outputs", fmt.Errorf("given %s; allowed: auto or off for %s with tool_calls: %s", m.StructuredOutputs, m.Protocol, m.ToolCalls)
	case (m.InputPrice == nil) != (m.OutputPrice == nil):
		key = map[bool]string{true: "output_price", false: "input_price"}[m.InputPrice == nil]
		return key, errors.New("input_price and output_price are given together or not at all")
	case m.InputPrice == nil && m.CachedInputPrice != nil:
		return "cached_input_price", errors.New("give input_price and output_price too: the prices replace the catalogue's together")
	case m.InputPrice == nil && m.CacheWritePrice != nil:
		return "cache_write_price", errors.New("give input_price and output_price too: the prices replace the catalogue's together")
	case m.ContextWindow > 0 && m.MaxOutputTokens >= m.ContextWindow:
		return "context_window", fmt.Errorf("given %d; allowed: more than max_output_tokens, which is %d, or 0 when it is not known",
			m.ContextWindow, m.MaxOutputTokens)
	}
	return m.extraConflict()
}

// hostOf returns the host of a validated base URL, with its port: two upstreams on one machine are two providers.
func hostOf(base string) string {
	location, err := url.Parse(base)
	if err != nil {
		return base
	}
	return location.Host
}

// hints looks for settings that are valid but probably not what was meant.
func hints(c *Config, env map[string]string) []string {
	var found []string
	if _, connector := c.Connectors[c.DefaultModel]; connector {
		return nil
	}
	if len(c.Models) == 0 {
		mentioned := map[string]bool{}
		for _, p := range Protocols() {
			if env[p.APIKeyEnv] != "" && !mentioned[p.APIKeyEnv] {
				mentioned[p.APIKeyEnv] = true
				found = append(found, fmt.Sprintf("%s is set, but no model uses it, so the built-in demo answers: add a model with protocol %s under models in continuo.yaml, and set model to its name",
					p.APIKeyEnv, p.Name))
			}
		}
		return found
	}
	if c.DefaultModel == DemoModel {
		names := slices.DeleteFunc(c.ModelNames(), func(name string) bool { return name == DemoModel })
		return append(found, fmt.Sprintf("the default model is the built-in demo, although models has %s: set model to the name of one", strings.Join(names, ", ")))
	}
	if problem := c.MissingKey(); problem != "" {
		found = append(found, problem)
	}
	return found
}

// MissingKey says that the key of the default model is not set; "" if it is, or if the model needs none.
func (c *Config) MissingKey() string {
	model := c.Models[c.DefaultModel]
	if model.APIKeyEnv == "" || model.APIKeySet {
		return ""
	}
	return fmt.Sprintf("the default model %s takes its key from %s, which is not set: set it where continuo starts", model.Name, model.APIKeyEnv)
}
