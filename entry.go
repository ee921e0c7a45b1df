package continuo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Role is the author's role in an entry, as chat protocols have it.
type Role string

// The four roles of the log. Roles of other protocols are mapped to these on input.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Mode is how a conversation is used.
type Mode string

// The three modes. A switch changes only the system messages of the next request.
const (
	ModeChat  Mode = "chat"
	ModeAgent Mode = "agent"
	ModeRun   Mode = "run"
)

// Entry is one immutable record of the log: a superset of an OpenAI chat message.
//
// A caller that appends sets Role and the fields that the role needs. The log sets ID, ConversationID, Seq, CreatedAt
// (when zero), Chars, Tokens, Tokenizer, Attachments and, for tool results, OutputRef and Output.
type Entry struct {
	ID             string    `json:"id,omitempty"`
	ConversationID string    `json:"conversation_id,omitempty"`
	Seq            int64     `json:"seq,omitempty"` // from 1, without a gap
	CreatedAt      time.Time `json:"created_at,omitzero"`

	Role       Role       `json:"role"`
	Content    Content    `json:"content,omitzero"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`   // assistant only
	ToolCallID string     `json:"tool_call_id,omitempty"` // tool only
	Name       string     `json:"name,omitempty"`         // the protocol's name field: the participant
	Reasoning  *Reasoning `json:"reasoning,omitempty"`
	Error      *TurnError `json:"error,omitempty"`

	Mode       Mode    `json:"mode,omitempty"`
	RunID      string  `json:"run_id,omitempty"`
	WorkflowID string  `json:"workflow_id,omitempty"`
	NodeID     string  `json:"node_id,omitempty"`
	AgentID    string  `json:"agent_id,omitempty"`
	TurnID     string  `json:"turn_id,omitempty"`
	Author     *Author `json:"author,omitempty"`

	// Hidden marks an entry that is shown to people only. In JSON it is include_in_context: false.
	Hidden bool `json:"-"`

	PartType    string          `json:"part_type,omitempty"`
	ToolName    string          `json:"tool_name,omitempty"`
	Outcome     string          `json:"outcome,omitempty"` // one line about the tool's effect, such as "Read config.yml"
	DurationMS  int64           `json:"duration_ms,omitempty"`
	IsCollapsed bool            `json:"is_collapsed,omitempty"`
	Widget      json.RawMessage `json:"widget,omitempty"`

	// OutputRef is the alias path of the complete tool output, or of the inputs of a run or the outputs of its step
	// ([InputsRef], [StepRef]).
	OutputRef string `json:"output_ref,omitempty"`
	// Output names the object that holds a tool output that is too large for its entry; Content is then a preview of
	// it. Nil when Content is complete.
	Output *Output `json:"output,omitempty"`
	// Attachments names the objects that hold parts of the content that are not text and too large for the entry, in
	// the order of the parts; Content has placeholders for them. Nil when Content is complete.
	Attachments []Attachment `json:"attachments,omitempty"`

	// Chars counts Unicode characters, Tokens tokens of the content and the calls; Tokenizer names the encoding used
	// for Tokens. They are counted once, at append; where Content is a preview, they count the preview.
	Chars     int    `json:"chars,omitempty"`
	Tokens    int    `json:"tokens,omitempty"`
	Tokenizer string `json:"tokenizer,omitempty"`

	// Round describes the model request that produced an assistant entry; nil for entries that no turn made.
	Round *Round `json:"round,omitempty"`
	// RunEvent is an event of a workflow's run; nil for every other entry.
	RunEvent *RunEvent `json:"run_event,omitempty"`
	// TaskEvent is an event of a delegated task; nil for every other entry.
	TaskEvent *TaskEvent `json:"task_event,omitempty"`
	// Summary says which entries the content summarizes; nil for every other entry.
	Summary *Summary `json:"summary,omitempty"`
	// Fact is what an entry of a memory conversation states; nil for every other entry. Profile says of which facts a
	// profile is made.
	Fact    *Fact    `json:"fact,omitempty"`
	Profile *Profile `json:"profile,omitempty"`
	// NoMemory says that nothing may be remembered of the turn that the entry begins.
	NoMemory bool `json:"no_memory,omitempty"`
	// Recall says which earlier entries the content shows again; nil for every other entry.
	Recall *Recall `json:"recall,omitempty"`
	// Vendor holds a provider's opaque data under the provider's name; only that provider's package reads it.
	Vendor map[string]json.RawMessage `json:"vendor,omitempty"`
	// Repairs lists the rules by which an import changed this entry.
	Repairs []string `json:"repairs,omitempty"`
	// Redacted is set when a person removed the entry's content; nil otherwise.
	Redacted *Redaction `json:"redacted,omitempty"`
	// Extra holds received fields that Continuo does not know, as one JSON object.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// Reasoning is a model's reasoning text. Signature is the provider's opaque signature of it, which must be returned to
// that provider unchanged.
type Reasoning struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

// Redaction describes the removal of an entry's content.
type Redaction struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// The PartTypes of cues: system entries that instruct the model. PartResume continues an answer that was cut off,
// PartStep begins a step of a workflow.
const (
	PartResume = "resume"
	PartStep   = "step"
)

// PartRecord is the PartType of a hidden system entry that a front end keeps for itself; no view shows it.
const PartRecord = "record"

// The PartTypes of tool results without a successful call. PartInterrupted: the call had begun when its program ended,
// and may or may not have been executed. PartUndecided: the call did not run, because its turn ended before a person
// approved or denied it.
const (
	PartToolError   = "tool_error"
	PartInterrupted = "tool_interrupted"
	PartUndecided   = "tool_undecided"
)

// ToolFailed reports whether the entry is the result of a call that failed.
func (e *Entry) ToolFailed() bool {
	return e.PartType == PartToolError || e.PartType == PartInterrupted || e.PartType == PartUndecided
}

// IsCue reports whether the entry is a system entry that is sent as a user message. Providers refuse system messages in
// the middle of a conversation, and take an assistant message at the end for the beginning of the answer.
func (e *Entry) IsCue() bool {
	return e.Role == System && (e.PartType == PartResume || e.PartType == PartStep)
}

// Author is the role of a crew that wrote an entry.
type Author struct {
	RoleName    string `json:"role_name,omitempty"`
	DisplayName string `json:"display_name,omitempty"`
	AgentName   string `json:"agent_name,omitempty"`
}

// TurnError says why a model's answer is incomplete.
type TurnError struct {
	Code           string        `json:"code"` // always LLM_ERROR
	Reason         FailureReason `json:"reason"`
	Message        string        `json:"message"`
	Retryable      bool          `json:"retryable"`
	ProviderStatus int           `json:"provider_status,omitempty"` // HTTP status, 0 when there was none
	// RetryAfter is the number of seconds after which the provider allows a retry; 0 when it named none.
	RetryAfter       int               `json:"retry_after,omitempty"`
	PartialToolCalls []PartialToolCall `json:"partial_tool_calls,omitempty"`
}

// LLMError is the code of every TurnError.
const LLMError = "LLM_ERROR"

// FailureReason classifies a failed model call.
type FailureReason string

// The reasons for which a model's answer may be incomplete.
const (
	ReasonTimeout       FailureReason = "timeout"
	ReasonNetwork       FailureReason = "network"
	ReasonRateLimit     FailureReason = "rate_limit"
	ReasonUpstream      FailureReason = "upstream"
	ReasonContentFilter FailureReason = "content_filter"
	ReasonCancelled     FailureReason = "cancelled"
	ReasonInterrupted   FailureReason = "interrupted"
	// ReasonContextOverflow: the request is larger than the model's context window. ReasonTurnLimit: the turn asked for
	// tools up to its limit of rounds, or its agent wrote more than its limit. ReasonBudget: the request was not sent,
	// because a budget is used up.
	ReasonContextOverflow FailureReason = "context_overflow"
	ReasonTurnLimit       FailureReason = "turn_limit"
	ReasonBudget          FailureReason = "budget_exceeded"
)

// PartialToolCall is a call whose arguments were cut off.
type PartialToolCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// plainEntry is an Entry whose JSON is that of its fields.
type plainEntry Entry

// UnmarshalJSON reads the snake_case form and ignores unknown keys; package interchange, which reads foreign files,
// keeps those in Extra.
func (e *Entry) UnmarshalJSON(data []byte) error { return e.Decode(string(data)) }

// decodeAny reads an entry in any form.
func (e *Entry) decodeAny(data []byte) error {
	var read plainEntry
	if err := json.Unmarshal(data, &read); err != nil {
		return fmt.Errorf("entry: %w", err)
	}
	var more struct {
		IncludeInContext *bool `json:"include_in_context"`
	}
	if bytes.Contains(data, []byte("include_in_context")) {
		if err := json.Unmarshal(data, &more); err != nil {
			return fmt.Errorf("entry: %w", err)
		}
	}
	read.Hidden = more.IncludeInContext != nil && !*more.IncludeInContext
	*e = Entry(read)
	return nil
}

// HasCalls reports whether the entry opens a group.
func (e *Entry) HasCalls() bool { return e.Role == Assistant && len(e.ToolCalls) > 0 }

// imageTokens is the token count of a part that is not text: the maximum cost of one image of common size at the large
// providers (about 1 600 tokens for 1 568 pixels on the long edge at Anthropic).
const imageTokens = 1600

// count fills Chars, Tokens and Tokenizer.
func (e *Entry) count(counter Counter) {
	size := Measure(e.Content, e.ToolCalls, counter)
	e.Chars, e.Tokens, e.Tokenizer = size.Chars, size.Tokens, counter.Name()
}

// Measure counts the characters and tokens of a message's content and calls, without a protocol's overhead. A part that
// is not text counts as an image. A nil counter means [RoughCounter].
func Measure(content Content, calls []ToolCall, counter Counter) Size {
	if counter == nil {
		counter = RoughCounter{}
	}
	var size Size
	add := func(text string) {
		size.Chars += utf8.RuneCountInString(text)
		size.Tokens += counter.Count(text)
	}
	if !content.IsParts() {
		add(content.String())
	}
	for _, part := range content.Parts() {
		if part.IsText() {
			add(part.Text)
		} else {
			size.Tokens += imageTokens
		}
	}
	for _, call := range calls {
		add(call.Name)
		add(call.Arguments)
	}
	return size
}

// Size is the size of shown messages.
type Size struct {
	Messages int `json:"messages"`
	Chars    int `json:"chars"`
	Tokens   int `json:"tokens"`
}

// Add returns the sum of two sizes.
func (s Size) Add(other Size) Size {
	return Size{s.Messages + other.Messages, s.Chars + other.Chars, s.Tokens + other.Tokens}
}

// Less returns the difference of two sizes.
func (s Size) Less(other Size) Size {
	return Size{s.Messages - other.Messages, s.Chars - other.Chars, s.Tokens - other.Tokens}
}

// Counter counts the tokens of a text. It must be safe for concurrent use.
type Counter interface {
	Name() string
	Count(text string) int
}

// RoughCounter estimates tokens as characters / 4, rounded up. Package token counts exactly for OpenAI models.
type RoughCounter struct{}

// Name is part of Counter.
func (RoughCounter) Name() string { return "chars/4" }

// Count is part of Counter.
func (RoughCounter) Count(text string) int { return (utf8.RuneCountInString(text) + 3) / 4 }
