package responses

import (
	"encoding/json"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Stream makes the events of a response from the pieces of an answer. Each method returns the events to send, in order;
// sequence numbers count from 0 without a gap. The items and their ids are those that [Output] returns for the entry, as
// long as the answer has reasoning first and one message before its calls. After Complete or Fail there are no more events.
type Stream struct {
	// Response is the response so far. Its members other than status, output, usage, error and incomplete_details may be
	// set before Begin.
	Response Response
	// EntryID is the id that the entry of the answer will have.
	EntryID string

	sequence int
	items    []*streamed
	text     bool // there has been text
}

// streamed is an item of a stream.
type streamed struct {
	kind  string
	id    string
	index int
	text  []byte
	call  continuo.ToolCall
	open  bool
}

// Begin returns the events at the beginning.
func (s *Stream) Begin() []Event {
	return []Event{s.response(EventCreated), s.response(EventInProgress)}
}

// Text returns the events of a piece of text.
func (s *Stream) Text(piece string) (events []Event) {
	if piece == "" {
		return nil
	}
	item := s.newest(TypeMessage)
	if item == nil {
		if s.text {
			piece = strings.TrimPrefix(piece, gap) // what separates two messages in an entry
		}
		item, events = s.open(TypeMessage, continuo.ToolCall{})
		part := s.event(EventPartAdded, item)
		part.ContentIndex, part.Part = new(int), rawjson.MustMarshal(outputText(""))
		events = append(events, part)
	}
	s.text = true
	item.text = append(item.text, piece...)
	delta := s.event(EventTextDelta, item)
	delta.ContentIndex, delta.Delta, delta.Logprobs = new(int), rawjson.MustMarshal(piece), json.RawMessage("[]")
	return append(events, delta)
}

// Reasoning returns the events of a piece of reasoning text.
func (s *Stream) Reasoning(piece string) (events []Event) {
	if piece == "" {
		return nil
	}
	item := s.newest(TypeReasoning)
	if item == nil {
		item, events = s.open(TypeReasoning, continuo.ToolCall{})
		part := s.event(EventSummaryPartAdded, item)
		part.SummaryIndex, part.Part = new(int), rawjson.MustMarshal(textPart{Type: "summary_text"})
		events = append(events, part)
	}
	item.text = append(item.text, piece...)
	delta := s.event(EventSummaryDelta, item)
	delta.SummaryIndex, delta.Delta = new(int), rawjson.MustMarshal(piece)
	return append(events, delta)
}

// Call returns the events of the beginning of a call, whose arguments follow.
func (s *Stream) Call(made continuo.ToolCall) []Event {
	kind := TypeFunctionCall
	if made.Type == "custom" {
		kind = TypeCustomCall
	}
	made.Arguments = ""
	_, events := s.open(kind, made)
	return events
}

// Arguments returns the events of a piece of the arguments of a call, by the call's id.
func (s *Stream) Arguments(callID, piece string) []Event {
	for _, item := range s.items {
		if item.call.ID != callID || !item.open || piece == "" {
			continue
		}
		item.text = append(item.text, piece...)
		delta := s.event(deltaOf(item.kind), item)
		delta.Delta = rawjson.MustMarshal(piece)
		return []Event{delta}
	}
	return nil
}

func deltaOf(kind string) string {
	if kind == TypeCustomCall {
		return EventInputDelta
	}
	return EventArgumentsDelta
}

// Complete returns the events at the end of a whole answer, whose finish reason has OpenAI's name.
func (s *Stream) Complete(finish string, usage *continuo.Usage, completedAt int64) []Event {
	last, status := EventCompleted, StatusCompleted
	switch finish {
	case "length":
		s.Response.IncompleteDetails = &IncompleteDetails{Reason: "max_output_tokens"}
	case "content_filter":
		s.Response.IncompleteDetails = &IncompleteDetails{Reason: finish}
	}
	if s.Response.IncompleteDetails != nil {
		last, status = EventIncomplete, StatusIncomplete
	} else {
		at := float64(completedAt)
		s.Response.CompletedAt = &at
	}
	s.Response.Usage = UsageOf(usage)
	return s.end(last, status)
}

// Fail returns the events at the end of an answer that failed. What was streamed of it is in the response.
func (s *Stream) Fail(code, message string, usage *continuo.Usage) []Event {
	s.Response.Error = &Error{Code: code, Message: message}
	s.Response.Usage = UsageOf(usage)
	return s.end(EventFailed, StatusFailed)
}

func (s *Stream) end(last, status string) (events []Event) {
	itemStatus := StatusCompleted
	if status != StatusCompleted {
		itemStatus = StatusIncomplete
	}
	for i, item := range s.items {
		of := StatusCompleted
		if i == len(s.items)-1 {
			of = itemStatus
		}
		events = append(events, s.close(item, of)...)
	}
	s.Response.Status = status
	return append(events, s.response(last))
}

// UsageOf is a usage in the protocol's form; nil for nil.
func UsageOf(usage *continuo.Usage) *Usage {
	if usage == nil {
		return nil
	}
	return &Usage{
		InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens, TotalTokens: usage.InputTokens + usage.OutputTokens,
		InputTokensDetails:  InputTokensDetails{CachedTokens: usage.CachedTokens, CacheWriteTokens: usage.CacheWriteTokens},
		OutputTokensDetails: OutputTokensDetails{ReasoningTokens: usage.ReasoningTokens},
	}
}

// newest returns the newest item if it is open and of a type.
func (s *Stream) newest(kind string) *streamed {
	if n := len(s.items); n > 0 && s.items[n-1].kind == kind && s.items[n-1].open {
		return s.items[n-1]
	}
	return nil
}

// open begins an item and ends the one before, unless both are calls, whose arguments may alternate.
func (s *Stream) open(kind string, made continuo.ToolCall) (item *streamed, events []Event) {
	if n := len(s.items); n > 0 && (s.items[n-1].call.ID == "" || made.ID == "") {
		for _, before := range s.items {
			events = append(events, s.close(before, StatusCompleted)...)
		}
	}
	item = &streamed{kind: kind, id: ItemID(kind, s.EntryID, len(s.items)), index: len(s.items), call: made, open: true}
	s.items = append(s.items, item)
	added := s.event(EventItemAdded, item)
	added.ItemID, added.Item = "", item.raw(StatusInProgress, true)
	return item, append(events, added)
}

// close ends an item.
func (s *Stream) close(item *streamed, status string) (events []Event) {
	if !item.open {
		return nil
	}
	item.open = false
	text := string(item.text)
	switch item.kind {
	case TypeMessage:
		done, part := s.event(EventTextDone, item), s.event(EventPartDone, item)
		done.ContentIndex, done.Text, done.Logprobs = new(int), &text, json.RawMessage("[]")
		part.ContentIndex, part.Part = new(int), rawjson.MustMarshal(outputText(text))
		events = append(events, done, part)
	case TypeReasoning:
		done, part := s.event(EventSummaryDone, item), s.event(EventSummaryPartDone, item)
		done.SummaryIndex, done.Text = new(int), &text
		part.SummaryIndex, part.Part = new(int), rawjson.MustMarshal(textPart{Type: "summary_text", Text: text})
		events = append(events, done, part)
	case TypeCustomCall:
		done := s.event(EventInputDone, item)
		done.Input = &text
		events = append(events, done)
	default:
		done := s.event(EventArgumentsDone, item)
		done.Name, done.Arguments = item.call.Name, &text
		events = append(events, done)
	}
	raw := item.raw(status, false)
	s.Response.Output = append(s.Response.Output, raw)
	done := s.event(EventItemDone, item)
	done.ItemID, done.Item = "", raw
	return append(events, done)
}

// raw writes an item, without its content when it has just begun.
func (i *streamed) raw(status string, begun bool) json.RawMessage {
	text := string(i.text)
	switch i.kind {
	case TypeMessage:
		message := messageItem(text, status)
		message.ID = i.id
		if begun {
			message.Content = []OutputText{}
		}
		return rawjson.MustMarshal(message)
	case TypeReasoning:
		reasoning := reasoningItem{ID: i.id, Type: TypeReasoning, Summary: []ContentPart{}}
		if !begun {
			reasoning.Summary = append(reasoning.Summary, ContentPart{Type: "summary_text", Text: text})
		}
		return rawjson.MustMarshal(reasoning)
	}
	made := i.call
	made.Arguments = text
	item := writtenCall(&made, status)
	item.ID = i.id
	return rawjson.MustMarshal(item)
}

func (s *Stream) response(kind string) Event {
	event := Event{Type: kind, SequenceNumber: s.sequence, Response: rawjson.MustMarshal(s.Response)}
	s.sequence++
	return event
}

func (s *Stream) event(kind string, item *streamed) Event {
	index := item.index
	event := Event{Type: kind, SequenceNumber: s.sequence, ItemID: item.id, OutputIndex: &index}
	s.sequence++
	return event
}
