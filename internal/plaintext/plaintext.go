// Package plaintext determines the visible part of a text. It has the one definition of a blank text, and removes what
// would control a terminal, or hide a line from a reader: escape sequences and the controls of text direction.
//
// What a terminal removes before it shows a text must be removed before the text is searched for labels: otherwise an
// escape sequence in front of a forged label hides the label from the search and not from the reader.
package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsBlank reports whether a text has nothing visible: only white space, control and format characters, fillers,
// variation selectors, escape sequences, and combining marks without a letter.
func IsBlank(text string) bool {
	if text != "" && text[0] > ' ' && text[0] < 0x7f {
		return false // visible, and in no escape sequence
	}
	return !strings.ContainsFunc(Clean(text), func(r rune) bool { return IsVisible(r) && !unicode.Is(unicode.Mn, r) })
}

// IsVisible reports whether a character is visible. White space, controls, formats, fillers and variation selectors are
// not.
func IsVisible(r rune) bool {
	if r > ' ' && r < 0x7f {
		return true
	}
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0: // blank, though letters or symbols for Unicode
		return false
	}
	return !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector)
}

// IsBidi reports whether a character changes the direction of the text after it (UAX #9: embeddings, overrides and
// isolates).
func IsBidi(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// Clean returns a text without escape sequences (ECMA-48) and without the controls of text direction. Everything else
// is unchanged, but for bytes that are not UTF-8: where something is removed they become U+FFFD, because two of them that
// come together could be a control character.
func Clean(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == esc || r == csi || isStringControl(r) || IsBidi(r) }) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, width := utf8.DecodeRuneInString(text)
		length := sequence(text)
		switch {
		case length > 0:
			width = length
		case !IsBidi(r):
			out.WriteRune(r)
		}
		text = text[width:]
	}
	return out.String()
}

// TrimInvisible returns a line without the invisible characters at its start: invisible characters, escape sequences,
// and the characters of marks.
func TrimInvisible(line, marks string) string {
	for len(line) > 0 {
		r, width := utf8.DecodeRuneInString(line)
		switch length := sequence(line); {
		case length > 0:
			width = length
		case IsVisible(r) && !strings.ContainsRune(marks, r):
			return line
		}
		line = line[width:]
	}
	return line
}

// The characters that begin an escape sequence.
const (
	esc = 0x1b
	csi = 0x9b // ESC [ as one character
	bel = 0x07
)

// isStringControl reports whether a character begins a control string (DCS, SOS, OSC, PM, APC as one character).
func isStringControl(r rune) bool { return r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f }

// sequence returns the length in bytes of the escape sequence at the start of a text, 0 for none. An incomplete
// sequence ends before the next line.
func sequence(text string) int {
	r, width := utf8.DecodeRuneInString(text)
	switch {
	case r == csi:
		return width + controlEnd(text[width:])
	case isStringControl(r):
		return width + stringEnd(text[width:])
	case r != esc:
		return 0
	case len(text) == 1:
		return 1
	}
	switch next := text[1]; {
	case next == '[':
		return 2 + controlEnd(text[2:])
	case strings.IndexByte("]PX^_", next) >= 0:
		return 2 + stringEnd(text[2:])
	case next >= 0x20 && next <= 0x2f: // intermediate bytes and a final one
		end := 2
		for end < len(text) && text[end] >= 0x20 && text[end] <= 0x2f {
			end++
		}
		if end < len(text) && text[end] > 0x2f && text[end] < 0x7f {
			end++
		}
		return end
	case next > 0x2f && next < 0x7f:
		return 2
	}
	return 1
}

// controlEnd returns the length of the parameters and the final byte of a control sequence.
func controlEnd(text string) int {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e: // it is truncated
			return i
		}
	}
	return len(text)
}

// stringEnd returns the length of a control string with its end: BEL, ESC \, or the end of the line.
func stringEnd(text string) int {
	for i := range len(text) {
		switch c := text[i]; {
		case c == bel:
			return i + 1
		case c == esc && strings.HasPrefix(text[i:], "\x1b\\"):
			return i + 2
		case c == esc, c == '\n', c == '\r':
			return i
		}
	}
	return len(text)
}
