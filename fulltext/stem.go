package fulltext

import "strings"

// Stem returns the stem of a folded word: its irregular form, if it has one, resolved, and without the endings that
// Porter's algorithm removes (M. F. Porter, An algorithm for suffix stripping, 1980). A word that has characters other
// than a to z is its own stem.
func Stem(word string) string {
	if base, ok := irregular[word]; ok {
		word = base
	}
	if len(word) <= 2 {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	return porter(word)
}

// stemMark ends the terms that are stems of other words. No folded word has a capital letter.
const stemMark = "Ω"

// StemTerm is the condition that an entry has a word with a stem.
func StemTerm(stem string) IndexTerm { return IndexTerm{Text: stem, Or: stem + stemMark} }

// stemmer remembers stems: most words of a text occur again.
type stemmer map[string]string

// of returns the stem of a word, and whether it differs from the word.
func (s *stemmer) of(word []byte) (stem string, other bool) {
	if stem, ok := (*s)[string(word)]; ok {
		return stem, stem != string(word)
	}
	if *s == nil {
		*s = stemmer{}
	}
	key := string(word)
	stem = Stem(key)
	(*s)[key] = stem
	return stem, stem != key
}

func porter(w string) string {
	w = plural(w)
	w = pastOrGerund(w)
	if strings.HasSuffix(w, "y") && hasVowel(w[:len(w)-1]) {
		w = w[:len(w)-1] + "i"
	}
	w = replaceEnding(w, derived, 0)
	w = replaceEnding(w, adjectives, 0)
	w = removeEnding(w)
	if strings.HasSuffix(w, "e") {
		if m := measure(w[:len(w)-1]); m > 1 || m == 1 && !isShort(w[:len(w)-1]) {
			w = w[:len(w)-1]
		}
	}
	if strings.HasSuffix(w, "ll") && measure(w) > 1 {
		w = w[:len(w)-1]
	}
	return w
}

// plural is step 1a.
func plural(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"):
		return w
	}
	return strings.TrimSuffix(w, "s")
}

// pastOrGerund is step 1b.
func pastOrGerund(w string) string {
	switch {
	case strings.HasSuffix(w, "eed"):
		if measure(w[:len(w)-3]) > 0 {
			return w[:len(w)-1]
		}
		return w
	case strings.HasSuffix(w, "ed") && hasVowel(w[:len(w)-2]):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "ing") && hasVowel(w[:len(w)-3]):
		w = w[:len(w)-3]
	default:
		return w
	}
	last := w[len(w)-1]
	switch {
	case strings.HasSuffix(w, "at"), strings.HasSuffix(w, "bl"), strings.HasSuffix(w, "iz"):
		return w + "e"
	case len(w) > 1 && last == w[len(w)-2] && !isVowel(last):
		if last == 'l' || last == 's' || last == 'z' {
			return w
		}
		return w[:len(w)-1]
	case measure(w) == 1 && isShort(w):
		return w + "e"
	}
	return w
}

type ending struct{ from, to string }

// The endings of steps 2 and 3, of which the first that a word has is replaced.
var (
	derived = []ending{
		{"ational", "ate"},
		{"tional", "tion"},
		{"enci", "ence"},
		{"anci", "ance"},
		{"izer", "ize"},
		{"abli", "able"},
		{"alli", "al"},
		{"entli", "ent"},
		{"eli", "e"},
		{"ousli", "ous"},
		{"ization", "ize"},
		{"ation", "ate"},
		{"ator", "ate"},
		{"alism", "al"},
		{"iveness", "ive"},
		{"fulness", "ful"},
		{"ousness", "ous"},
		{"aliti", "al"},
		{"iviti", "ive"},
		{"biliti", "ble"},
	}
	adjectives = []ending{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""},
	}
	removed = []string{
		"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
	}
)

func replaceEnding(w string, endings []ending, least int) string {
	for _, e := range endings {
		if base, ok := strings.CutSuffix(w, e.from); ok {
			if measure(base) > least {
				return base + e.to
			}
			return w
		}
	}
	return w
}

// removeEnding is step 4.
func removeEnding(w string) string {
	for _, e := range removed {
		if base, ok := strings.CutSuffix(w, e); ok {
			if measure(base) > 1 {
				return base
			}
			return w
		}
	}
	if base, ok := strings.CutSuffix(w, "ion"); ok && base != "" && measure(base) > 1 {
		if last := base[len(base)-1]; last == 's' || last == 't' {
			return base
		}
	}
	return w
}

func isVowel(b byte) bool { return b == 'a' || b == 'e' || b == 'i' || b == 'o' || b == 'u' }

// sounds reports whether the letter i is a vowel: a, e, i, o, u, or y after a consonant.
func sounds(w string, i int) bool {
	return isVowel(w[i]) || w[i] == 'y' && i > 0 && !isVowel(w[i-1])
}

func hasVowel(w string) bool {
	for i := range len(w) {
		if sounds(w, i) {
			return true
		}
	}
	return false
}

// measure counts the sequences of vowels that consonants follow.
func measure(w string) (n int) {
	before := false
	for i := range len(w) {
		vowel := sounds(w, i)
		if before && !vowel {
			n++
		}
		before = vowel
	}
	return n
}

// isShort reports whether a word ends with consonant, vowel and consonant, the last of which is not w, x or y.
func isShort(w string) bool {
	n := len(w)
	if n < 3 || isVowel(w[n-1]) || w[n-1] == 'w' || w[n-1] == 'x' || w[n-1] == 'y' {
		return false
	}
	return sounds(w, n-2) && !isVowel(w[n-3])
}
