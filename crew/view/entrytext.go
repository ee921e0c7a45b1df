package view

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/plaintext"
)

// textIn is the text of an entry, with a name instead of each part that is not text. Escape sequences are removed:
// one before a label would hide it from escape.
func textIn(e *continuo.Entry) string { return plaintext.Clean(rawTextIn(e)) }

func rawTextIn(e *continuo.Entry) string {
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

// notesText is the text of notes, with the decisions that they list.
func notesText(e *continuo.Entry) string {
	text := strings.TrimSpace(textIn(e))
	if len(e.Summary.Decisions) == 0 {
		return text
	}
	lines := []string{text, "Key decisions:"}
	for _, decision := range e.Summary.Decisions {
		lines = append(lines, "- "+oneLine(decision, maxDecision))
	}
	return strings.Join(lines, "\n")
}

// maxDecision bounds the characters of a decision.
const maxDecision = 500

// labelOf is the speaker's label, with the colon.
func labelOf(e *continuo.Entry) string {
	label := "Assistant"
	if e.Role == continuo.User {
		label = "User"
	}
	if name := speakerOf(e); name != "" {
		return label + " (" + name + "):"
	}
	return label + ":"
}

func speakerOf(e *continuo.Entry) string {
	if a := e.Author; a != nil {
		if name := cmp.Or(plainName(a.DisplayName), plainName(a.RoleName), plainName(a.AgentName)); name != "" {
			return name
		}
	}
	return plainName(e.Name)
}

// maxName bounds the characters of a speaker's or a tool's name.
const maxName = 64

// plainName is a name in the form that a label can hold: on one line, without brackets and invisible characters, at
// most 64 characters.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case isLineEnd(r) || unicode.IsSpace(r) || strings.ContainsRune("()[]{}<>", plaintext.PlainRune(r)):
			return ' '
		case isInkless(r) || r == utf8.RuneError:
			return -1
		}
		return r
	}, name)
	return oneLine(name, maxName)
}

// oneLine is a text on one line with single spaces, cut to so many characters with an ellipsis.
func oneLine(text string, limit int) string {
	var line strings.Builder
	chars, blank := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) || isLineEnd(r) {
			blank = chars > 0
			continue
		}
		if chars++; blank {
			chars++
		}
		if chars > limit {
			return plaintext.Head(line.String(), limit-1) + "…"
		}
		if blank {
			line.WriteByte(' ')
		}
		line.WriteRune(r)
		blank = false
	}
	return line.String()
}

// headAndTail cuts a text to about so many characters: its beginning and its end, with a line between them that says
// how much is left out.
func headAndTail(text string, chars int) string {
	head := plaintext.Head(text, chars*2/3)
	tail := plaintext.Tail(text[len(head):], chars/3)
	left := utf8.RuneCountInString(text) - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	if left == 0 {
		return text
	}
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return fmt.Sprintf("%s[... %d characters left out ...]\n%s", head, left, tail)
}
