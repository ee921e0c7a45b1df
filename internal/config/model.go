package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// The protocols of upstreams.
const (
	ProtocolOpenAIChat        = "openai-chat"
	ProtocolAnthropicMessages = "anthropic-messages"
	ProtocolDemo              = "demo" // only the built-in model uses it
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

// The values of the setting strict.
const (
	StrictAuto     = "auto"
	StrictOn       = "true"
	StrictOff      = "false"
	StrictNoSystem = "no_system"
)

const (
	openAIURL    = "https://api.openai.com/v1"
	anthropicURL = "https://api.anthropic.com"
)

// ModelConfig is one model of the file. It never contains an API key, only the name of the variable that does.
type ModelConfig struct {
	Name     string // the key under models
	Protocol string
	// ToolCalls is ToolCallsNative, or ToolCallsTranscript for a model without native tool calls.
	ToolCalls string
	// StructuredOutputs is StructuredAuto, StructuredOff, StructuredObject or StructuredSchema.
	StructuredOutputs string
	// InlineThinking is InlineThinkingAuto or InlineThinkingOff.
	InlineThinking string
	// Strict is StrictAuto, StrictOn, StrictOff or StrictNoSystem.
	Strict  string
	BaseURL string // without a slash at its end
	Model   string // the upstream's name for it
	// APIKeyEnv is the name of the environment variable with the key, "" if no key is sent; APIKeySet says whether it
	// had a value when the settings were loaded.
	APIKeyEnv string
	APIKeySet bool
	Provider  string
	// ContextWindow is in tokens; 0 if unknown.
	ContextWindow int
	// MaxOutputTokens is 0 where the request leaves it to the provider; never 0 for Anthropic, whose protocol requires
	// a number.
	MaxOutputTokens int
	Temperature     *float64 // nil leaves it to the provider
	Headers         map[string]string
	// Fallback is another key of Models, "" for none.
	Fallback string
	// FirstTokenTimeout replaces TurnConfig's unless it is 0.
	FirstTokenTimeout time.Duration
}

// rows lists the settings of one model, their keys beginning with prefix.
func (m *ModelConfig) rows(prefix string) []*setting {
	rows := append(m.upstreamRows(prefix), m.limitRows(prefix)...)
	for _, row := range rows {
		if row.phrase == "" {
			row.mustRead(row.def)
		}
	}
	return rows
}

func (m *ModelConfig) upstreamRows(prefix string) []*setting {
	return []*setting{{
		key: prefix + "protocol", value: oneOf(&m.Protocol, ProtocolOpenAIChat, ProtocolAnthropicMessages), def: ProtocolOpenAIChat,
		doc: "The wire format that the upstream speaks.",
	}, {
		key: prefix + "tool_calls", value: oneOf(&m.ToolCalls, ToolCallsNative, ToolCallsTranscript), def: ToolCallsNative,
		doc: "How the model calls tools: native is the protocol's own way; transcript is for a model or server without tool calls, which is shown the conversation as text and writes its calls as text.",
	}, {
		key: prefix + "structured_outputs", value: oneOf(&m.StructuredOutputs, StructuredAuto, StructuredOff, StructuredObject, StructuredSchema), def: StructuredAuto,
		doc: "How steps of workflows ask for their outputs (response_format): json_schema and json_object do so in each request; auto is json_schema, where the request offers no tools or the provider is openai, because many servers cannot do both. An upstream that refuses one is asked in the next simpler way until the program ends. Only for openai-chat with native tool calls.",
	}, {
		key: prefix + "inline_thinking", value: oneOf(&m.InlineThinking, InlineThinkingAuto, InlineThinkingOff), def: InlineThinkingAuto,
		doc: "What <think>…</think> (or <thinking>) at the very beginning of an answer is: auto takes it for reasoning, which is neither shown as the answer nor sent back; off leaves it in the text.",
	}, {
		key: prefix + "strict", value: strictness(&m.Strict), def: StrictAuto,
		doc: "Whether requests keep to what strict chat templates take: one system message first, then user and assistant in turn. no_system puts the system message at the beginning of the first user message. auto begins without, and goes over to the form that the upstream's refusal asks for until the program ends. Only for openai-chat.",
	}, {
		key: prefix + "base_url", value: baseURL(&m.BaseURL), phrase: openAIURL + " or " + anthropicURL, example: openAIURL,
		doc: "Where the upstream is; the protocol's own path (/chat/completions, /v1/messages) is put behind it. The default follows the protocol.",
	}, {
		key: prefix + "model", value: name(&m.Model, "a name on one line, without spaces around it"), phrase: "the key under models",
		doc: "The upstream's name for the model.",
	}, {
		key: prefix + "api_key_env", value: variable(&m.APIKeyEnv), phrase: "OPENAI_API_KEY or ANTHROPIC_API_KEY", example: "OPENAI_API_KEY",
		doc: "The environment variable that holds the API key; empty sends none. The default stands only for the protocol's default base_url: another host gets no key that was not named for it.",
	}, {
		key: prefix + "provider", value: name(&m.Provider, "a name on one line, without spaces around it"), phrase: "anthropic for anthropic-messages; else openai, or the host of base_url", example: "openai",
		doc: "Who answers, as the log records it. Data that a provider wants back is only given back to the same provider.",
	}}
}

func (m *ModelConfig) limitRows(prefix string) []*setting {
	return []*setting{{
		key: prefix + "context_window", value: whole(&m.ContextWindow, 0), def: "0",
		doc: "How many tokens the model takes, prompt and answer together. 0: not known, so that requests are bounded by messages and characters only.",
	}, {
		key: prefix + "max_output_tokens", value: whole(&m.MaxOutputTokens, 0), phrase: "0; 4096 for anthropic-messages", example: "0",
		doc: "How many tokens the model may answer with. 0 leaves it to the provider; anthropic-messages demands a number and takes 4096 for 0.",
	}, {
		key: prefix + "temperature", value: temperature(&m.Temperature), phrase: "the provider's own", example: "1",
		doc: "How freely the model chooses its words; at most 1 for anthropic-messages.",
	}, {
		key: prefix + "fallback", value: fallbackName(&m.Fallback), def: "",
		doc: "The model that is asked when this one has failed before it showed anything, after its retries. The fallback's own fallback is not asked.",
	}, {
		key: prefix + "first_token_timeout", value: optionalDuration(&m.FirstTokenTimeout), phrase: "turn.first_token_timeout", example: "15m",
		doc: "How long the model may take until the first text, reasoning or tool call of its answer. Raise it for one that thinks in silence.",
	}}
}

// headersRow is a row for display; headers are read one by one (modelReader.headers).
func (m *ModelConfig) headersRow(prefix string) *setting {
	return &setting{
		key: prefix + "headers", phrase: "none",
		doc: "HTTP headers that each request to the upstream carries besides its own. Headers for keys are refused: name the key's variable in api_key_env.",
		value: value{
			allowed: "a mapping of header names to texts", takes: []yamltree.Kind{yamltree.Mapping}, hidden: true,
			set: func(string) error { return errNotAllowed },
			show: func() string {
				names := make([]string, 0, len(m.Headers))
				for name := range m.Headers {
					names = append(names, name)
				}
				slices.Sort(names)
				return strings.Join(names, ", ")
			},
		},
	}
}

// resolve sets the defaults that follow from other values of the model.
func (m *ModelConfig) resolve(rows []*setting, env map[string]string) {
	row := func(key string) *setting {
		at := slices.IndexFunc(rows, func(s *setting) bool { return strings.HasSuffix(s.key, "."+key) })
		return rows[at]
	}
	vendor, vendorURL, vendorEnv, output := "openai", openAIURL, "OPENAI_API_KEY", "0"
	if m.Protocol == ProtocolAnthropicMessages {
		vendor, vendorURL, vendorEnv, output = "anthropic", anthropicURL, "ANTHROPIC_API_KEY", "4096"
	}
	row("base_url").setDefault(vendorURL)
	if m.BaseURL != vendorURL {
		vendorEnv = ""
		if m.Protocol != ProtocolAnthropicMessages { // any endpoint of this protocol accepts its blocks again
			vendor = hostOf(m.BaseURL)
		}
	}
	row("model").setDefault(m.Name)
	row("provider").setDefault(vendor)
	row("api_key_env").setDefault(vendorEnv)
	row("max_output_tokens").setDefault(output)
	if m.Protocol == ProtocolAnthropicMessages {
		m.MaxOutputTokens = cmp.Or(m.MaxOutputTokens, 4096)
	}
	m.APIKeySet = m.APIKeyEnv != "" && env[m.APIKeyEnv] != ""
}

// conflict returns a conflict between values that are each valid; nil if there is none.
func (m *ModelConfig) conflict() (key string, err error) {
	switch {
	case m.Protocol == ProtocolAnthropicMessages && m.Temperature != nil && *m.Temperature > 1:
		return "temperature", fmt.Errorf("given %v; allowed: a number from 0 to 1 for %s", *m.Temperature, m.Protocol)
	case m.Protocol == ProtocolAnthropicMessages && m.Strict != StrictAuto:
		return "strict", fmt.Errorf("given %s; allowed: auto for %s, whose requests keep to that form anyway", m.Strict, m.Protocol)
	case m.StructuredOutputs != StructuredAuto && m.StructuredOutputs != StructuredOff && (m.Protocol == ProtocolAnthropicMessages || m.ToolCalls == ToolCallsTranscript):
		return "structured_outputs", fmt.Errorf("given %s; allowed: auto or off for %s with tool_calls: %s", m.StructuredOutputs, m.Protocol, m.ToolCalls)
	case m.ContextWindow > 0 && m.MaxOutputTokens >= m.ContextWindow:
		return "context_window", fmt.Errorf("given %d; allowed: more than max_output_tokens, which is %d, or 0 when it is not known",
			m.ContextWindow, m.MaxOutputTokens)
	}
	return "", nil
}

// strictness is a value of the setting strict, two of which YAML reads as booleans.
func strictness(place *string) value {
	word := oneOf(place, StrictAuto, StrictOn, StrictOff, StrictNoSystem)
	word.takes = append(word.takes, yamltree.Bool)
	return word
}

// fallbackName is the name of a model or empty; whether that model exists is checked once all are read.
func fallbackName(place *string) value {
	named := name(place, `another name under models, or "" for none`)
	set := named.set
	named.set = func(text string) error {
		if text == "" {
			*place = ""
			return nil
		}
		return set(text)
	}
	return named
}

// hostOf returns the host of a validated base URL, with its port: two upstreams on one machine are two providers.
func hostOf(base string) string {
	location, err := url.Parse(base)
	if err != nil {
		return base
	}
	return location.Host
}

// baseURL is an http or https URL to which a path can be appended, without any part that could contain a secret.
func baseURL(place *string) value {
	return value{
		allowed: "an http or https URL with a host and without user, query and fragment, such as " + openAIURL,
		takes:   []yamltree.Kind{yamltree.Text},
		hidden:  true,
		set: func(text string) error {
			location, err := url.Parse(text)
			if err != nil || location.Scheme != "https" && location.Scheme != "http" || location.Hostname() == "" || !isName(text) ||
				location.User != nil || strings.ContainsAny(text, "?# ") {
				return errNotAllowed
			}
			*place = strings.TrimRight(text, "/")
			return nil
		},
		show: func() string { return *place },
	}
}

// variable is the name of an environment variable. Lower-case letters are refused because many providers' keys would
// pass for names with them.
func variable(place *string) value {
	return value{
		allowed: `the name of an environment variable in capital letters, digits and _, such as OPENAI_API_KEY, or "" to send no key; the key itself stays in the environment`,
		takes:   []yamltree.Kind{yamltree.Text},
		hidden:  true,
		set: func(text string) error {
			if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || len(text) > 100 || text != "" && text[0] >= '0' && text[0] <= '9' {
				return errNotAllowed
			}
			if strings.HasPrefix(text, envPrefix) {
				return errors.New("variables that begin with CONTINUO_ are settings; give the key another one")
			}
			*place = text
			return nil
		},
		show: func() string { return *place },
	}
}

// checkHeader refuses headers that are not valid in HTTP and those that carry secrets.
func checkHeader(name, text string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenRune(r) }) {
		return errors.New("not a header name; allowed: letters, digits and -")
	}
	if !isLine(text) || strings.TrimSpace(text) != text {
		return errors.New("not a header value; allowed: one line of text without spaces around it")
	}
	lower := strings.ToLower(http.CanonicalHeaderKey(name))
	for _, secret := range []string{"auth", "key", "token", "secret", "password", "cookie"} {
		if strings.Contains(lower, secret) {
			return errors.New("a header that looks as if it carried a secret; keys never stand in the file: name the variable that holds the key in api_key_env")
		}
	}
	return nil
}

// isTokenRune reports whether r is allowed in a header name (RFC 9110, section 5.6.2).
func isTokenRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
