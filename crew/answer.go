package crew

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/lazy"
	"github.com/continuo-log/continuo/internal/plaintext"
)

// NormalizeAnswer returns a role's answer in the form that the log stores: without the role's own label at the start,
// and as continuo.Placeholder where the role passes. Any other text is returned unchanged. Names are the names that the
// label may have: the role's display name and its role_name.
//
// A pass consists only of dots, at least three of them (an ellipsis counts as three), on any number of lines, with
// any quotes, brackets, backticks, tags and marks of emphasis or lists around them, and optionally with the role's
// own name before them. A text with any other word is an answer.
func NormalizeAnswer(text string, names ...string) string {
	rest, labelled := plaintext.Clean(text), false
	for {
		after, ok := cutLabel(rest, names)
		if !ok {
			break
		}
		rest, labelled = after, true
	}
	switch {
	case isPass(withoutName(rest, names)), labelled && plaintext.IsBlank(rest):
		return continuo.Placeholder
	case labelled:
		return rest
	}
	return text
}

// MayBecomePass reports whether a text, the beginning of an answer that is still arriving, may become a pass or a
// label that Spoken removes.
func MayBecomePass(text string, names ...string) bool {
	text = plaintext.Clean(text)
	plain := plainLabel(text)
	for _, label := range labels(names) {
		if strings.HasPrefix(label+":", plain) {
			return true
		}
	}
	if after, ok := cutLabel(text, names); ok {
		return MayBecomePass(after, names...)
	}
	return strings.IndexFunc(tags().ReplaceAllString(openTag().ReplaceAllString(withoutName(text, names), ""), ""), isOrdinary) < 0
}

// labels are the forms of a role's own label, normalized like plainLabel and without the colon.
func labels(names []string) []string {
	all := []string{"assistant"}
	for _, name := range names {
		if name = plainLabel(name); name != "" {
			all = append(all, name, "["+name+"]", "assistant("+name+")")
		}
	}
	return all
}

// names are the possible names in a role's own label.
func (r *Role) names() []string { return []string{r.DisplayName, r.Name} }

// Tidy rewrites an answer of the role with Spoken, and removes the provider's own copy of the original text.
func (r *Role) Tidy(answer *continuo.Entry) {
	if !answer.Content.IsText() || answer.HasCalls() || answer.Error != nil {
		return
	}
	if text := answer.Content.String(); NormalizeAnswer(text, r.names()...) != text {
		answer.Content, answer.Vendor = continuo.Text(NormalizeAnswer(text, r.names()...)), nil
	}
}

// Models that were trained on templates or markup write tags around their answers, and tokens after them.
var (
	tags    = lazy.Regexp(`</?[A-Za-z|][^<>\n]{0,40}>`)
	openTag = lazy.Regexp(`<(?:/?[A-Za-z|][^<>\n]{0,40}|/?)$`)
)

// isPass reports whether a text consists of dots and wrapping.
func isPass(text string) bool {
	text = tags().ReplaceAllString(text, "")
	dots := 0
	for _, r := range text {
		dots += dotsOf(r)
		if isOrdinary(r) {
			return false
		}
	}
	return dots >= minPassDots
}

// minPassDots is the minimum number of dots in a pass: fewer end a sentence.
const minPassDots = 3

// isOrdinary reports whether a character cannot occur in a pass.
func isOrdinary(r rune) bool {
	return dotsOf(r) == 0 && plaintext.IsVisible(r) && !isWrapping(r)
}

// dotsOf is how many dots a character counts for.
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

// isWrapping reports whether a character is a quote, a bracket, a backtick, a dash or a mark of emphasis or lists.
func isWrapping(r rune) bool {
	return strings.ContainsRune("\"'`´*_~\\>#", r) || unicode.In(r, unicode.Pi, unicode.Pf, unicode.Ps, unicode.Pe, unicode.Pd)
}

// withoutName returns a short text, normalized, without the role's own name at the start: if only dots follow, the
// name is a label without its colon. Any other text is returned unchanged.
func withoutName(text string, names []string) string {
	if len(text) > maxLabel {
		return text
	}
	plain, shortest := plainLabel(text), text
	for _, label := range labels(names)[1:] {
		if rest, ok := strings.CutPrefix(plain, label); ok && len(rest) < len(shortest) {
			shortest = rest
		}
	}
	return shortest
}

// cutLabel removes a role's own label from the start of a text: "Assistant (NAME):" or "NAME:", in bold or not, or
// the name as a heading, in bold or in brackets on a line of its own.
func cutLabel(text string, names []string) (rest string, ok bool) {
	start, end := labelEnd(text)
	if end < 0 {
		return text, false
	}
	label := plainLabel(text[start:end])
	after, width := utf8.DecodeRuneInString(text[end:])
	if !slices.Contains(labels(names), label) {
		return text, false
	}
	rest = text[end+width:]
	if isLine := after == '\n' || after == '\r'; isLine {
		isMarked := strings.ContainsFunc(text[:start], isMark) || strings.ContainsAny(label, "[(")
		if label == "assistant" || !isMarked || plaintext.IsBlank(rest) {
			return text, false
		}
	}
	return closeEmphasis(text[:start], rest), true
}

// maxLabel bounds how many bytes of an answer are searched for the end of its label.
const maxLabel = 512

// labelEnd finds the colon, or else the line break, that may end a label on the first line of a text, -1 for none,
// and the start of the label.
func labelEnd(text string) (start, end int) {
	start = strings.IndexFunc(text, func(r rune) bool { return plaintext.IsVisible(r) && !isMark(r) })
	if start < 0 {
		return 0, -1
	}
	for i, r := range text[start:min(len(text), start+maxLabel)] {
		switch r {
		case ':', '：', '\n', '\r':
			return start, start + i
		}
	}
	return start, -1
}

// closeEmphasis removes the marks that end the emphasis of a label, and white space. Marks that the label did not
// open belong to the rest.
func closeEmphasis(opened, rest string) string {
	for _, r := range opened {
		if strings.ContainsRune("*_`~", r) {
			rest = strings.TrimPrefix(rest, string(r))
		}
	}
	return strings.TrimLeftFunc(rest, func(r rune) bool { return !plaintext.IsVisible(r) })
}

// isMark reports whether a character may occur around a label: marks of emphasis, headings, quotes and escapes.
func isMark(r rune) bool { return strings.ContainsRune("*_`~#>\\", r) }

// plainLabel normalizes a label: no white space, no marks, one letter case.
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
