package render

import (
	"encoding/json"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/window"
)

// noResult is the result of a call that has none.
const noResult = "[No result: the call never ended.]"

// TranscriptOf makes the transcript of a plan: the messages before plan.Cycle are history, the rest is the
// current cycle; when plan.Cycle is 0, all is history. System messages and markers are left out, and thinking
// in the history too. Each call is followed by its own result. Each gap is marked at its position, unless the
// history has only the one at its beginning, which the count line states. The count is of user, assistant and
// tool messages in the history, shown and dropped. A crew role's text states its own gaps.
func TranscriptOf(plan *window.Plan) Transcript {
	var t Transcript
	g := gapsOf(plan)
	events := &t.History
	for _, u := range unitsOf(plan) {
		if u.current && events == &t.History {
			t.History = append(t.History, g.upTo(historyEnd(plan))...)
			events = &t.Current
		}
		*events = append(append(*events, g.before(&u)...), u.events...)
		if !u.current {
			t.Shown += 1 + int64(storedResults(u.results))
		}
	}
	if events == &t.History {
		t.History = append(t.History, g.upTo(historyEnd(plan))...)
	}
	t.History = withoutLeadingGap(t.History)
	left := g.total(1, historyEnd(plan))
	if left == 0 {
		t.Shown = 0
		return t
	}
	t.Total = t.Shown + left
	return t
}

// historyEnd is the newest seq of the history.
func historyEnd(plan *window.Plan) int64 {
	if plan.Cycle > 0 {
		return plan.Cycle - 1
	}
	return plan.At
}

// withoutLeadingGap removes a gap at the beginning when it is the only one.
func withoutLeadingGap(events []Event) []Event {
	if len(events) > 0 && events[0].Kind == EventGap && !hasGap(events[1:]) {
		return events[1:]
	}
	return events
}

// transcriptUnit is the part of a transcript for one message and the results of its calls.
type transcriptUnit struct {
	head    *window.Message
	results []window.Message
	events  []Event
	current bool // of the current cycle
}

// unitsOf splits a plan into the parts of its transcript.
func unitsOf(plan *window.Plan) []transcriptUnit {
	var units []transcriptUnit
	for at := 0; at < len(plan.Messages); {
		u := transcriptUnit{head: &plan.Messages[at], results: resultsAfter(plan.Messages, at)}
		at += 1 + len(u.results)
		if u.head.Role == continuo.System || isMarker(u.head) {
			continue
		}
		u.current = plan.Cycle > 0 && u.head.Seq >= plan.Cycle
		u.events = eventsOf(u.head, u.results, u.current)
		units = append(units, u)
	}
	return units
}

// isMarker reports whether a message marks a gap.
func isMarker(m *window.Message) bool { return m.Seq == 0 && m.Entry == nil }

// resultsAfter returns the tool messages that follow an assistant message with calls.
func resultsAfter(messages []window.Message, at int) []window.Message {
	if messages[at].Role != continuo.Assistant || len(messages[at].ToolCalls) == 0 {
		return nil
	}
	end := at + 1
	for end < len(messages) && messages[end].Role == continuo.Tool {
		end++
	}
	return messages[at+1 : end]
}

// storedResults counts the results that are entries rather than made up by the plan.
func storedResults(results []window.Message) int {
	n := 0
	for _, result := range results {
		if result.Entry != nil {
			n++
		}
	}
	return n
}

// eventsOf writes a message, and the results of its calls, as events.
func eventsOf(m *window.Message, results []window.Message, thinking bool) []Event {
	switch m.Role {
	case continuo.User:
		return []Event{{EventUser, plainText(m.Content)}}
	case continuo.Tool:
		return []Event{{EventResult, resultText(m)}}
	}
	var events []Event
	if thinking && m.Entry != nil && m.Entry.Reasoning != nil && m.Entry.Reasoning.Text != "" {
		events = append(events, Event{EventThink, m.Entry.Reasoning.Text})
	}
	if text := plainText(m.Content); text != "" {
		events = append(events, Event{EventRespond, text})
	}
	for _, call := range m.ToolCalls {
		result := noResult
		at := slices.IndexFunc(results, func(r window.Message) bool { return r.ToolCallID == call.ID })
		if at >= 0 {
			result = resultText(&results[at])
		}
		events = append(events, Event{EventCall, callText(call)}, Event{EventResult, result})
	}
	return events
}

// callText writes a call in the form of the streaming protocol. Valid JSON arguments are unchanged.
func callText(call continuo.ToolCall) string {
	args := call.Arguments
	if call.Type == "custom" || !json.Valid([]byte(args)) {
		args = string(rawjson.MustMarshal(args))
	}
	return `{"name": ` + string(rawjson.MustMarshal(call.Name)) + `, "args": ` + args + `}`
}

// resultText is a tool's outcome line and its content, separated by an empty line.
func resultText(m *window.Message) string {
	content := plainText(m.Content)
	if m.Entry == nil || m.Entry.Outcome == "" {
		return content
	}
	if content == "" {
		return m.Entry.Outcome
	}
	return m.Entry.Outcome + "\n\n" + content
}

// plainText returns the text of content; other parts are replaced by their names.
func plainText(content continuo.Content) string {
	if !content.IsParts() {
		return content.String()
	}
	texts := make([]string, 0, len(content.Parts()))
	for _, part := range content.Parts() {
		if part.IsText() {
			texts = append(texts, part.Text)
		} else {
			texts = append(texts, "["+part.Type+"]")
		}
	}
	return strings.Join(texts, "\n")
}
