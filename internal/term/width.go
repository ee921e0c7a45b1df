package term

import (
	"iter"
	"strings"

	"github.com/rivo/uniseg"
)

// Width returns how many columns of a terminal a text takes. Wide characters and emoji take two, combining marks and the
// sequences of a [Style] take none.
func Width(text string) int {
	width := 0
	for _, columns := range parts(text) {
		width += columns
	}
	return width
}

// Plain returns a text without the sequences of a [Style].
func Plain(text string) string {
	if !strings.Contains(text, "\x1b[") {
		return text
	}
	var plain strings.Builder
	for part := range parts(text) {
		if sequence(part) == 0 {
			plain.WriteString(part)
		}
	}
	return plain.String()
}

// Fit truncates a text to a width in columns, with an ellipsis if it was truncated.
func Fit(text string, width int) string {
	if len(text) <= width || Width(text) <= width { // no character takes more columns than bytes
		return text
	}
	used, end, styled := 0, 0, false
	for part, columns := range parts(text) {
		if used += columns; used > width-1 {
			break
		}
		end += len(part)
		styled = styled || sequence(part) > 0
	}
	if styled {
		return text[:end] + "…" + reset
	}
	return text[:end] + "…"
}

// FitEnd truncates a text without styles to a width in columns at its beginning.
func FitEnd(text string, width int) string {
	rest := Width(text)
	if rest <= width {
		return text
	}
	for part, columns := range parts(text) {
		if rest <= width-1 {
			break
		}
		text, rest = text[len(part):], rest-columns
	}
	return "…" + text
}

// FitMiddle truncates a text to a width in columns in its middle, so that names that differ at either end stay apart. Of a text
// that it truncates, only the style at its beginning is kept.
func FitMiddle(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	plain, style := Plain(text), text[:sequence(text)]
	text = strings.TrimSuffix(Fit(plain, (width+1)/2), "…") + FitEnd(plain, width/2+1)
	if style != "" {
		text = style + text + reset
	}
	return text
}

// Pad fills a text with spaces up to a width in columns.
func Pad(text string, width int) string { return text + padding(text, width) }

func padding(text string, width int) string {
	return strings.Repeat(" ", max(width-Width(text), 0))
}

// parts yields what a terminal shows as one character each (grapheme clusters), and the sequences of styles, with their
// widths in columns.
func parts(text string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		state := -1
		for len(text) > 0 {
			var part, rest string
			columns := 0
			if length := sequence(text); length > 0 {
				part, rest, state = text[:length], text[length:], -1
			} else {
				part, rest, columns, state = uniseg.FirstGraphemeClusterInString(text, state)
			}
			if !yield(part, columns) {
				return
			}
			text = rest
		}
	}
}

// sequence returns the length of the sequence of a style at the start of a text; 0 for none.
func sequence(text string) int {
	if !strings.HasPrefix(text, "\x1b[") {
		return 0
	}
	for i := 2; i < len(text); i++ {
		switch c := text[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}
