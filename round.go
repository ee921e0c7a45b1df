package continuo

import "encoding/json"

// Round is what a turn records about one model request, on the assistant entry that came of it. With
// the log up to the entry before, it is enough to show the request again, byte for byte.
type Round struct {
	// View names the view that the request was built by; ViewHash identifies its limits and rules.
	View     string `json:"view"`
	ViewHash string `json:"view_hash"`
	// At is the newest seq that the request could see.
	At     int64  `json:"at"`
	Window Window `json:"window"`
	// Cursor is where the cursor of a crew's role moves with its answer; 0 in every other round.
	Cursor int64 `json:"cursor,omitempty"`
	// Provider and Model say who answered; Protocol is the wire format of the request.
	Provider string `json:"provider,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Model    string `json:"model,omitempty"`
	// ContextWindow is the model's whole window in tokens as the build knew it, 0 for unknown.
	ContextWindow int `json:"context_window,omitempty"`
	// Envelope is the SHA-256 of the stored Envelope, in hex.
	Envelope string `json:"envelope,omitempty"`
	// RequestSHA256 is the SHA-256 of the request's body, in hex; RequestBytes its length.
	RequestSHA256 string `json:"request_sha256,omitempty"`
	RequestBytes  int    `json:"request_bytes,omitempty"`
	// Missing are the parts that the request went without.
	Missing []MissingPart `json:"missing,omitempty"`
	// EstimatedTokens is what the plan counted for the messages and the prompt together.
	EstimatedTokens int    `json:"estimated_tokens,omitempty"`
	Usage           *Usage `json:"usage,omitempty"`
	FinishReason    string `json:"finish_reason,omitempty"`
	LatencyMS       int64  `json:"latency_ms,omitempty"`
	FirstDeltaMS    int64  `json:"first_delta_ms,omitempty"`
}

// Usage is what a provider reported, in tokens.
type Usage struct {
	InputTokens      int `json:"input_tokens"`
	OutputTokens     int `json:"output_tokens"`
	CachedTokens     int `json:"cached_tokens,omitempty"`
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int `json:"reasoning_tokens,omitempty"`
}

// Window is where a view's window stands over an epoch: while it does not move, each request extends
// the last one byte for byte.
type Window struct {
	// Epoch counts the window's places from 1.
	Epoch int64 `json:"epoch"`
	// Start is the first seq of the stretch that is shown up to the newest entry.
	Start int64 `json:"start"`
	// Pins are seqs before Start that are shown all the same, ascending.
	Pins []int64 `json:"pins,omitempty"`
	// Tool outputs before PreviewBefore are shown as previews, those before LineBefore as one line.
	PreviewBefore int64 `json:"preview_before,omitempty"`
	LineBefore    int64 `json:"line_before,omitempty"`
	// Summary is the seq of the summary that stands in the place of what is not shown; 0 for none.
	Summary int64 `json:"summary,omitempty"`
	// Left is how many messages before Start a role of a crew is not shown, nor a summary of them; -1 where they are too
	// many to be counted. Other views do not count them.
	Left int `json:"left,omitempty"`
	// Limit names the limit that moved the window here: messages, chars or tokens; empty in the first epoch.
	Limit string `json:"limit,omitempty"`
	// Markers says whether gaps are marked; false only where a budget has no room for it.
	Markers bool `json:"markers,omitempty"`
}

// Envelope is all of a request that is not the log: stored once under its hash, so that any request
// can be made again when prompts, tools or settings have changed since.
type Envelope struct {
	Model  string   `json:"model"`
	System []string `json:"system,omitempty"`
	// Instruction tells a model without tool calls of its own how to answer and what it can call, in place
	// of Tools; empty for every other model.
	Instruction     string     `json:"instruction,omitempty"`
	Tools           []ToolSpec `json:"tools,omitempty"`
	MaxOutputTokens int        `json:"max_output_tokens,omitempty"`
	Temperature     *float64   `json:"temperature,omitempty"`
	Stream          bool       `json:"stream,omitempty"`
	// ResponseFormat asks for an answer of a form, as the protocol has it.
	ResponseFormat json.RawMessage `json:"response_format,omitempty"`
	// Roles says how the messages were arranged for a model that does not take every sequence of roles.
	Roles Roles `json:"roles,omitempty"`
	// View is the whole definition of the view that the request was built by.
	View json.RawMessage `json:"view,omitempty"`
}

// Roles names the sequences of roles that a model takes in a chat completions request.
type Roles string

// The sequences. RolesFree is what the protocol allows; RolesStrict is one system message, and then user and assistant in
// turn; RolesNoSystem is that without a system message, whose text begins the first user message.
const (
	RolesFree     Roles = ""
	RolesStrict   Roles = "strict"
	RolesNoSystem Roles = "no_system"
)
