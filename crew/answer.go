package crew

import (
	"strings"
	"unicode"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/plaintext"
)

// Spoken returns what a role said as the log keeps it: without the role's own label at the start, and as
// continuo.Placeholder where the role passes. Any other text is returned unchanged. Names are the names that the label
// may have: the role's display name and its role_name.
//
// A pass is nothing but dots, at least three of them (an ellipsis counts as three), on any number of lines, within any
// quotes, brackets, backticks and marks of emphasis. A text with one word is an answer.
func Spoken(text string, names ...string) string {
	rest, labelled := plaintext.Clean(text), false
	for {
		after, ok := cutLabel(rest, names)
		if !ok {
			break
		}
		rest, labelled = after, true
	}
	switch {
	case isPass(rest), labelled && plaintext.IsBlank(rest):
		return continuo.Placeholder
	case labelled:
		return rest
	}
	return text
}

// MayBecomePass reports whether a text, the beginning of an answer that still arrives, may turn out to be a pass or a
// label that Spoken takes off.
func MayBecomePass(text string, names ...string) bool {
	text = plaintext.Clean(text)
	for _, name := range names {
		for _, label := range []string{name + ":", "assistant(" + name + "):"} {
			if plain := plainLabel(text); strings.HasPrefix(plainLabel(label), plain) {
				return true
			}
		}
	}
	if after, ok := cutLabel(text, names); ok {
		return MayBecomePass(after, names...)
	}
	return strings.IndexFunc(text, isWord) < 0
}

// names are the names that a role's own label may have.
func (r *Role) names() []string { return []string{r.DisplayName, r.Name} }

// Tidy rewrites an answer of the role as Spoken says. A provider's own copy of the text does not stay beside it.
func (r *Role) Tidy(answer *continuo.Entry) {
	if !answer.Content.IsText() || answer.HasCalls() || answer.Error != nil {
		return
	}
	if text := answer.Content.String(); Spoken(text, r.names()...) != text {
		answer.Content, answer.Vendor = continuo.Text(Spoken(text, r.names()...)), nil
	}
}

// isPass reports whether a text is dots and wrapping only.
func isPass(text string) bool {
	dots := 0
	for _, r := range text {
		dots += dotsOf(r)
		if isWord(r) {
			return false
		}
	}
	return dots >= minPassDots
}

// minPassDots is how many dots make a pass: fewer end a sentence.
const minPassDots = 3

// isWord reports whether a character cannot stand in a pass.
func isWord(r rune) bool {
	return dotsOf(r) == 0 && plaintext.IsVisible(r) && !isWrapping(r)
}

// dotsOf is how many dots a character shows.
func dotsOf(r rune) int {
	switch r {
	case '.', '．', '。', '｡', '․', '·', '•', '∙':
		return 1
	case '‥':
		return 2
	case '…', '⋯':
		return 3
	}
	return 0
}

// isWrapping reports whether a character is a quote, a bracket, a backtick or a mark of emphasis.
func isWrapping(r rune) bool {
	return strings.ContainsRune("\"'`´*_~\\>", r) || unicode.In(r, unicode.Pi, unicode.Pf, unicode.Ps, unicode.Pe)
}

// cutLabel takes a role's own label off the start of a text: "Assistant (NAME):" or "NAME:", in bold or not.
func cutLabel(text string, names []string) (rest string, ok bool) {
	start, end := labelEnd(text)
	if end < 0 {
		return text, false
	}
	label := plainLabel(text[start:end])
	for _, name := range names {
		if name = plainLabel(name); name != "" && (label == name || label == "assistant("+name+")" || label == "["+name+"]") {
			_, width := utf8.DecodeRuneInString(text[end:])
			return closeEmphasis(text[:start], text[end+width:]), true
		}
	}
	return text, false
}

// maxLabel bounds how many bytes of an answer are searched for the end of its label.
const maxLabel = 512

// labelEnd finds the colon that would end a label on the first line of a text, -1 for none, and where the label starts.
func labelEnd(text string) (start, end int) {
	start = strings.IndexFunc(text, func(r rune) bool { return plaintext.IsVisible(r) && !isMark(r) })
	if start < 0 {
		return 0, -1
	}
	for i, r := range text[start:min(len(text), start+maxLabel)] {
		switch r {
		case ':', '：':
			return start, start + i
		case '\n', '\r':
			return start, -1
		}
	}
	return start, -1
}

// closeEmphasis drops the marks that end the emphasis of a label, and white space. Marks that the label did not open
// belong to what follows.
func closeEmphasis(opened, rest string) string {
	for _, r := range opened {
		if strings.ContainsRune("*_`~", r) {
			rest = strings.TrimPrefix(rest, string(r))
		}
	}
	return strings.TrimLeftFunc(rest, func(r rune) bool { return !plaintext.IsVisible(r) })
}

// isMark reports whether a character may stand around a label: marks of emphasis, headings, quotes and escapes.
func isMark(r rune) bool { return strings.ContainsRune("*_`~#>\\", r) }

// plainLabel is a label without white space, marks and letter case.
func plainLabel(label string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case !plaintext.IsVisible(r) || isMark(r):
			return -1
		case r == '（':
			return '('
		case r == '）':
			return ')'
		case r == '：':
			return ':'
		}
		return unicode.ToLower(r)
	}, label)
}
