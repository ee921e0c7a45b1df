// Package anthropic holds the wire types of Anthropic's Messages API, which the server reads and the renderer and the
// model client write.
//
// Names and meanings are those of the official SDK's types (anthropics/anthropic-sdk-typescript,
// src/resources/messages). Members are in the order in which the API builds its cache prefix, tools, system, messages,
// after the few settings, so that a longer conversation only adds bytes at the end.
package anthropic

import "encoding/json"

// Request is the body of POST /v1/messages.
type Request struct {
	Model string `json:"model"`
	// MaxTokens bounds the answer; the API requires it in every request.
	MaxTokens     int           `json:"max_tokens"`
	Stream        bool          `json:"stream,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	TopP          *float64      `json:"top_p,omitempty"`
	TopK          *int          `json:"top_k,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	ServiceTier   string        `json:"service_tier,omitempty"` // auto or standard_only
	Metadata      *Metadata     `json:"metadata,omitempty"`
	Thinking      *Thinking     `json:"thinking,omitempty"`
	OutputConfig  *OutputConfig `json:"output_config,omitempty"`
	ToolChoice    *ToolChoice   `json:"tool_choice,omitempty"`
	// Tools are Tool objects, or tools of the provider, kept raw.
	Tools  []json.RawMessage `json:"tools,omitempty"`
	System []TextBlock       `json:"system,omitempty"`
	// Messages are InputMessage objects, kept raw so that unknown blocks are kept too. They are the last member; the
	// renderer adds them to the others.
	Messages []json.RawMessage `json:"messages,omitempty"`
}

// Metadata names the person behind a request.
type Metadata struct {
	UserID string `json:"user_id,omitempty"`
}

// Thinking says how a model thinks: of the type enabled for at most BudgetTokens, which count as output, of the type
// adaptive as long as it chooses.
type Thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens,omitempty"`
}

// OutputConfig is the effort of an answer (low, medium, high, xhigh or max) and its form.
type OutputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *OutputFormat `json:"format,omitempty"`
}

// OutputFormat is the schema of an answer.
type OutputFormat struct {
	Type   string          `json:"type"` // always "json_schema"
	Schema json.RawMessage `json:"schema"`
}

// ToolChoice is of the type auto, any, none, or tool with a name.
type ToolChoice struct {
	Type                   string `json:"type"`
	Name                   string `json:"name,omitempty"`
	DisableParallelToolUse bool   `json:"disable_parallel_tool_use,omitempty"`
}

// InputMessage is one message of a request. Its blocks are objects with a type.
type InputMessage struct {
	Role    string            `json:"role"` // "user" or "assistant"
	Content []json.RawMessage `json:"content"`
}

// CacheControl marks the end of a prefix that the API is to cache. At most four in a request.
type CacheControl struct {
	Type string `json:"type"` // always "ephemeral"
}

// Tool is one tool that the model may call. InputSchema is a JSON Schema of an object.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *CacheControl   `json:"cache_control,omitempty"`
}

// TextBlock is text, in messages and in the system prompt. It must not be blank.
type TextBlock struct {
	Type         string        `json:"type"` // always "text"
	Text         string        `json:"text"`
	CacheControl *CacheControl `json:"cache_control,omitempty"`
}

// ThinkingBlock is a model's thinking, which must be sent back unchanged.
type ThinkingBlock struct {
	Type      string `json:"type"` // always "thinking"
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// ToolUseBlock is a call in an assistant message. Input is a JSON object.
type ToolUseBlock struct {
	Type  string          `json:"type"` // always "tool_use"
	ID    string          `json:"id"`   // letters, digits, "_" and "-"
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// ToolResultBlock answers a call, in the user message that follows it. Content is a string or a list of
// blocks.
type ToolResultBlock struct {
	Type      string          `json:"type"` // always "tool_result"
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// MediaBlock is an image or a document in a user message or a tool result.
type MediaBlock struct {
	Type   string      `json:"type"` // "image" or "document"
	Source MediaSource `json:"source"`
	Title  string      `json:"title,omitempty"` // of a document
}

// MediaSource contains the bytes (type "base64") or the text (type "text"), or the address (type "url").
type MediaSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}
