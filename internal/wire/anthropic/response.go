package anthropic

import "encoding/json"

// Response is the answer to a non-streaming request, and the message that a stream begins with.
type Response struct {
	ID    string `json:"id"`
	Type  string `json:"type"` // "message"
	Role  string `json:"role"` // "assistant"
	Model string `json:"model"`
	// Content is the blocks, kept raw so that unknown ones are kept too.
	Content []json.RawMessage `json:"content"`
	// StopReason is end_turn, max_tokens, stop_sequence, tool_use, pause_turn, refusal,
	// model_context_window_exceeded or compaction; null at the start of a stream.
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        Usage   `json:"usage"`
}

// Usage counts tokens. The size of the request is the sum of the three input counts.
type Usage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

// Error describes a failure. Type is invalid_request_error, authentication_error, permission_error, not_found_error,
// request_too_large, rate_limit_error, api_error, timeout_error or overloaded_error.
type Error struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// ErrorBody is the body of a failed request, and the event that a failed stream ends with.
type ErrorBody struct {
	Type      string `json:"type"` // "error"
	Error     Error  `json:"error"`
	RequestID string `json:"request_id,omitempty"`
}
