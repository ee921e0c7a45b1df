package render

import (
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/plaintext"
)

// escape puts a backslash before each line of a text that a reader, or a model, could mistake for the
// transcript's structure or for an escaped line.
func escape(text string) string {
	return mapLines(text, func(line string) (string, bool) {
		return `\` + line, looksStructural(strings.TrimLeft(line, `\`))
	})
}

// unescape reverses escape.
func unescape(text string) string {
	return mapLines(text, func(line string) (string, bool) {
		return strings.TrimPrefix(line, `\`), looksStructural(strings.TrimLeft(line, `\`))
	})
}

// mapLines replaces the lines for which replace returns true. Any line end that some program recognises ends
// a line here.
func mapLines(text string, replace func(line string) (string, bool)) string {
	var out strings.Builder
	done := 0 // text before it is in out
	for start := 0; start < len(text); {
		length, width := lineEnd(text[start:])
		end := start + length
		if line, ok := replace(text[start:end]); ok {
			out.WriteString(text[done:start])
			out.WriteString(line)
			done = end
		}
		start = end + width
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// lineEnd returns the length in bytes of the first line of text and of its line end. It recognises Unicode's
// mandatory breaks (UAX #14) and the separators at which Python splits lines.
func lineEnd(text string) (length, width int) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\r' && strings.HasPrefix(text[i:], "\r\n"):
			return i, 2
		case c >= '\n' && c <= '\r', c >= 0x1c && c <= 0x1e:
			return i, 1
		case c == 0xc2 && strings.HasPrefix(text[i:], "\u0085"):
			return i, 2
		case c == 0xe2 && (strings.HasPrefix(text[i:], "\u2028") || strings.HasPrefix(text[i:], "\u2029")):
			return i, 3
		}
	}
	return len(text), 0
}

// looksStructural reports whether a line could be taken for an event, of this form or of the streaming one
// with §, for a section, for the count line or for a gap. It is lenient: variants that a strict parser
// refuses, such as leading blanks or capitals, count too, because models accept them.
func looksStructural(line string) bool {
	line = plaintext.TrimInvisible(plaintext.Clean(line), "")
	first, width := utf8.DecodeRuneInString(line)
	switch first {
	case '$', '§':
		return looksLikeEvent(line[width:])
	case '=':
		word := strings.ToUpper(strings.TrimFunc(line, func(r rune) bool { return r == '=' || isInvisible(r) }))
		return word == "HISTORY" || word == "CURRENT"
	case '(':
		return strings.HasPrefix(line, "(showing ") || looksLikeGap(line[width:])
	}
	return false
}

// looksLikeGap reports whether the text after a parenthesis could mark a gap: at most a number, then
// "message".
func looksLikeGap(line string) bool {
	line = strings.TrimLeft(line, "0123456789 ")
	return strings.HasPrefix(line, "message")
}

func looksLikeEvent(line string) bool {
	word, _, found := strings.Cut(line, ":")
	word = strings.ToLower(strings.TrimFunc(word, isInvisible))
	if !found {
		return false
	}
	for _, kind := range eventKinds() {
		if word == string(kind) {
			return true
		}
	}
	return false
}

func isInvisible(r rune) bool { return !plaintext.IsVisible(r) }
