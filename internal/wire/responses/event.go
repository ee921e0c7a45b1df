package responses

import "encoding/json"

// The types of stream events that have a meaning here; there are more, which are ignored. A stream begins with
// response.created and ends with response.completed, response.incomplete, response.failed or error.
const (
	EventCreated          = "response.created"
	EventQueued           = "response.queued"
	EventInProgress       = "response.in_progress"
	EventItemAdded        = "response.output_item.added"
	EventItemDone         = "response.output_item.done"
	EventPartAdded        = "response.content_part.added"
	EventPartDone         = "response.content_part.done"
	EventTextDelta        = "response.output_text.delta"
	EventTextDone         = "response.output_text.done"
	EventRefusalDelta     = "response.refusal.delta"
	EventRefusalDone      = "response.refusal.done"
	EventArgumentsDelta   = "response.function_call_arguments.delta"
	EventArgumentsDone    = "response.function_call_arguments.done"
	EventInputDelta       = "response.custom_tool_call_input.delta"
	EventInputDone        = "response.custom_tool_call_input.done"
	EventSummaryPartAdded = "response.reasoning_summary_part.added"
	EventSummaryPartDone  = "response.reasoning_summary_part.done"
	EventSummaryDelta     = "response.reasoning_summary_text.delta"
	EventSummaryDone      = "response.reasoning_summary_text.done"
	EventReasoningDelta   = "response.reasoning_text.delta"
	EventReasoningDone    = "response.reasoning_text.done"
	EventCompleted        = "response.completed"
	EventIncomplete       = "response.incomplete"
	EventFailed           = "response.failed"
	EventError            = "error"
)

// Done is the data of the line after the last event.
const Done = "[DONE]"

// Event is any event of a stream; each type has some of the members. The SSE event's name is the type.
type Event struct {
	Type           string          `json:"type"`
	SequenceNumber int             `json:"sequence_number"`
	Response       json.RawMessage `json:"response,omitempty"` // a Response
	ItemID         string          `json:"item_id,omitempty"`
	OutputIndex    *int            `json:"output_index,omitempty"`
	ContentIndex   *int            `json:"content_index,omitempty"`
	SummaryIndex   *int            `json:"summary_index,omitempty"`
	Item           json.RawMessage `json:"item,omitempty"`
	Part           json.RawMessage `json:"part,omitempty"`
	Delta          json.RawMessage `json:"delta,omitempty"` // a string in the types above
	Text           *string         `json:"text,omitempty"`
	Refusal        *string         `json:"refusal,omitempty"`
	Name           string          `json:"name,omitempty"`
	Arguments      *string         `json:"arguments,omitempty"`
	Input          *string         `json:"input,omitempty"`
	Logprobs       json.RawMessage `json:"logprobs,omitempty"`
	// Code, Message and Param are those of an error event; some servers put them into Error.
	Code    *string         `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Param   *string         `json:"param,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// IsKnown reports whether the type of an event is one of those that this package names.
func IsKnown(event string) bool {
	switch event {
	case EventCreated, EventQueued, EventInProgress, EventItemAdded, EventItemDone, EventPartAdded, EventPartDone,
		EventTextDelta, EventTextDone, EventRefusalDelta, EventRefusalDone, EventArgumentsDelta, EventArgumentsDone,
		EventInputDelta, EventInputDone, EventSummaryPartAdded, EventSummaryPartDone, EventSummaryDelta, EventSummaryDone,
		EventReasoningDelta, EventReasoningDone, EventCompleted, EventIncomplete, EventFailed, EventError:
		return true
	}
	return false
}
