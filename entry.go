package continuo

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/rawjson"
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
	ID             string
	ConversationID string
	Seq            int64 // from 1, without a gap
	CreatedAt      time.Time

	Role       Role
	Content    Content
	ToolCalls  []ToolCall // assistant only
	ToolCallID string     // tool only
	Name       string     // the protocol's name field: the participant
	Reasoning  *Reasoning
	Error      *TurnError

	Mode       Mode
	RunID      string
	WorkflowID string
	NodeID     string
	AgentID    string
	TurnID     string
	Author     *Author

	// Hidden marks an entry that is shown to people only. In JSON it is include_in_context: false.
	Hidden bool

	PartType    string
	ToolName    string
	Outcome     string // one line about the tool's effect, such as "Read config.yml"
	DurationMS  int64
	IsCollapsed bool
	Widget      json.RawMessage

	// OutputRef is the alias path of the complete tool output, or of the inputs of a run or the outputs of its step
	// ([InputsRef], [StepRef]).
	OutputRef string
	// Output names the object that holds a tool output that is too large for its entry; Content is then a preview of
	// it. Nil when Content is complete.
	Output *Output
	// Attachments names the objects that hold parts of the content that are not text and too large for the entry, in
	// the order of the parts; Content has placeholders for them. Nil when Content is complete.
	Attachments []Attachment

	// Chars counts Unicode characters, Tokens tokens of the content and the calls; Tokenizer names the encoding used
	// for Tokens. They are counted once, at append; where Content is a preview, they count the preview.
	Chars     int
	Tokens    int
	Tokenizer string

	// Round describes the model request that produced an assistant entry; nil for entries that no turn made.
	Round *Round
	// RunEvent is an event of a workflow's run; nil for every other entry.
	RunEvent *RunEvent
	// TaskEvent is an event of a delegated task; nil for every other entry.
	TaskEvent *TaskEvent
	// Summary says which entries the content summarizes; nil for every other entry.
	Summary *Summary
	// Vendor holds a provider's opaque data under the provider's name; only that provider's package reads it.
	Vendor map[string]json.RawMessage
	// Repairs lists the rules by which an import changed this entry.
	Repairs []string
	// Redacted is set when a person removed the entry's content; nil otherwise.
	Redacted *Redaction
	// Extra holds received fields that Continuo does not know, as one JSON object.
	Extra json.RawMessage
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
	// tools up to its limit of rounds, or its agent wrote more than its limit.
	ReasonContextOverflow FailureReason = "context_overflow"
	ReasonTurnLimit       FailureReason = "turn_limit"
)

// PartialToolCall is a call whose arguments were cut off.
type PartialToolCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// entryJSON is the stored and served form of an Entry. Absent means default.
type entryJSON struct {
	ID               string                     `json:"id,omitempty"`
	ConversationID   string                     `json:"conversation_id,omitempty"`
	Seq              int64                      `json:"seq,omitempty"`
	CreatedAt        time.Time                  `json:"created_at,omitzero"`
	Role             Role                       `json:"role"`
	Content          Content                    `json:"content,omitzero"`
	ToolCalls        []ToolCall                 `json:"tool_calls,omitempty"`
	ToolCallID       string                     `json:"tool_call_id,omitempty"`
	Name             string                     `json:"name,omitempty"`
	Reasoning        *Reasoning                 `json:"reasoning,omitempty"`
	Error            *TurnError                 `json:"error,omitempty"`
	Mode             Mode                       `json:"mode,omitempty"`
	RunID            string                     `json:"run_id,omitempty"`
	WorkflowID       string                     `json:"workflow_id,omitempty"`
	NodeID           string                     `json:"node_id,omitempty"`
	AgentID          string                     `json:"agent_id,omitempty"`
	TurnID           string                     `json:"turn_id,omitempty"`
	Author           *Author                    `json:"author,omitempty"`
	IncludeInContext *bool                      `json:"include_in_context,omitempty"`
	PartType         string                     `json:"part_type,omitempty"`
	ToolName         string                     `json:"tool_name,omitempty"`
	Outcome          string                     `json:"outcome,omitempty"`
	DurationMS       int64                      `json:"duration_ms,omitempty"`
	IsCollapsed      bool                       `json:"is_collapsed,omitempty"`
	Widget           json.RawMessage            `json:"widget,omitempty"`
	OutputRef        string                     `json:"output_ref,omitempty"`
	Output           *Output                    `json:"output,omitempty"`
	Attachments      []Attachment               `json:"attachments,omitempty"`
	Chars            int                        `json:"chars,omitempty"`
	Tokens           int                        `json:"tokens,omitempty"`
	Tokenizer        string                     `json:"tokenizer,omitempty"`
	Round            *Round                     `json:"round,omitempty"`
	RunEvent         *RunEvent                  `json:"run_event,omitempty"`
	TaskEvent        *TaskEvent                 `json:"task_event,omitempty"`
	Summary          *Summary                   `json:"summary,omitempty"`
	Vendor           map[string]json.RawMessage `json:"vendor,omitempty"`
	Repairs          []string                   `json:"repairs,omitempty"`
	Redacted         *Redaction                 `json:"redacted,omitempty"`
	Extra            json.RawMessage            `json:"extra,omitempty"`
}

