package responses

import "encoding/json"

// The statuses of a response; an item has in_progress, completed or incomplete.
const (
	StatusQueued     = "queued"
	StatusInProgress = "in_progress"
	StatusCompleted  = "completed"
	StatusIncomplete = "incomplete"
	StatusFailed     = "failed"
	StatusCancelled  = "cancelled"
)

// Response is an answer, whole or at the time of an event. It has the members that clients and the Open Responses
// specification require; most may be null.
type Response struct {
	ID                 string             `json:"id"`
	Object             string             `json:"object"` // "response"
	CreatedAt          float64            `json:"created_at"`
	CompletedAt        *float64           `json:"completed_at"`
	Status             string             `json:"status"`
	IncompleteDetails  *IncompleteDetails `json:"incomplete_details"`
	Model              string             `json:"model"`
	PreviousResponseID *string            `json:"previous_response_id"`
	Instructions       json.RawMessage    `json:"instructions"` // a string, null, or items
	Output             []json.RawMessage  `json:"output"`       // items, kept raw
	Error              *Error             `json:"error"`
	Tools              []json.RawMessage  `json:"tools"`
	ToolChoice         json.RawMessage    `json:"tool_choice"`
	Truncation         string             `json:"truncation"`
	ParallelToolCalls  bool               `json:"parallel_tool_calls"`
	Text               json.RawMessage    `json:"text"`
	TopP               *float64           `json:"top_p"`
	PresencePenalty    *float64           `json:"presence_penalty"`
	FrequencyPenalty   *float64           `json:"frequency_penalty"`
	TopLogprobs        *int               `json:"top_logprobs"`
	Temperature        *float64           `json:"temperature"`
	Reasoning          json.RawMessage    `json:"reasoning"`
	Usage              *Usage             `json:"usage"`
	MaxOutputTokens    *int               `json:"max_output_tokens"`
	MaxToolCalls       *int               `json:"max_tool_calls"`
	Store              bool               `json:"store"`
	Background         bool               `json:"background"`
	ServiceTier        *string            `json:"service_tier"`
	Metadata           json.RawMessage    `json:"metadata"`
	SafetyIdentifier   *string            `json:"safety_identifier"`
	PromptCacheKey     *string            `json:"prompt_cache_key"`
}

// IncompleteDetails says why an answer is incomplete.
type IncompleteDetails struct {
	Reason string `json:"reason"` // max_output_tokens or content_filter
}

// Usage counts tokens.
type Usage struct {
	InputTokens         int                 `json:"input_tokens"`
	InputTokensDetails  InputTokensDetails  `json:"input_tokens_details"`
	OutputTokens        int                 `json:"output_tokens"`
	OutputTokensDetails OutputTokensDetails `json:"output_tokens_details"`
	TotalTokens         int                 `json:"total_tokens"`
}

// InputTokensDetails are parts of the input's tokens.
type InputTokensDetails struct {
	CachedTokens     int `json:"cached_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens"`
}

// OutputTokensDetails are parts of the output's tokens.
type OutputTokensDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// Error is why a response failed, and the error of a refused request, which has all four members.
type Error struct {
	Type    string  `json:"type,omitempty"`
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param,omitempty"`
}
