package task

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes a text that every store can hold: valid UTF-8 without NUL.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// firstChars is the beginning of a text, so many characters long.
func firstChars(text string, chars int) string {
	if len(text) <= chars {
		return text
	}
	for at := range text {
		if chars <= 0 {
			return text[:at]
		}
		chars--
	}
	return text
}

// oneLine is a text on one line, its white space made single spaces, cut to so many characters with an ellipsis.
func oneLine(text string, most int) string {
	bounded := firstChars(clean(text), 16*most+64) // most of it may be white space
	line := strings.Join(strings.FieldsFunc(bounded, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || isLineEnd(r) }), " ")
	if utf8.RuneCountInString(line) <= most && len(bounded) == len(clean(text)) {
		return line
	}
	return strings.TrimRight(firstChars(line, most-1), " ") + "…"
}

// isLineEnd reports whether any reader of text treats a character as a line end.
func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, '\u2028', '\u2029':
		return true
	}
	return false
}

// linesOf splits a text into its lines, at everything that any reader treats as a line end. Characters that move a
// terminal's cursor, and so could overwrite earlier text, are replaced by visible ones: ESC is ␛.
func linesOf(text string) []string {
	if strings.ContainsFunc(text, isPeculiar) {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
		text = strings.Map(plain, text)
	}
	return strings.Split(text, "\n")
}

// isPeculiar reports whether a character, or an invalid byte, must be replaced in a line.
func isPeculiar(r rune) bool { return r == utf8.RuneError || r != plain(r) }

func plain(r rune) rune {
	switch {
	case r == '\n', r == '\t', r >= ' ' && r < 0x7f:
		return r
	case isLineEnd(r):
		return '\n'
	case r < ' ':
		return '␀' + r
	case r == 0x7f:
		return '␡'
	case r < 0xa0:
		return '\uFFFD'
	}
	return r
}

// writeIndented writes each line of a text after an indent, the first line after one of its own.
func writeIndented(b *strings.Builder, first, rest, text string) {
	indent := first
	for _, line := range linesOf(text) {
		b.WriteString(indent)
		b.WriteString(line)
		b.WriteByte('\n')
		indent = rest
	}
}

// label is a text for the inside of a header: on one line, without the characters that headers consist of.
func label(text string, most int) string { return oneLine(without("()[]", text), most) }

// without replaces some characters of a text by spaces.
func without(characters, text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(characters, r) {
			return ' '
		}
		return r
	}, text)
}
