package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/turn"
)

// responseStream makes the stream of a response from the events of its turn. The same events give the same bytes, so
// that a stream can be replayed.
type responseStream struct {
	response     *wireResponse
	conversation string // to which the turn writes
	provider     string
	encrypted    bool // the client asked for encrypted reasoning

	number  int               // of the next event
	through int64             // seq of the turn's newest entry
	open    *openItem         // to which the newest delta was added
	calls   map[int]*openItem // the open calls by their index; they end with the answer, as their pieces may alternate
	items   []item            // begun; open ones are replaced when they end
	shown   map[string]bool
	own     int // of the provider's own items of the round

	mcp     mcpNames           // the tools of MCP servers that run here
	first   []item             // with which the output begins
	running map[string]openMCP // calls of MCP servers that have begun, by their ids
	asked   map[int]bool       // the calls of the answer, by their index, that the client is asked about when it is whole
}

// openItem is the item to which deltas are being added.
type openItem struct {
	ref   itemRef
	kind  string
	index int // among the items of the response
	call  continuo.ToolCall
	mark  mcpMark // of a call of an MCP server
	text  string
}

func newResponseStream(response *wireResponse, conversation, provider string, first int64, encrypted bool) *responseStream {
	return &responseStream{response: response, conversation: conversation, provider: provider, through: first - 1, encrypted: encrypted, shown: map[string]bool{}, calls: map[int]*openItem{}, running: map[string]openMCP{}, asked: map[int]bool{}}
}

// event returns what an event of the turn adds to the stream.
func (s *responseStream) event(event *turn.Event) string {
	switch event.Kind {
	case turn.Started:
		if event.Entry != nil {
			s.through = max(s.through, event.Entry.Seq)
		}
		if s.number > 0 {
			return "" // another process has taken the turn over
		}
		return s.send(responses.Event{Type: responses.EventCreated, Response: rawjson.MustMarshal(s.response)}) +
			s.send(responses.Event{Type: responses.EventInProgress, Response: rawjson.MustMarshal(s.response)}) + s.firstItems()
	case turn.TextDelta:
		return s.add(responses.TypeMessage, messageIndex, nil) + s.delta(responses.EventTextDelta, event.Text)
	case turn.ReasoningDelta:
		if event.Text != "" {
			return s.add(responses.TypeReasoning, reasoningIndex, nil) + s.delta(responses.EventReasoningDelta, event.Text)
		}
	case turn.CallDelta:
		return s.callDelta(event)
	case turn.OwnItem:
		return s.ownItem(event.Item)
	case turn.Answered, turn.ToolDone:
		wire := s.close()
		s.own = 0
		s.through = max(s.through, event.Entry.Seq)
		if event.Kind == turn.Answered {
			return wire + s.complete(event.Entry)
		}
		return wire + s.endMCP(event.Entry)
	case turn.Finished, turn.Failed:
		return s.close() + s.end(event)
	}
	return ""
}

func (s *responseStream) callDelta(event *turn.Event) string {
	delta := event.Delta
	if s.asked[delta.Index] {
		return ""
	}
	if open := s.calls[delta.Index]; open != nil {
		s.open = open
		if delta.Arguments == "" {
			return ""
		}
		return s.delta(argumentEvents[open.kind].delta, delta.Arguments)
	}
	named := inNamespace(continuo.ToolCall{ID: delta.ID, Type: delta.Type, Name: delta.Name}, s.response.Tools)
	call := &named
	kind := responses.TypeFunctionCall
	if delta.Type == "custom" {
		kind = responses.TypeCustomCall
	}
	mark, ofMCP := s.mcp[delta.Name]
	if ofMCP {
		kind = typeMCPCall
	}
	if mark.Asks {
		s.asked[delta.Index] = true
		return ""
	}
	wire := s.add(kind, firstCallIndex+delta.Index, call)
	s.calls[delta.Index] = s.open
	if delta.Arguments != "" {
		wire += s.delta(argumentEvents[kind].delta, delta.Arguments)
	}
	return wire
}

