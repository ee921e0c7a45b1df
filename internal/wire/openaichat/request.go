// Package openaichat holds the wire types of OpenAI's chat completions, which the server reads and the renderer and the
// model client write.
//
// Field names and meanings are those of the published OpenAPI document (openai/openai-openapi,
// CreateChatCompletionRequest). Members are in the order in which requests are written: what stays the same from one
// request to the next comes first and messages come last, so that a longer conversation only adds bytes at the end.
package openaichat

import "encoding/json"

// Request is the body of POST /chat/completions.
type Request struct {
	Model         string         `json:"model"`
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *StreamOptions `json:"stream_options,omitempty"`
	// MaxCompletionTokens is OpenAI's name for the limit, which its reasoning models require; MaxTokens is the older
	// name, the one that most compatible servers accept. 0: no limit given.
	MaxCompletionTokens int      `json:"max_completion_tokens,omitempty"`
	MaxTokens           int      `json:"max_tokens,omitempty"`
	Temperature         *float64 `json:"temperature,omitempty"`
	TopP                *float64 `json:"top_p,omitempty"`
	TopK                *int     `json:"top_k,omitempty"` // of compatible servers
	Stop                []string `json:"stop,omitempty"`
	PresencePenalty     *float64 `json:"presence_penalty,omitempty"`
	FrequencyPenalty    *float64 `json:"frequency_penalty,omitempty"`
	Seed                *int64   `json:"seed,omitempty"`
	ServiceTier         string   `json:"service_tier,omitempty"`
	User                string   `json:"user,omitempty"`
	PromptCacheKey      string   `json:"prompt_cache_key,omitempty"`
	Verbosity           string   `json:"verbosity,omitempty"`
	// ReasoningEffort is none, minimal, low, medium, high or xhigh.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	// ToolChoice is none, auto, required, or an object that names tools.
	ToolChoice        json.RawMessage `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitempty"`
	Tools             []Tool          `json:"tools,omitempty"`
	// ResponseFormat is the form of the answer.
	ResponseFormat json.RawMessage `json:"response_format,omitempty"`
	// Messages are InputMessage objects, kept raw so that unknown members are kept too. They are the last member; the
	// renderer adds them to the others.
	Messages []json.RawMessage `json:"messages,omitempty"`
}

// StreamOptions says what a stream contains besides the answer.
type StreamOptions struct {
	// IncludeUsage asks for a last chunk with the usage.
	IncludeUsage bool `json:"include_usage"`
}

// Tool is one tool that the model may call.
type Tool struct {
	Type     string       `json:"type"` // always "function"
	Function ToolFunction `json:"function"`
}

// ToolFunction describes a function tool. Parameters is a JSON Schema; without one the function takes
// no arguments.
type ToolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// InputMessage is one message of a request. Content is a string, null or a list of parts; ToolCalls are
// objects {"id", "type", "function" or "custom"}.
type InputMessage struct {
	Role       string            `json:"role"`
	Content    json.RawMessage   `json:"content"`
	Name       string            `json:"name,omitempty"`
	ToolCalls  []json.RawMessage `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
}

// TextPart is a part of a content list.
type TextPart struct {
	Type string `json:"type"` // always "text"
	Text string `json:"text"`
}

// ImagePart is a part of a user message's content list.
type ImagePart struct {
	Type     string   `json:"type"` // always "image_url"
	ImageURL ImageURL `json:"image_url"`
}

// ImageURL is an http address of an image, or a data URL with its bytes.
type ImageURL struct {
	URL string `json:"url"`
}

// FilePart is a part of a user message's content list.
type FilePart struct {
	Type string `json:"type"` // always "file"
	File File   `json:"file"`
}

// File contains a file as a data URL. OpenAI requires a name with it.
type File struct {
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// ResponseFormat is the required format of an answer.
type ResponseFormat struct {
	Type       string      `json:"type"` // "json_schema" or "json_object"
	JSONSchema *JSONSchema `json:"json_schema,omitempty"`
}

// JSONSchema is the schema of an answer.
type JSONSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict *bool           `json:"strict,omitempty"`
}