// MarshalJSON writes the snake_case form without defaults.
func (e Entry) MarshalJSON() ([]byte, error) {
	wire := entryJSON{
		ID: e.ID, ConversationID: e.ConversationID, Seq: e.Seq, CreatedAt: e.CreatedAt,
		Role: e.Role, Content: e.Content, ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID, Name: e.Name,
		Reasoning: e.Reasoning, Error: e.Error,
		Mode: e.Mode, RunID: e.RunID, WorkflowID: e.WorkflowID, NodeID: e.NodeID, AgentID: e.AgentID,
		TurnID: e.TurnID, Author: e.Author,
		PartType: e.PartType, ToolName: e.ToolName, Outcome: e.Outcome, DurationMS: e.DurationMS,
		IsCollapsed: e.IsCollapsed, Widget: e.Widget, OutputRef: e.OutputRef, Output: e.Output, Attachments: e.Attachments,
		Chars: e.Chars, Tokens: e.Tokens, Tokenizer: e.Tokenizer,
		Round: e.Round, RunEvent: e.RunEvent, TaskEvent: e.TaskEvent, Summary: e.Summary, Vendor: e.Vendor, Repairs: e.Repairs, Redacted: e.Redacted, Extra: e.Extra,
	}
	if e.Hidden {
		included := false
		wire.IncludeInContext = &included
	}
	return rawjson.Marshal(wire)
}

// UnmarshalJSON reads the snake_case form and ignores unknown keys; package interchange, which reads foreign files,
// keeps those in Extra.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var wire entryJSON
	if err := json.Unmarshal(data, &wire); err != nil {
		return fmt.Errorf("entry: %w", err)
	}
	*e = Entry{
		ID: wire.ID, ConversationID: wire.ConversationID, Seq: wire.Seq, CreatedAt: wire.CreatedAt,
		Role: wire.Role, Content: wire.Content, ToolCalls: wire.ToolCalls, ToolCallID: wire.ToolCallID,
		Name: wire.Name, Reasoning: wire.Reasoning, Error: wire.Error,
		Mode: wire.Mode, RunID: wire.RunID, WorkflowID: wire.WorkflowID, NodeID: wire.NodeID,
		AgentID: wire.AgentID, TurnID: wire.TurnID, Author: wire.Author,
		Hidden:   wire.IncludeInContext != nil && !*wire.IncludeInContext,
		PartType: wire.PartType, ToolName: wire.ToolName, Outcome: wire.Outcome, DurationMS: wire.DurationMS,
		IsCollapsed: wire.IsCollapsed, Widget: wire.Widget, OutputRef: wire.OutputRef, Output: wire.Output, Attachments: wire.Attachments,
		Chars: wire.Chars, Tokens: wire.Tokens, Tokenizer: wire.Tokenizer,
		Round: wire.Round, RunEvent: wire.RunEvent, TaskEvent: wire.TaskEvent, Summary: wire.Summary, Vendor: wire.Vendor, Repairs: wire.Repairs, Redacted: wire.Redacted, Extra: wire.Extra,
	}
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
