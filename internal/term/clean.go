package term

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/plaintext"
)

// OneLine formats untrusted text for a table: white space becomes one space, and characters that could control a
// terminal become visible. It reads no more of the text than limit columns need.
func OneLine(text string, limit int) string {
	var line strings.Builder
	space := false
	for at, r := range text {
		if line.Len() > 32*limit { // more bytes than the longest emoji take for their columns
			return Fit(line.String()+"…", limit)
		}
		switch {
		case unicode.IsSpace(r):
			space = line.Len() > 0
			continue
		case r == utf8.RuneError && !strings.HasPrefix(text[at:], string(utf8.RuneError)):
			r = '\ufffd'
		}
		if space {
			line.WriteByte(' ')
			space = false
		}
		line.WriteRune(visible(r))
	}
	return Fit(line.String(), limit)
}

// Clean makes untrusted text safe for a terminal: line ends and tabs stay, other characters that could control the
// terminal become visible.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, text)
}

// visible replaces a character that could control a terminal by one that shows it.
func visible(r rune) rune {
	switch {
	case r == 0x7f:
		return '␡'
	case r < 0x20:
		return 0x2400 + r
	case r >= 0x80 && r < 0xa0, plaintext.IsBidi(r):
		return '\ufffd'
	}
	return r
}

// Indent puts a prefix before every line.
func Indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}
