package openaichat

import "encoding/json"

// Done is the data of a stream's last event. Some compatible servers leave it out.
const Done = "[DONE]"

// Chunk is one event of a streamed answer. The chunk with the usage, the last one, has no choices.
type Chunk struct {
	ID                string        `json:"id"`
	Object            string        `json:"object"` // "chat.completion.chunk"
	Created           Seconds       `json:"created"`
	Model             string        `json:"model"`
	Choices           []ChunkChoice `json:"choices"`
	Usage             *Usage        `json:"usage,omitempty"`
	SystemFingerprint string        `json:"system_fingerprint,omitempty"`
	// Error is what a stream that fails ends with, in place of the other members.
	Error json.RawMessage `json:"error,omitempty"`
}

// ChunkChoice adds a piece to one answer. FinishReason is null until the last piece.
type ChunkChoice struct {
	Index        int             `json:"index"`
	Delta        Message         `json:"delta"`
	Logprobs     json.RawMessage `json:"logprobs,omitempty"`
	FinishReason *string         `json:"finish_reason"`
	// Usage stands here at some compatible servers, in place of the chunk's.
	Usage *Usage `json:"usage,omitempty"`
}
