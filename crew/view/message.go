package view

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/plaintext"
	"github.com/continuo-log/continuo/window"
)

// The bounds of a group's calls as they are shown.
const (
	maxCalls     = 8
	maxArguments = 120 // characters of a call's arguments
	maxResult    = 160 // characters of a result

	maxFailedChars = 1000 // characters of an answer of another role that broke off
)

// message is one message of the conversation as a role is shown it: a text of one speaker, or a group of calls with
// their results.
type message struct {
	unit  *window.Unit
	label string // with the colon
	raw   string // unescaped
	body  string // the shown text: all, or its beginning and its end
	short bool   // only a part of it is shown
	user  bool
	own   bool // the role's own message
	isNew bool // after the role's cursor, and not its own

	size continuo.Size // of the message as it is shown; zero before it is measured

	recalls []part // blocks of recalled entries that follow it
}

func (m *message) seq() int64 { return m.unit.First() }

// text is the message with its label, with another body where it is cut.
func (m *message) text(body string) string { return m.label + " " + escape(body) }

// isAnswer reports whether the message is an answer of the role itself, complete and without calls: a model is shown
// it as its own message. Calls and answers that broke off remain under the role's label, so that no model learns to
// write them as text.
func (m *message) isAnswer() bool {
	return m.own && !m.unit.Group && m.unit.Entries[0].Error == nil
}

// newMessage makes a message from a unit; nil where the unit has no text.
func newMessage(u *window.Unit, role *Role) *message {
	e := u.Entries[0]
	m := &message{unit: u, label: labelOf(e), user: u.IsUser()}
	m.own = role.isOwn(e)
	m.isNew = !m.own && e.Seq > role.Cursor
	lines := make([]string, 0, 1)
	if text := textIn(e); !plaintext.IsBlank(text) {
		if e.Error != nil && !m.own && utf8.RuneCountInString(text) > maxFailedChars {
			text, m.short = plaintext.Head(text, maxFailedChars)+" …", true
		}
		lines = append(lines, text)
	}
	lines = append(lines, m.calls()...)
	if len(lines) == 0 {
		return nil
	}
	if e.Error != nil {
		lines = append(lines, fmt.Sprintf("[broke off: %s]", plainName(cmp.Or(string(e.Error.Reason), "unknown"))))
	}
	m.raw = strings.Join(lines, "\n")
	m.body = m.raw
	return m
}

// calls describes the calls of a group, one on a line.
func (m *message) calls() []string {
	var lines []string
	calls := m.unit.Entries[0].ToolCalls
	for i, call := range calls {
		if i == maxCalls {
			m.short = true
			return append(lines, fmt.Sprintf("and %d more calls", len(calls)-i))
		}
		arguments := oneLine(call.Arguments, maxArguments)
		m.short = m.short || arguments != call.Arguments
		lines = append(lines, fmt.Sprintf("called %s(%s) -> %s", oneLine(call.Name, maxName), arguments, outcomeOf(m.resultOf(call.ID))))
	}
	return lines
}

// resultOf returns the result of a group's call; nil for none.
func (m *message) resultOf(callID string) *continuo.Entry {
	for _, entry := range m.unit.Entries[1:] {
		if entry.ToolCallID == callID {
			return entry
		}
	}
	return nil
}

// outcomeOf is the result of a call, on one line: the tool's own summary, or the first line of its output.
func outcomeOf(e *continuo.Entry) string {
	if e == nil {
		return "no result"
	}
	text := cmp.Or(e.Outcome, textIn(e))
	if preview, ok := e.Preview(); ok && e.Outcome == "" {
		text = preview.Head
	}
	if e.Redacted != nil {
		text = continuo.RedactedText
	}
	text = strings.TrimSpace(text)
	end, _ := nextLine(text, 0)
	text = oneLine(text[:end], maxResult)
	switch {
	case e.PartType == continuo.PartInterrupted:
		text = "interrupted: " + text
	case e.ToolFailed():
		text = "failed: " + text
	}
	return cmp.Or(strings.TrimSpace(text), "(no output)")
}
