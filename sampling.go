package continuo

import "encoding/json"

// Sampling is what a client asks of an answer besides the members of [Envelope] that every request has, in no protocol's
// form. A request has as much of it as its protocol can express; [Round.Omitted] names the rest.
type Sampling struct {
	ToolChoice        *ToolChoice `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool       `json:"parallel_tool_calls,omitempty"`
	TopP              *float64    `json:"top_p,omitempty"`
	TopK              *int        `json:"top_k,omitempty"`
	Stop              []string    `json:"stop,omitempty"`
	PresencePenalty   *float64    `json:"presence_penalty,omitempty"`
	FrequencyPenalty  *float64    `json:"frequency_penalty,omitempty"`
	Seed              *int64      `json:"seed,omitempty"`
	// ThinkingBudget is how many tokens the model may reason, for models that take a number. The envelope's
	// ReasoningEffort says the same for the others.
	ThinkingBudget *int `json:"thinking_budget,omitempty"`
	// ServiceTier is auto, default, flex, priority, or another tier of one provider.
	ServiceTier string `json:"service_tier,omitempty"`
	// User names the person behind the request for the provider's abuse detection.
	User string `json:"user,omitempty"`
	// CacheKey groups requests that share a beginning, for the provider's prompt cache.
	CacheKey string `json:"cache_key,omitempty"`
	// Verbosity is low, medium or high.
	Verbosity string `json:"verbosity,omitempty"`
}

// ToolChoice says whether the model calls tools. Mode is auto, none or required. Tools are the names of the only tools
// that it may call; empty for all.
type ToolChoice struct {
	Mode  string   `json:"mode"`
	Tools []string `json:"tools,omitempty"`
}

// The modes of a ToolChoice.
const (
	ChoiceAuto     = "auto"
	ChoiceNone     = "none"
	ChoiceRequired = "required"
)

// OwnMembers are the members of a client's request, as they came, for a request in the same protocol: it has them as they
// are, except for those that say what the model is shown. A request in another protocol does not have them.
type OwnMembers struct {
	Protocol string          `json:"protocol"`
	Members  json.RawMessage `json:"members"` // an object
}
