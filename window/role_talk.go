package window

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// What is told of the calls of a group.
const (
	maxToldCalls     = 8
	maxToldName      = 64  // characters; of a speaker's name, too
	maxToldArguments = 120 // characters of a call's arguments
	maxToldResult    = 160 // characters of a result

	maxBroken = 1000 // characters of an answer of another role that broke off
)

// talk is one message of the talk: what somebody said, or a group of calls with what came of it.
type talk struct {
	unit  *unit
	label string // with the colon
	body  string // as it was said, unescaped
	short bool   // calls of it are not told whole
	user  bool
	own   bool // the role's own word
	isNew bool // behind the role's cursor, and not its own

	size  continuo.Size // of what text gives; zero while it was not asked for
	order order
}

// order is the part that a message plays when there is too little room.
type order int

const (
	aside    order = iota // not shown in this kind of view
	optional              // shown where there is room: seen before, its own, or covered by a summary
	pinned                // the newest user message, seen before: shown whatever else is
	fresh                 // new: shown, or waits for the next turn
)

func (t *talk) seq() int64 { return t.unit.first() }

// text is the message as it stands in a role's text, with another body where it is cut.
func (t *talk) text(body string) string { return t.label + " " + escapeTalk(body) }

// newTalk reads a unit as talk; nil where it says nothing.
func newTalk(u *unit, role *RoleView) *talk {
	e := u.entries[0]
	t := &talk{unit: u, label: labelOf(e), user: u.isUser()}
	t.own = role.isOwn(e)
	t.isNew = !t.own && e.Seq > role.Cursor
	lines := make([]string, 0, 1)
	if said := saidIn(e); strings.IndexFunc(said, isVisible) >= 0 {
		if e.Error != nil && !t.own && utf8.RuneCountInString(said) > maxBroken {
			said, t.short = cutHead(said, maxBroken)+" …", true
		}
		lines = append(lines, said)
	}
	lines = append(lines, t.told()...)
	if len(lines) == 0 {
		return nil
	}
	if e.Error != nil {
		lines = append(lines, fmt.Sprintf("[broke off: %s]", plainName(cmp.Or(string(e.Error.Reason), "unknown"))))
	}
	t.body = strings.Join(lines, "\n")
	return t
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

// told tells the calls of a group, one on a line.
func (t *talk) told() []string {
	var lines []string
	calls := t.unit.entries[0].ToolCalls
	for i, call := range calls {
		if i == maxToldCalls {
			t.short = true
			return append(lines, fmt.Sprintf("and %d more calls", len(calls)-i))
		}
		arguments := oneLine(call.Arguments, maxToldArguments)
		t.short = t.short || arguments != call.Arguments
		lines = append(lines, fmt.Sprintf("called %s(%s) -> %s", oneLine(call.Name, maxToldName), arguments, outcomeOf(t.unit.result(call.ID))))
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

// saidIn is the text of an entry, with a name in the place of each part that is none.
func saidIn(e *continuo.Entry) string {
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
		case isTalkLineEnd(r) || unicode.IsSpace(r) || strings.ContainsRune("()[]{}<>", plainRune(r)):
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
