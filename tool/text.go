package tool

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces invalid UTF-8, line ends, and control characters except tabs, so that a line of output
// stays one line.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029' {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// OneLine returns the beginning of a text, at most limit characters, on one line.
func OneLine(text string, limit int) string {
	runes := []rune(Printable(strings.Join(strings.Fields(text), " ")))
	if len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return string(runes)
}
