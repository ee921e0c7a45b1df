package match

import (
	"bytes"
	"encoding/json"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/lazy"
	"github.com/continuo-log/continuo/internal/plaintext"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// unit is a part of what an entry says, in canonical form. Entries have no borders in the hash: two user messages say
// the same as one with the parts of both.
type unit struct {
	tag  byte
	text string
}

// The tags of units.
const (
	unitUser      = 'u'
	unitSystem    = 's'
	unitAssistant = 'a'
	unitCall      = 'c'
	unitResult    = 't'
	unitPart      = 'p' // of content that is not text
)

// units returns what an entry says. Answered says that an answer precedes it: before the first one, dates make no
// difference, because clients write the current date there.
func units(e *continuo.Entry, answered bool) (said []unit) {
	switch e.Role {
	case continuo.Assistant:
		if text := trimmed(e.Content.String()); !plaintext.IsBlank(text) {
			said = append(said, unit{unitAssistant, text})
		}
		for i := range e.ToolCalls {
			said = append(said, unit{unitCall, e.ToolCalls[i].Name + "\x00" + canonicalJSON(e.ToolCalls[i].Arguments)})
		}
		return said
	case continuo.Tool:
		said = []unit{{unitResult, trimmed(withoutReminders(e.Content.String()))}}
		return append(said, mediaUnits(e.Content)...)
	}
	tag := byte(unitUser)
	if e.Role == continuo.System {
		tag = unitSystem
	}
	add := func(text string) {
		text = trimmed(withoutReminders(text))
		if !answered {
			text = withoutDates(text)
		}
		if !plaintext.IsBlank(text) {
			said = append(said, unit{tag, text})
		}
	}
	if !e.Content.IsParts() {
		add(e.Content.String())
		return said
	}
	for _, part := range e.Content.Parts() {
		if part.IsText() {
			add(part.Text)
		} else {
			said = append(said, unit{unitPart, canonicalPart(part)})
		}
	}
	return said
}

func mediaUnits(content continuo.Content) (said []unit) {
	for _, part := range content.Parts() {
		if !part.IsText() {
			said = append(said, unit{unitPart, canonicalPart(part)})
		}
	}
	return said
}

func trimmed(text string) string { return strings.TrimRight(text, " \t\r\n") }

// canonicalJSON writes JSON with sorted keys and without white space; any other text unchanged.
func canonicalJSON(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil || decoder.More() {
		return trimmed(text)
	}
	return string(rawjson.MustMarshal(value))
}

// canonicalPart is a part that is not text, without cache marks.
func canonicalPart(part continuo.Part) string {
	raw := part.Raw
	if bytes.Contains(raw, []byte("cache_control")) {
		if object, err := rawjson.ParseObject(raw); err == nil {
			raw = object.Without("cache_control").Raw()
		}
	}
	return canonicalJSON(string(raw))
}

// The tags around what a client reminds the model of by itself: agents move these from message to message.
const (
	reminderBegins = "<system-reminder>"
	reminderEnds   = "</system-reminder>"
)

// withoutReminders removes the client's own reminders from a text.
func withoutReminders(text string) string {
	if !strings.Contains(text, reminderBegins) {
		return text
	}
	var kept strings.Builder
	for {
		before, after, found := strings.Cut(text, reminderBegins)
		kept.WriteString(before)
		if !found {
			return kept.String()
		}
		_, rest, closed := strings.Cut(after, reminderEnds)
		if !closed {
			return kept.String() + reminderBegins + after
		}
		text = strings.TrimLeft(rest, "\r\n")
	}
}

// dates finds dates and times as agents write them into their first messages.
var dates = lazy.Regexp(`(?i)\b(?:` +
	`\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?` +
	`|(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s+)?(?:` + months + `)\.?\s+\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4}` +
	`|(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s+)?\d{1,2}\.?\s+(?:` + months + `)\.?,?\s+\d{4}` +
	`|\d{1,2}[/.]\d{1,2}[/.]\d{4}` +
	`|\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?` +
	`)\b`)

const months = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`

func withoutDates(text string) string {
	if !strings.ContainsAny(text, "0123456789") {
		return text
	}
	return dates().ReplaceAllLiteralString(text, "<date>")
}
