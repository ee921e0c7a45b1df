package anthropic

import "encoding/json"

// The types of stream events. A stream is a message_start, the blocks (each a content_block_start, deltas and a
// content_block_stop), a message_delta and a message_stop; a ping or an error may come anywhere, and unknown events
// must be ignored.
const (
	EventMessageStart      = "message_start"
	EventContentBlockStart = "content_block_start"
	EventContentBlockDelta = "content_block_delta"
	EventContentBlockStop  = "content_block_stop"
	EventMessageDelta      = "message_delta"
	EventMessageStop       = "message_stop"
	EventPing              = "ping"
	EventError             = "error"
)

// Event is any event of a stream; each type has some of the members. The SSE event's name is the type.
type Event struct {
	Type         string          `json:"type"`
	Message      *Response       `json:"message,omitempty"`       // message_start
	Index        *int            `json:"index,omitempty"`         // content_block_…
	ContentBlock json.RawMessage `json:"content_block,omitempty"` // content_block_start: the block, still empty
	// Delta is a BlockDelta in a content_block_delta and a MessageDelta in a message_delta.
	Delta json.RawMessage `json:"delta,omitempty"`
	Usage *DeltaUsage     `json:"usage,omitempty"` // message_delta
	Error *Error          `json:"error,omitempty"` // error
}

// BlockDelta is the addition of a content_block_delta to its block. Deltas of other types are possible.
type BlockDelta struct {
	// Type is text_delta, thinking_delta, signature_delta, input_json_delta or citations_delta.
	Type        string          `json:"type"`
	Text        *string         `json:"text,omitempty"`
	Thinking    *string         `json:"thinking,omitempty"`
	Signature   *string         `json:"signature,omitempty"`
	PartialJSON *string         `json:"partial_json,omitempty"`
	Citation    json.RawMessage `json:"citation,omitempty"`
}

// MessageDelta is why the message ends.
type MessageDelta struct {
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// DeltaUsage is the usage so far. A nil member keeps the value of the message_start.
type DeltaUsage struct {
	InputTokens              *int `json:"input_tokens,omitempty"`
	CacheCreationInputTokens *int `json:"cache_creation_input_tokens,omitempty"`
	CacheReadInputTokens     *int `json:"cache_read_input_tokens,omitempty"`
	OutputTokens             *int `json:"output_tokens,omitempty"`
}
