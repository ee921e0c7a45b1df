package openaichat

import "encoding/json"

// Done is the data of a stream's last event. Some compatible servers omit it.
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
	// Error is the end of a failed stream, instead of the other members.
	Error json.RawMessage `json:"error,omitempty"`
}

// ChunkChoice adds a fragment to one answer. FinishReason is null until the last fragment.
type ChunkChoice struct {
	Index        int             `json:"index"`
	Delta        Message         `json:"delta"`
	Logprobs     json.RawMessage `json:"logprobs,omitempty"`
	FinishReason *string         `json:"finish_reason"`
	// Usage is here at some compatible servers, instead of in the chunk.
	Usage *Usage `json:"usage,omitempty"`
}