// add begins an item, unless it is open.
func (s *responseStream) add(kind string, index int, call *continuo.ToolCall) string {
	ref := itemRef{s.conversation, s.through + 1, index}
	if s.open != nil && s.open.ref == ref {
		return ""
	}
	wire := s.closeText()
	s.open = &openItem{ref: ref, kind: kind, index: len(s.items)}
	if call != nil {
		s.open.call, s.open.mark = *call, s.mcp[call.Name]
	}
	s.items = append(s.items, s.open.item(responses.StatusInProgress))
	s.shown[s.openID()] = true
	wire += s.send(responses.Event{Type: responses.EventItemAdded, OutputIndex: &s.open.index, Item: s.open.item(responses.StatusInProgress).raw})
	switch kind {
	case responses.TypeMessage, responses.TypeReasoning:
		wire += s.part(responses.EventPartAdded)
	case typeMCPCall:
		wire += s.send(responses.Event{Type: eventMCPCallInProgress, ItemID: s.openID(), OutputIndex: &s.open.index})
	}
	return wire
}

// item is the open item with what it has so far; in progress it is empty.
func (o *openItem) item(status string) item {
	content := o.text
	if status == responses.StatusInProgress {
		content = ""
	}
	switch o.kind {
	case responses.TypeMessage:
		return messageItem(o.ref, content, status)
	case responses.TypeReasoning:
		return reasoningItem(o.ref, content, nil, status)
	case typeMCPCall:
		o.mark.Arguments = content
		return mcpCallItem(o.ref, o.mark, nil)
	}
	call := o.call
	call.Arguments = content
	return callItem(o.ref, call, status)
}

// part begins or ends the part of a message or of reasoning.
func (s *responseStream) part(kind string) string {
	content, zero := s.open.text, 0
	if kind == responses.EventPartAdded {
		content = ""
	}
	part := textPart(content)
	if s.open.kind == responses.TypeReasoning {
		part = reasoningPart(content)
	}
	return s.send(responses.Event{Type: kind, ItemID: s.openID(), OutputIndex: &s.open.index, ContentIndex: &zero, Part: part})
}

func (s *responseStream) openID() string { return s.open.ref.id(s.open.kind) }

func (s *responseStream) delta(kind, text string) string {
	s.open.text += text
	event := responses.Event{Type: kind, ItemID: s.openID(), OutputIndex: &s.open.index, Delta: rawjson.MustMarshal(text)}
	zero := 0
	switch kind {
	case responses.EventTextDelta:
		event.ContentIndex, event.Logprobs = &zero, json.RawMessage("[]")
	case responses.EventReasoningDelta:
		event.ContentIndex = &zero
	}
	return s.send(event)
}

// closeText ends the open item, unless it is a call.
func (s *responseStream) closeText() string {
	if s.open == nil || s.open.ref.index >= firstCallIndex {
		return ""
	}
	return s.closeOpen()
}

// close ends all open items.
func (s *responseStream) close() string {
	wire := s.closeText()
	for _, index := range slices.Sorted(maps.Keys(s.calls)) {
		s.open = s.calls[index]
		wire += s.closeOpen()
	}
	clear(s.calls)
	clear(s.asked)
	return wire
}

// closeOpen ends the open item.
func (s *responseStream) closeOpen() string {
	zero := 0
	done := responses.Event{ItemID: s.openID(), OutputIndex: &s.open.index}
	wire := ""
	switch s.open.kind {
	case responses.TypeMessage:
		done.Type, done.Text, done.ContentIndex, done.Logprobs = responses.EventTextDone, &s.open.text, &zero, json.RawMessage("[]")
		wire = s.send(done) + s.part(responses.EventPartDone)
	case responses.TypeReasoning:
		done.Type, done.Text, done.ContentIndex = responses.EventReasoningDone, &s.open.text, &zero
		wire = s.send(done) + s.part(responses.EventPartDone)
	case responses.TypeCustomCall:
		done.Type, done.Input = responses.EventInputDone, &s.open.text
		wire = s.send(done)
	case typeMCPCall: // it ends with its result
		done.Type, done.Arguments = argumentEvents[typeMCPCall].done, &s.open.text
		wire = s.send(done)
		s.items[s.open.index] = s.open.item(responses.StatusCompleted)
		s.open = nil
		return wire
	default:
		done.Type, done.Arguments, done.Name = responses.EventArgumentsDone, &s.open.text, s.open.call.Name
		wire = s.send(done)
	}
	closed := s.open.item(responses.StatusCompleted)
	wire += s.send(responses.Event{Type: responses.EventItemDone, OutputIndex: &s.open.index, Item: closed.raw})
	s.items[s.open.index] = closed
	s.open = nil
	return wire
}

