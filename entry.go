package continuo

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Role says who speaks in an entry.
type Role string

// The four roles of the log. Other protocols' roles are mapped to these when they come in.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Mode is how a conversation is being used.
type Mode string

// The three modes. Switching changes the system messages of the next request and nothing else.
const (
	ModeChat  Mode = "chat"
	ModeAgent Mode = "agent"
	ModeRun   Mode = "run"
)

// Entry is one immutable record of the log: a superset of an OpenAI chat message.
//
// A caller that appends sets Role and what the role needs; ID, ConversationID, Seq, CreatedAt (when
// zero), Chars, Tokens, Tokenizer, Attachments and, for tool results, OutputRef and Output are set by the log.
type Entry struct {
	ID             string
	ConversationID string
	Seq            int64 // from 1, without a gap
	CreatedAt      time.Time

	Role       Role
	Content    Content
	ToolCalls  []ToolCall // assistant only
	ToolCallID string     // tool only
	Name       string     // the speaker, as the protocol has it
	Reasoning  *Reasoning
	Error      *TurnError

	Mode       Mode
	RunID      string
	WorkflowID string
	NodeID     string
	AgentID    string
	TurnID     string
	Author     *Author

	// Hidden marks an event for people only. In JSON it is include_in_context: false.
	Hidden bool

	PartType    string
	ToolName    string
	Outcome     string // one line that says what a tool did, such as "Read config.yml"
	DurationMS  int64
	IsCollapsed bool
	Widget      json.RawMessage

	// OutputRef is the alias path under which the whole of a tool's output can be read, or the inputs of a run or the
	// outputs of its step ([InputsRef], [StepRef]).
	OutputRef string
	// Output says where a tool's output is kept that is too large for its entry; Content is then a preview of
	// it. Nil when Content is whole.
	Output *Output
	// Attachments says where parts of the content are kept that are no text and too large for the entry, in
	// the order of the parts; Content has placeholders for them. Nil when Content is whole.
	Attachments []Attachment

	// Chars counts Unicode characters, Tokens tokens of the content and the calls; Tokenizer names the
	// encoding that Tokens was counted with. Counted once, at append; of a preview, not of the whole.
	Chars     int
	Tokens    int
	Tokenizer string

	// Round is what an assistant entry was made by; nil for entries that no turn made.
	Round *Round
	// RunEvent is what a run of a workflow records here; nil for every other entry.
	RunEvent *RunEvent
	// TaskEvent is what a task that was given away records here; nil for every other entry.
	TaskEvent *TaskEvent
	// Summary says what the content is a summary of; nil for every other entry.
	Summary *Summary
	// Vendor holds a vendor's own data under the vendor's name; only that vendor's package reads it.
	Vendor map[string]json.RawMessage
	// Repairs lists the rules by which an import changed this entry.
	Repairs []string
	// Redacted says that a person removed what the entry said; nil when nobody did.
	Redacted *Redaction
	// Extra holds fields that came in and that Continuo does not know, as one JSON object.
	Extra json.RawMessage
}

// Reasoning is a model's thinking. Signature is the provider's opaque proof of it, which that provider
// wants back unchanged.
type Reasoning struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

// Redaction tells of a removed content.
type Redaction struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// The PartTypes of cues: system entries that tell the model what to do next. PartResume goes on from an
// answer that broke off, PartStep begins a step of a workflow.
const (
	PartResume = "resume"
	PartStep   = "step"
)

// The PartTypes of results of calls that did not do what they were asked to. PartInterrupted is a call that had
// begun when its program ended: it may or may not have been carried out. PartUndecided is a call that has not run, because
// its turn ended before anybody decided whether it may.
const (
	PartToolError   = "tool_error"
	PartInterrupted = "tool_interrupted"
	PartUndecided   = "tool_undecided"
)

// ToolFailed reports whether the entry is the result of a call that failed.
func (e *Entry) ToolFailed() bool {
	return e.PartType == PartToolError || e.PartType == PartInterrupted || e.PartType == PartUndecided
}

// IsCue reports whether the entry is a system entry that is shown as a user message: providers refuse system
// messages in the middle, and an assistant message at the end would be taken for the beginning of the answer.
func (e *Entry) IsCue() bool {
	return e.Role == System && (e.PartType == PartResume || e.PartType == PartStep)
}

// Author says which member of a crew speaks.
type Author struct {
	RoleName    string `json:"role_name,omitempty"`
	DisplayName string `json:"display_name,omitempty"`
	AgentName   string `json:"agent_name,omitempty"`
}

// TurnError says why a model's answer is not whole.
type TurnError struct {
	Code           string        `json:"code"` // always LLM_ERROR
	Reason         FailureReason `json:"reason"`
	Message        string        `json:"message"`
	Retryable      bool          `json:"retryable"`
	ProviderStatus int           `json:"provider_status,omitempty"` // HTTP status, 0 when there was none
	// RetryAfter is in how many seconds the same request may succeed, as the upstream said; 0 when it did not.
	RetryAfter       int               `json:"retry_after,omitempty"`
	PartialToolCalls []PartialToolCall `json:"partial_tool_calls,omitempty"`
}

// LLMError is the code of every TurnError.
const LLMError = "LLM_ERROR"

// FailureReason classifies a failed model call.
type FailureReason string

// The reasons for which a model's answer may not be whole.
const (
	ReasonTimeout       FailureReason = "timeout"
	ReasonNetwork       FailureReason = "network"
	ReasonRateLimit     FailureReason = "rate_limit"
	ReasonUpstream      FailureReason = "upstream"
	ReasonContentFilter FailureReason = "content_filter"
	ReasonCancelled     FailureReason = "cancelled"
	ReasonInterrupted   FailureReason = "interrupted"
	// ReasonContextOverflow is of a request that is larger than the model's window, ReasonTurnLimit of a turn that asked
	// for tools up to its limit on rounds, or whose agent wrote more than its limit.
	ReasonContextOverflow FailureReason = "context_overflow"
	ReasonTurnLimit       FailureReason = "turn_limit"
)

// PartialToolCall is a call whose arguments broke off.
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

// MarshalJSON writes the snake_case form, defaults left out.
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

// UnmarshalJSON reads the snake_case form. Keys that are no field of an entry are passed over; who reads
// foreign bytes keeps them in Extra, as the interchange room does.
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

// imageTokens is what a part that is no text counts for: the most that one image of the usual sizes
// costs at the large providers (about 1 600 tokens for 1 568 pixels on the long edge at Anthropic).
const imageTokens = 1600

// count fills Chars, Tokens and Tokenizer.
func (e *Entry) count(counter Counter) {
	size := Measure(e.Content, e.ToolCalls, counter)
	e.Chars, e.Tokens, e.Tokenizer = size.Chars, size.Tokens, counter.Name()
}

// Measure counts the characters and tokens of a message's content and calls, without the overhead that
// a protocol adds. A part that is no text counts as an image. Without a counter it takes [RoughCounter].
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

// Counter counts the tokens of a text. It must be safe for concurrent use.
type Counter interface {
	Name() string
	Count(text string) int
}

// RoughCounter estimates tokens as characters / 4, rounded up. Package token counts exactly for OpenAI's models.
type RoughCounter struct{}

// Name is part of Counter.
func (RoughCounter) Name() string { return "chars/4" }

// Count is part of Counter.
func (RoughCounter) Count(text string) int { return (utf8.RuneCountInString(text) + 3) / 4 }
