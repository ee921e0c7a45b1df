package api

import (
	"reflect"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// events is the media type of a stream, a struct whose fields are the kinds of its events: the tag event has the name.
func events[Stream any]() Media {
	return Media{Type: "text/event-stream", Schema: reflect.TypeFor[Stream]()}
}

// EventStream is the stream of a turn. Every event has an `id`.
type EventStream struct {
	// The first event.
	Turn ChatIDs `event:"turn"`
	// A request to the model begins.
	Context       ChatContext        `event:"context"`
	Reasoning     TextEvent          `event:"reasoning"`
	Delta         TextEvent          `event:"delta"`
	ToolCallDelta ToolCallDeltaEvent `event:"tool_call_delta"`
	Fallback      FallbackEvent      `event:"fallback"`
	ToolCall      ToolCallEvent      `event:"tool_call"`
	// The call waits for a person's decision.
	Approval   ToolCallEvent   `event:"approval"`
	Decision   DecisionEvent   `event:"decision"`
	ToolResult ToolResultEvent `event:"tool_result"`
	// The last event of a turn that succeeded.
	Done ChatAnswer `event:"done"`
	// The last event of any other turn.
	Error ChatFailure `event:"error"`
}

// RunStream is the stream of a run. Between its events come the live events of turns, with the names and the data of
// `EventStream`, all without an `id`: those of each turn begin with `turn`, and end with the entry of the answer instead
// of `done` or `error`.
type RunStream struct {
	// An entry of the run; its `seq` is the `id`.
	Entry continuo.Entry `event:"entry"`
	// The state of the run after an entry that has a `run_event`, the same for every reader.
	Status engine.RunStatus `event:"status"`
	// The last event, with an `id` of its own.
	End engine.RunStatus `event:"end"`
	// The last event of a stream that broke off, which says nothing about the run.
	Error Error `event:"error"`
}

// CrewStream is the stream of a crew. Between its events come the live events of the roles' turns, with the names and,
// but for `turn`, `delta` and `reasoning`, the data of `EventStream`, all without an `id`: those of each turn begin with
// `turn`, and end with the entry of the answer instead of `done` or `error`.
type CrewStream struct {
	// An entry of the conversation; its `seq` is the `id`.
	Entry continuo.Entry `event:"entry"`
	// The state of the crew after an entry that has a `run_event`.
	Status    engine.CrewStatus `event:"status"`
	Turn      CrewTurnEvent     `event:"turn"`
	Delta     CrewTextEvent     `event:"delta"`
	Reasoning CrewTextEvent     `event:"reasoning"`
	// The last event, with an `id` of its own.
	End engine.CrewStatus `event:"end"`
	// The last event of a stream that broke off, which says nothing about the crew.
	Error Error `event:"error"`
}

// TextEvent is a fragment of the model's text.
type TextEvent struct {
	// What was added.
	Text string `json:"text"`
}

// ToolCallDeltaEvent is a fragment of a call that the model is still writing.
type ToolCallDeltaEvent struct {
	// Identifies the call among those of one answer.
	Index int `json:"index" minimum:"0"`
	// Of the first fragment.
	ID string `json:"id,omitempty"`
	// Of the first fragment.
	Name string `json:"name,omitempty"`
	// What was added to them.
	Arguments string `json:"arguments"`
}

// FallbackEvent is a request that failed before the model produced anything; the fallback is asked next.
type FallbackEvent struct {
	// The model that failed.
	Model   string                 `json:"model"`
	Reason  continuo.FailureReason `json:"reason"`
	Message string                 `json:"message"`
}

// ToolCallEvent is a call of a tool.
type ToolCallEvent struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// As the model wrote them; they may be invalid JSON.
	Arguments string `json:"arguments"`
	// When the call is denied if nobody decides. Only of calls that wait for a decision, and absent where they wait
	// without a limit, as in runs.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// DecisionEvent is a person's decision on a call.
type DecisionEvent struct {
	ToolCallID string `json:"tool_call_id"`
	Allowed    bool   `json:"allowed"`
	// The reason that the model is given for a denied call.
	Reason string `json:"reason,omitempty"`
}

// ToolResultEvent is the result of a call.
type ToolResultEvent struct {
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name"`
	// One line that says what was done; it may be empty.
	Outcome string `json:"outcome"`
	Failed  bool   `json:"failed"`
	// The first 2 000 characters of the output or of its preview.
	Content string `json:"content"`
	// Whether the output is longer.
	Truncated bool `json:"truncated"`
	// Where the whole output of a tool, or the inputs or outputs of a run, can be read.
	OutputRef  string `json:"output_ref,omitempty"`
	DurationMS int64  `json:"duration_ms"`
}

// maxShownOutput bounds how much of a tool's output an event carries, in Unicode characters.
const maxShownOutput = 2000

// ToolResult is the event of a tool's entry.
func ToolResult(entry *continuo.Entry) ToolResultEvent {
	event := ToolResultEvent{
		ToolCallID: entry.ToolCallID, Name: entry.ToolName, Outcome: entry.Outcome, Failed: entry.ToolFailed(),
		Content: entry.Content.String(), OutputRef: entry.OutputRef, DurationMS: entry.DurationMS,
		Truncated: entry.Output != nil, // the entry has a preview only
	}
	if shown := []rune(event.Content); len(shown) > maxShownOutput {
		event.Content, event.Truncated = string(shown[:maxShownOutput]), true
	}
	return event
}

// CrewTurnEvent is the beginning of a role's turn.
type CrewTurnEvent struct {
	ChatIDs
	// The name of the role whose turn it is.
	Role string `json:"role"`
}

// CrewTextEvent is a fragment of the text of a role's model.
type CrewTextEvent struct {
	// The name of the role that speaks.
	Role string `json:"role"`
	Text string `json:"text"`
}
