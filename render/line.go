package render

import (
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/plaintext"
)

// lineMark is the structural meaning of a line. The zero value is an unescaped line of content.
type lineMark struct {
	sign    rune      // '$' or '§' when the line begins an event
	kind    EventKind // of that event
	text    int       // where the event's text begins, after the colon
	escaped bool      // a backslash has to be removed
}

// markOf parses a line as escape and unescape do. For an incomplete line, decided is false while further text
// can change the mark.
func markOf(line string, whole bool) (mark lineMark, decided bool) {
	bare := strings.TrimLeft(line, `\`)
	slashes := len(line) - len(bare)
	if slashes > 0 {
		return lineMark{escaped: looksStructural(bare)}, whole || escapeIsDecided(bare)
	}
	visible := strings.TrimLeftFunc(bare, isInvisible)
	first, width := utf8.DecodeRuneInString(visible)
	switch {
	case first != '$' && first != '§':
		return lineMark{}, whole || !mayBegin(visible)
	case !looksLikeEvent(visible[width:]):
		return lineMark{}, whole || !mayBecomeStructural(visible)
	}
	word, _, _ := strings.Cut(visible[width:], ":")
	text := len(line) - len(visible) + width + len(word) + 1
	if hasSequence(line[:text]) { // it may hide the sign, or a part of the word
		return lineMark{}, true
	}
	return lineMark{sign: first, kind: EventKind(strings.ToLower(strings.TrimFunc(word, isInvisible))), text: text}, true
}

// escapeIsDecided reports whether no further text can change whether a line, without its backslashes, looks structural.
func escapeIsDecided(bare string) bool {
	known := withoutPartialRune(bare)
	visible := plaintext.TrimInvisible(plaintext.Clean(known), "")
	if looksStructural(bare) {
		return !strings.HasPrefix(visible, "=") // one more word would make it content
	}
	return !hasSequence(known) && !mayBecomeStructural(visible)
}

// hasSequence reports whether a text has a character that begins a terminal's control sequence. Until the sequence has ended it
// is not known what the text shows.
func hasSequence(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r == 0x1b || r >= 0x80 && r <= 0x9f })
}

// mayBegin reports whether a line without a sign, blanks trimmed, may still get one.
func mayBegin(visible string) bool { return withoutPartialRune(visible) == "" }

// mayBecomeStructural reports whether a line that does not look structural may do so when more of it arrives.
func mayBecomeStructural(visible string) bool {
	visible = withoutPartialRune(visible)
	first, width := utf8.DecodeRuneInString(visible)
	switch {
	case visible == "":
		return true
	case first == '$' || first == '§':
		word := strings.ToLower(strings.TrimLeftFunc(visible[width:], isInvisible))
		for _, kind := range eventKinds() {
			if strings.HasPrefix(string(kind), word) || strings.TrimRightFunc(word, isInvisible) == string(kind) {
				return true
			}
		}
	case first == '=':
		word := strings.ToUpper(strings.TrimFunc(visible, func(r rune) bool { return r == '=' || isInvisible(r) }))
		return strings.HasPrefix("HISTORY", word) || strings.HasPrefix("CURRENT", word)
	case first == '(':
		return strings.HasPrefix("(showing ", visible) || mayBecomeGap(visible[width:])
	}
	return false
}

// mayBecomeGap reports whether the text after a parenthesis may mark a gap when more of it arrives.
func mayBecomeGap(text string) bool {
	return strings.HasPrefix("message", strings.TrimLeft(text, "0123456789 "))
}

// withoutPartialRune trims an incomplete character off the end of text.
func withoutPartialRune(text string) string {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		at := len(text) - back
		if utf8.RuneStart(text[at]) {
			if !utf8.FullRuneInString(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}
