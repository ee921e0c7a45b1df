package window

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/plaintext"
)

// The bounds of what is shown of the calls of a group.
const (
	maxToldCalls     = 8
	maxToldName      = 64  // characters; of a speaker's name, too
	maxToldArguments = 120 // characters of a call's arguments
	maxToldResult    = 160 // characters of a result

	maxBroken = 1000 // characters of an answer of another role that broke off
)

// roleMessage is one message of the conversation as a role is shown it: what somebody said, or a group of calls with
// their results.
type roleMessage struct {
	unit  *unit
	label string // with the colon
	said  string // unescaped
	body  string // what is shown of it: all, or its beginning and its end
	short bool   // only a part of it is shown
	user  bool
	own   bool // the role's own words
	isNew bool // behind the role's cursor, and not its own

	size continuo.Size // of the message as it is shown; zero while it was not measured
}

func (m *roleMessage) seq() int64 { return m.unit.first() }

// text is the message under its label, with another body where it is cut.
func (m *roleMessage) text(body string) string { return m.label + " " + escapeTalk(body) }

// isAnswer reports whether the message is an answer of the role itself, whole and without calls: a model is shown it as
// its own message. Calls and answers that broke off stay under the role's label, so that no model learns to write them
// as words.
func (m *roleMessage) isAnswer() bool {
	return m.own && !m.unit.group && m.unit.entries[0].Error == nil
}

// newRoleMessage reads a unit; nil where it says nothing.
func newRoleMessage(u *unit, role *RoleView) *roleMessage {
	e := u.entries[0]
	m := &roleMessage{unit: u, label: labelOf(e), user: u.isUser()}
	m.own = role.isOwn(e)
	m.isNew = !m.own && e.Seq > role.Cursor
	lines := make([]string, 0, 1)
	if said := saidIn(e); !plaintext.IsBlank(said) {
		if e.Error != nil && !m.own && utf8.RuneCountInString(said) > maxBroken {
			said, m.short = cutHead(said, maxBroken)+" …", true
		}
		lines = append(lines, said)
	}
	lines = append(lines, m.calls()...)
	if len(lines) == 0 {
		return nil
	}
	if e.Error != nil {
		lines = append(lines, fmt.Sprintf("[broke off: %s]", plainName(cmp.Or(string(e.Error.Reason), "unknown"))))
	}
	m.said = strings.Join(lines, "\n")
	m.body = m.said
	return m
}

// isOwn reports whether the role itself has said an entry.
func (v *RoleView) isOwn(e *continuo.Entry) bool {
	return e.Role != continuo.User && e.Author != nil && e.Author.RoleName == v.Name && v.isOf(e)
}

// isOf reports whether an entry is of the role's crew, as far as it says.
func (v *RoleView) isOf(e *continuo.Entry) bool {
	id, ok := continuo.CrewOf(e.WorkflowID)
	return !ok || v.Crew == "" || id == v.Crew
}

// calls describes the calls of a group, one on a line.
func (m *roleMessage) calls() []string {
	var lines []string
	calls := m.unit.entries[0].ToolCalls
	for i, call := range calls {
		if i == maxToldCalls {
			m.short = true
			return append(lines, fmt.Sprintf("and %d more calls", len(calls)-i))
		}
		arguments := oneLine(call.Arguments, maxToldArguments)
		m.short = m.short || arguments != call.Arguments
		lines = append(lines, fmt.Sprintf("called %s(%s) -> %s", oneLine(call.Name, maxToldName), arguments, outcomeOf(m.unit.result(call.ID))))
	}
	return lines
}

// result returns the result of a group's call; nil for none.
func (u *unit) result(callID string) *continuo.Entry {
	for _, entry := range u.entries[1:] {
		if entry.ToolCallID == callID {
			return entry
		}
	}
	return nil
}

// outcomeOf is what came of a call, on one line: the tool's own words, or the first line of its output.
func outcomeOf(e *continuo.Entry) string {
	if e == nil {
		return "no result"
	}
	text := cmp.Or(e.Outcome, saidIn(e))
	if preview, ok := e.Preview(); ok && e.Outcome == "" {
		text = preview.Head
	}
	if e.Redacted != nil {
		text = continuo.RedactedText
	}
	text = strings.TrimSpace(text)
	end, _ := talkLine(text, 0)
	text = oneLine(text[:end], maxToldResult)
	switch {
	case e.PartType == continuo.PartInterrupted:
		text = "interrupted: " + text
	case e.ToolFailed():
		text = "failed: " + text
	}
	return cmp.Or(strings.TrimSpace(text), "(no output)")
}

// saidIn is the text of an entry, with a name in the place of each part that is none. Escape sequences are left out:
// one that stands before a label would hide it from escapeTalk.
func saidIn(e *continuo.Entry) string { return plaintext.Clean(wordsIn(e)) }

func wordsIn(e *continuo.Entry) string {
	switch {
	case e.Redacted != nil && !e.Content.IsNull():
		return continuo.RedactedText
	case !e.Content.IsParts():
		return e.Content.String()
	}
	var texts []string
	for _, part := range e.Content.Parts() {
		switch {
		case part.IsText():
			texts = append(texts, part.Text)
		case strings.Contains(part.Type, "image"):
			texts = append(texts, "[image]")
		default:
			texts = append(texts, "["+cmp.Or(plainName(part.Type), "attachment")+"]")
		}
	}
	return strings.Join(texts, "\n")
}

// labelOf says who speaks, with the colon.
func labelOf(e *continuo.Entry) string {
	word := "Assistant"
	if e.Role == continuo.User {
		word = "User"
	}
	if name := speakerOf(e); name != "" {
		return word + " (" + name + "):"
	}
	return word + ":"
}

func speakerOf(e *continuo.Entry) string {
	if a := e.Author; a != nil {
		if name := cmp.Or(plainName(a.DisplayName), plainName(a.RoleName), plainName(a.AgentName)); name != "" {
			return name
		}
	}
	return plainName(e.Name)
}

// plainName is a name as a label can hold it: on one line, without brackets and what takes no ink, at most 64 characters.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case isTalkLineEnd(r) || unicode.IsSpace(r) || strings.ContainsRune("()[]{}<>", plaintext.PlainRune(r)):
			return ' '
		case isInkless(r) || r == utf8.RuneError:
			return -1
		}
		return r
	}, name)
	return oneLine(name, maxToldName)
}

// oneLine is a text on one line, its white space made single spaces, cut to so many characters with an ellipsis.
func oneLine(text string, most int) string {
	var line strings.Builder
	chars, blank := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) || isTalkLineEnd(r) {
			blank = chars > 0
			continue
		}
		if chars += 1; blank {
			chars++
		}
		if chars > most {
			return cutHead(line.String(), most-1) + "…"
		}
		if blank {
			line.WriteByte(' ')
		}
		line.WriteRune(r)
		blank = false
	}
	return line.String()
}

// headAndTail is a text cut to about so many characters: its beginning and its end, and a line between them that says
// how much is left out.
func headAndTail(text string, chars int) string {
	head := cutHead(text, chars*2/3)
	tail := cutTail(text[len(head):], chars/3)
	left := utf8.RuneCountInString(text) - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	if left == 0 {
		return text
	}
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return fmt.Sprintf("%s[... %d characters left out ...]\n%s", head, left, tail)
}
