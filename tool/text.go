package tool

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces what is no UTF-8, what ends a line, and the control characters but tabs, so that one
// line of an output stays one.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029' {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// OneLine is the beginning of a text, at most so many characters, on one line.
func OneLine(text string, limit int) string {
	runes := []rune(Printable(strings.Join(strings.Fields(text), " ")))
	if len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return string(runes)
}
