package openaichat

import (
	"encoding/json"
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Response is the answer to a non-streaming request.
type Response struct {
	ID                string   `json:"id"`
	Object            string   `json:"object"` // "chat.completion"
	Created           Seconds  `json:"created"`
	Model             string   `json:"model"`
	Choices           []Choice `json:"choices"`
	Usage             *Usage   `json:"usage,omitempty"`
	SystemFingerprint string   `json:"system_fingerprint,omitempty"`
}

// Seconds is Unix time. Some compatible servers write it with a fraction, which is dropped.
type Seconds int64

// UnmarshalJSON reads a number; any other value becomes 0, since nothing depends on it.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	var number float64
	_ = json.Unmarshal(data, &number)
	*s = Seconds(number)
	return nil
}

// Choice is one answer. FinishReason is stop, tool_calls, length, content_filter, or another value of a compatible
// server.
type Choice struct {
	Index        int             `json:"index"`
	Message      Message         `json:"message"`
	Logprobs     json.RawMessage `json:"logprobs,omitempty"`
	FinishReason *string         `json:"finish_reason"`
	// Usage is here at some compatible servers, instead of in the response.
	Usage *Usage `json:"usage,omitempty"`
}

// Message is an assistant message: complete in a Response, a fragment in a Chunk. Members that are not listed are in
// Extra, in their order.
type Message struct {
	Role string
	// Content is a string, null, or a list of parts from some compatible servers; nil if absent.
	Content json.RawMessage
	// Refusal is a string or null; nil when absent.
	Refusal json.RawMessage
	// Reasoning is the thinking text of compatible servers. It is read from reasoning_content or, if that is absent,
	// from reasoning, and written as reasoning_content.
	Reasoning string
	ToolCalls []ToolCall
	// FunctionCall is the format that preceded tool_calls; it is read only.
	FunctionCall *Function
	Extra        rawjson.Object
}

// MarshalJSON writes the members that are present.
func (m Message) MarshalJSON() ([]byte, error) {
	var object rawjson.Object
	if m.Role != "" {
		object.Set("role", rawjson.MustMarshal(m.Role))
	}
	if m.Content != nil {
		object.Set("content", m.Content)
	}
	if m.Refusal != nil {
		object.Set("refusal", m.Refusal)
	}
	if m.Reasoning != "" {
		object.Set("reasoning_content", rawjson.MustMarshal(m.Reasoning))
	}
	if len(m.ToolCalls) > 0 {
		calls, err := rawjson.Marshal(m.ToolCalls)
		if err != nil {
			return nil, err
		}
		object.Set("tool_calls", calls)
	}
	return rawjson.Marshal(append(object, m.Extra...))
}

// UnmarshalJSON reads a message; null reads as an empty one.
func (m *Message) UnmarshalJSON(data []byte) error {
	*m = Message{}
	if rawjson.IsNull(data) {
		return nil
	}
	object, err := rawjson.ParseObject(data)
	if err != nil {
		return fmt.Errorf("message: %w", err)
	}
	for _, field := range object {
		if err := m.set(field); err != nil {
			return fmt.Errorf("message: %s: %w", field.Key, err)
		}
	}
	return nil
}

func (m *Message) set(field rawjson.Field) error {
	switch field.Key {
	case "role":
		m.Role, _ = rawjson.String(field.Value)
	case "content":
		m.Content = field.Value
	case "refusal":
		m.Refusal = field.Value
	case "reasoning_content", "reasoning":
		text, ok := rawjson.String(field.Value)
		if !ok && !rawjson.IsNull(field.Value) {
			m.Extra = append(m.Extra, field) // some servers put an object there
		}
		if m.Reasoning == "" || field.Key == "reasoning_content" && text != "" {
			m.Reasoning = text
		}
	case "tool_calls":
		return json.Unmarshal(field.Value, &m.ToolCalls)
	case "function_call":
		return json.Unmarshal(field.Value, &m.FunctionCall)
	default:
		m.Extra = append(m.Extra, field)
	}
	return nil
}

// ToolCall is a call, or in a Chunk a fragment of one. Members that are not listed are in Extra.
type ToolCall struct {
	// Index is the call's index among the calls of a streamed message; nil in a Response, and at servers that omit it.
	Index    *int
	ID       string
	Type     string    // "function", "custom", or empty in a later fragment
	Function *Function // of a function
	Custom   *Custom   // of a custom tool
	Extra    rawjson.Object
}

// Function is a function's name and its arguments, or a fragment of them.
type Function struct {
	Name      string    `json:"name,omitempty"`
	Arguments Arguments `json:"arguments"`
}

// Custom is a custom tool's name and its input, or a fragment of it.
type Custom struct {
	Name  string    `json:"name,omitempty"`
	Input Arguments `json:"input"`
}

// Arguments is the text of a call's arguments. Where a server sends a JSON value that is no string, it is the bytes of
// that value; null is empty.
type Arguments string

// UnmarshalJSON reads a string, or takes the bytes.
func (a *Arguments) UnmarshalJSON(data []byte) error {
	text, ok := rawjson.String(data)
	switch {
	case ok:
		*a = Arguments(text)
	case rawjson.IsNull(data):
		*a = ""
	default:
		*a = Arguments(data)
	}
	return nil
}

// MarshalJSON writes the members that are present.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	var object rawjson.Object
	if c.Index != nil {
		object.Set("index", rawjson.MustMarshal(*c.Index))
	}
	if c.ID != "" {
		object.Set("id", rawjson.MustMarshal(c.ID))
	}
	if c.Type != "" {
		object.Set("type", rawjson.MustMarshal(c.Type))
	}
	if c.Function != nil {
		object.Set("function", rawjson.MustMarshal(c.Function))
	}
	if c.Custom != nil {
		object.Set("custom", rawjson.MustMarshal(c.Custom))
	}
	return rawjson.Marshal(append(object, c.Extra...))
}

// UnmarshalJSON reads a call or a fragment of one.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	var known struct {
		Index    *int      `json:"index"`
		ID       string    `json:"id"`
		Type     string    `json:"type"`
		Function *Function `json:"function"`
		Custom   *Custom   `json:"custom"`
	}
	if err := json.Unmarshal(data, &known); err != nil {
		return fmt.Errorf("tool call: %w", err)
	}
	object, err := rawjson.ParseObject(data)
	if err != nil {
		return fmt.Errorf("tool call: %w", err)
	}
	*c = ToolCall{
		Index: known.Index, ID: known.ID, Type: known.Type, Function: known.Function, Custom: known.Custom,
		Extra: object.Without("index", "id", "type", "function", "custom"),
	}
	return nil
}

// Usage counts the tokens of a request and its answer.
type Usage struct {
	PromptTokens            int                `json:"prompt_tokens"`
	CompletionTokens        int                `json:"completion_tokens"`
	TotalTokens             int                `json:"total_tokens"`
	PromptTokensDetails     *PromptDetails     `json:"prompt_tokens_details,omitempty"`
	CompletionTokensDetails *CompletionDetails `json:"completion_tokens_details,omitempty"`
	// PromptCacheHitTokens is DeepSeek's name for PromptTokensDetails.CachedTokens; it is read only.
	PromptCacheHitTokens int `json:"prompt_cache_hit_tokens,omitempty"`
}

// PromptDetails says how much of the prompt was read from the provider's cache, and how much was written to it.
type PromptDetails struct {
	CachedTokens     int `json:"cached_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
}

// CompletionDetails says how much of the answer was thinking.
type CompletionDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}