// complete adds the items of an answer that no delta began, such as encrypted reasoning, and takes the final form of the
// others.
func (s *responseStream) complete(answer *continuo.Entry) string {
	wire := ""
	shown := *answer
	shown.ToolCalls = slices.Clone(answer.ToolCalls)
	for i := range shown.ToolCalls {
		shown.ToolCalls[i] = inNamespace(shown.ToolCalls[i], s.response.Tools)
	}
	for _, final := range s.visible(answerItems(&shown)) {
		kind, _ := kindOf(final.raw)
		if s.shown[final.id] {
			for i := range s.items {
				if s.items[i].id == final.id {
					s.items[i] = final
				}
			}
			continue
		}
		if answer.Error != nil {
			continue // an answer that failed has what its deltas began
		}
		index := len(s.items)
		if kind == typeMCPCall {
			s.items, s.shown[final.id] = append(s.items, final), true
			wire += s.send(responses.Event{Type: responses.EventItemAdded, OutputIndex: &index, Item: final.raw}) +
				s.send(responses.Event{Type: eventMCPCallInProgress, ItemID: final.id, OutputIndex: &index})
			continue
		}
		wire += s.send(responses.Event{Type: responses.EventItemAdded, OutputIndex: &index, Item: final.raw}) +
			s.send(responses.Event{Type: responses.EventItemDone, OutputIndex: &index, Item: final.raw})
		s.items, s.shown[final.id] = append(s.items, final), true
	}
	s.run(answer)
	return wire
}

// ownItem adds an item of the provider's own.
func (s *responseStream) ownItem(raw json.RawMessage) string {
	wire := s.closeText()
	made := ownItem(itemRef{s.conversation, s.through + 1, firstOwnIndex + s.own}, raw)
	s.own++
	made = s.visible([]item{made})[0]
	index := len(s.items)
	s.items, s.shown[made.id] = append(s.items, made), true
	s.open = nil
	return wire + s.send(responses.Event{Type: responses.EventItemAdded, OutputIndex: &index, Item: made.raw}) +
		s.send(responses.Event{Type: responses.EventItemDone, OutputIndex: &index, Item: made.raw})
}

// visible removes encrypted reasoning that the client did not ask for.
func (s *responseStream) visible(items []item) []item {
	if s.encrypted {
		return items
	}
	return withoutEncrypted(items)
}

// end sends the last event of the response, and the line after it.
func (s *responseStream) end(event *turn.Event) string {
	s.response.end(event.Entry, event.Usage, seconds(time.Now()))
	if event.Entry != nil && event.Entry.CreatedAt != (time.Time{}) && s.response.CompletedAt != nil {
		*s.response.CompletedAt = seconds(event.Entry.CreatedAt) // the same when it is replayed
	}
	for _, item := range s.items {
		s.response.Output = append(s.response.Output, item.raw)
	}
	kind := responses.EventCompleted
	switch s.response.Status {
	case responses.StatusIncomplete:
		kind = responses.EventIncomplete
	case responses.StatusFailed, responses.StatusCancelled:
		kind = responses.EventFailed
	}
	return s.send(responses.Event{Type: kind, Response: rawjson.MustMarshal(s.response)}) + "data: " + responses.Done + "\n\n"
}

// seconds is a time as OpenAI writes it.
func seconds(at time.Time) float64 { return float64(at.Unix()) }

// send returns an event with the next number.
func (s *responseStream) send(event responses.Event) string {
	event.SequenceNumber = s.number
	s.number++
	return fmt.Sprintf("event: %s\ndata: %s\n\n", event.Type, rawjson.MustMarshal(event))
}

// cutEvent separates the first event of a stream from the rest.
func cutEvent(wire string) (event, rest string, found bool) {
	event, rest, found = strings.Cut(wire, "\n\n")
	return event + "\n\n", rest, found
}
