package demo

import (
	"strings"
	"unicode"
)

// isQuestion reports whether a text is a question.
func isQuestion(text string) bool { return strings.ContainsAny(text, "?？؟") }

// recall finds the earlier sentence that shares the most words with a question.
func recall(question string, earlier []string) string {
	asked := words(question)
	best, most := "", 0
	for _, text := range earlier {
		for _, sentence := range sentences(text) {
			shared := 0
			for word := range words(sentence) {
				if asked[word] {
					shared++
				}
			}
			if shared > 0 && shared >= most && !isQuestion(sentence) {
				best, most = sentence, shared
			}
		}
	}
	if best == "" {
		return "Nothing that you said before, as far as I was shown it, shares a word with your question."
	}
	return "Earlier you said: " + quote(best, maxQuote)
}

// sentences splits a text into sentences, with their end marks.
func sentences(text string) []string {
	var list []string
	start := 0
	runes := []rune(text)
	for i, r := range runes {
		ends := strings.ContainsRune("!?\n。！？؟", r) || r == '.' && (i+1 == len(runes) || unicode.IsSpace(runes[i+1]))
		if ends {
			list = append(list, string(runes[start:i+1]))
			start = i + 1
		}
	}
	return append(list, string(runes[start:]))
}

// common are words that do not distinguish sentences.
const common = " a an and are as at be been but by can could did do does for from had has have he her his how i if in is it its me my no not of on or our she so that the their them then there they this to us was we were what when where which who why will with would you your tell please remember know "

// words returns the words of a text that may matter, in lower case. Scripts without spaces between words
// give pairs of characters instead.
func words(text string) map[string]bool {
	found := map[string]bool{}
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWord(r) }) {
		runes := []rune(word)
		if !unicode.In(runes[0], unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
			if !strings.Contains(common, " "+word+" ") {
				found[word] = true
			}
			continue
		}
		for i := range len(runes) - 1 {
			found[string(runes[i:i+2])] = true
		}
	}
	return found
}
