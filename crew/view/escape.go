package view

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/plaintext"
)

// escape puts a backslash before each line of a text that could be mistaken for structure of a role's text: for the
// label of a message, or for a line in brackets that begins or ends a block. Lines that were escaped before get one
// more, so that unescape restores the text exactly.
func escape(text string) string {
	return mapStructure(text, func(line string) string { return `\` + line })
}

// unescape reverses escape.
func unescape(text string) string {
	return mapStructure(text, func(line string) string { return strings.TrimPrefix(line, `\`) })
}

// mapStructure replaces the lines that look like structure.
func mapStructure(text string, replace func(line string) string) string {
	var out strings.Builder
	done := 0 // out holds the text before it
	for start := 0; start < len(text); {
		end, next := nextLine(text, start)
		if line := text[start:end]; looksLikeStructure(line) {
			out.WriteString(text[done:start])
			out.WriteString(replace(line))
			done = end
		}
		start = next
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// nextLine returns the end of the line that begins at start, and the beginning of the next one. Every line break that
// some program recognizes counts: the mandatory breaks of Unicode (UAX #14) and the separators at which Python
// splits.
func nextLine(text string, start int) (end, next int) {
	at := strings.IndexFunc(text[start:], isLineEnd)
	if at < 0 {
		return len(text), len(text)
	}
	_, width := utf8.DecodeRuneInString(text[start+at:])
	return start + at, start + at + width
}

func isLineEnd(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == '\u2028' || r == '\u2029'
}

// The lines in brackets of a role's text.
const (
	reminderBegin = "[SYSTEM REMINDER]"
	reminderEnd   = "[END REMINDER]"
	requestBegin  = "[ORIGINAL REQUEST]"
	currentBegin  = "[CURRENT REQUEST]"
	requestEnd    = "[END REQUEST]"
	notesBegin    = "[NOTES]"
	notesEnd      = "[END NOTES]"
	summaryBegin  = "[CONTEXT SUMMARY]"
	summaryEnd    = "[RECENT]"
	recalledBegin = "[RECALLED] Earlier messages that may matter now, quoted:"
	recalledEnd   = "[END RECALLED]"
	moreBegin     = "[MORE]" // with text after it on the line
)

// blockHeads are the lines in brackets, normalized by plainHead, without the closing bracket.
var blockHeads = []string{
	"[systemreminder", "[endreminder", "[originalrequest", "[currentrequest", "[endrequest", "[notes", "[endnotes", "[contextsummary", "[recent",
	"[recalled", "[endrecalled",
}

// looksLikeStructure reports whether a line could be mistaken for structure. The check is broad, because models read
// loosely: it ignores leading blanks, invisible characters, backslashes and marks of emphasis, quotes and headings,
// blanks within the line, and variants of letters, colons and brackets.
func looksLikeStructure(line string) bool {
	line = plaintext.TrimInvisible(plaintext.Clean(line), "\\*_#>~`")
	first, _ := utf8.DecodeRuneInString(line)
	switch plaintext.PlainRune(first) {
	case '[':
		head := plainHead(line)
		for _, known := range blockHeads {
			if rest, ok := strings.CutPrefix(head, known); ok && strings.HasPrefix(rest, "]") {
				return true
			}
		}
		rest, ok := strings.CutPrefix(head, "[more")
		return ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z' || hasBlankAfter(line, len("[more")))
	case 'u', 'a':
		return looksLikeLabel(line)
	}
	return false
}

// looksLikeLabel reports whether a line begins with a word of a label and a colon, optionally with a name in brackets
// between.
func looksLikeLabel(line string) bool {
	head := plainHead(line)
	rest, ok := strings.CutPrefix(head, "user")
	if !ok {
		if rest, ok = strings.CutPrefix(head, "assistant"); !ok {
			return false
		}
	}
	if strings.HasPrefix(rest, "(") || strings.HasPrefix(rest, "[") {
		return closedName(line)
	}
	return strings.HasPrefix(strings.TrimLeft(rest, "*_`"), ":")
}

// closedName reports whether the line has a closing bracket followed by a colon.
func closedName(line string) bool {
	closed := false
	for _, r := range line {
		switch plain := plaintext.PlainRune(r); {
		case plain == ')' || plain == ']':
			closed = true
		case plain == ':' && closed:
			return true
		case isInkless(r) || strings.ContainsRune("*_`", plain):
		default:
			closed = false
		}
	}
	return false
}

// headChars bounds the characters of a line that plainHead reads: more than the longest line in brackets has.
const headChars = 32

// plainHead is the beginning of a line in normalized form: plain lower case letters, without invisible characters.
func plainHead(line string) string {
	var head strings.Builder
	for _, r := range line {
		if isInkless(r) {
			continue
		}
		if head.Len() >= headChars {
			break
		}
		head.WriteRune(plaintext.PlainRune(r))
	}
	return head.String()
}

// hasBlankAfter reports whether a blank follows the first so many visible characters of a line.
func hasBlankAfter(line string, visible int) bool {
	for _, r := range line {
		switch {
		case visible == 0:
			return unicode.IsSpace(r)
		case !isInkless(r):
			visible--
		}
	}
	return true
}

// isInkless reports whether a character is invisible.
func isInkless(r rune) bool { return !plaintext.IsVisible(r) }
