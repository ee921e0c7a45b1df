package fulltext

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrQuery is wrapped by every error of ParseQuery.
var ErrQuery = errors.New("search query")

// Query is a parsed query. It is immutable; the zero value finds nothing.
type Query struct {
	phrases []phrase
	wanted  int // this many leading phrases are looked for, the others must not occur
	// In the query of a [Loose] this many leading phrases must occur, and if there are none, one of those that are looked
	// for unless free is set. In all others each of those must occur.
	required    int
	loose, free bool
	*matcher
}

// phrase is one or more tokens side by side.
type phrase struct {
	words  []word
	prefix bool // the last word may be longer in the text
}

type word struct {
	text string // folded
	wide bool
}

// longEnough is the length in characters from which a word also matches longer words that begin with it.
const longEnough = 4

// ParseQuery parses a query as users write it:
//
//	refund status     both words, anywhere in the entry and in any order
//	"refund status"   as a phrase, exactly; quotation marks of other languages work too
//	refu*             words that begin so; also at the end of a quotation
//	-status           entries without it; also -"refund status"
//
// A word of 4 or more characters, and a Korean one of any length, also finds words that begin with it, unless
// it is in quotes. A word with punctuation in it, such as file_read, and a sequence of characters of a script
// without spaces are searched as phrases. Text without letters and digits is ignored, and -- at the beginning
// of a word excludes nothing: it is an option's name.
func ParseQuery(text string) (Query, error) {
	if n := utf8.RuneCountInString(text); n > MaxQueryChars {
		return Query{}, fmt.Errorf("%w: %d characters are too many: use at most %d", ErrQuery, n, MaxQueryChars)
	}
	var wanted, excluded []phrase
	for _, part := range partsOf(text) {
		phrase := part.phrase()
		switch {
		case len(phrase.words) == 0:
		case part.excluded:
			excluded = appendNew(excluded, phrase)
		default:
			wanted = appendNew(wanted, phrase)
		}
	}
	switch {
	case len(wanted) == 0 && len(excluded) > 0:
		return Query{}, fmt.Errorf("%w: %.100q only excludes words: add a word to search for", ErrQuery, text)
	case len(wanted) == 0:
		return Query{}, fmt.Errorf("%w: %.100q has no words: add one or more words with letters or digits", ErrQuery, text)
	case len(wanted)+len(excluded) > MaxQueryWords:
		return Query{}, fmt.Errorf("%w: %d words are too many: use at most %d, or put them into quotes to search for a phrase", ErrQuery, len(wanted)+len(excluded), MaxQueryWords)
	}
	q := Query{phrases: append(wanted, excluded...), wanted: len(wanted)}
	q.matcher = newMatcher(q.phrases)
	return q, nil
}

// part is a word or a quotation, as it is written.
type part struct {
	text     string
	quoted   bool
	excluded bool
}

// partsOf splits a query at spaces and quotes. An unclosed quotation extends to the end.
func partsOf(text string) []part {
	var parts []part
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return parts
		}
		var p part
		p.excluded, text = cutMinus(text)
		end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || isQuote(r) })
		if r, size := utf8.DecodeRuneInString(text); isQuote(r) {
			p.quoted, text = true, text[size:]
			end = strings.IndexFunc(text, isQuote)
		}
		if end < 0 {
			end = len(text)
		}
		p.text, text = text[:end], text[end:]
		if r, size := utf8.DecodeRuneInString(text); p.quoted && isQuote(r) {
			text = text[size:]
		}
		parts = append(parts, p)
	}
}

// cutMinus removes the minus from a word to exclude.
func cutMinus(text string) (excluded bool, rest string) {
	r, size := utf8.DecodeRuneInString(text)
	if !isMinus(r) {
		return false, text
	}
	next, _ := utf8.DecodeRuneInString(text[size:])
	return !isMinus(next) && !unicode.IsSpace(next), text[size:]
}

func isMinus(r rune) bool { return r == '-' || r == '−' || r == '－' }

func isQuote(r rune) bool {
	return strings.ContainsRune("\"“”„‟«»「」『』＂〝〞〟", r)
}

// phrase folds the written text.
func (p part) phrase() phrase {
	var folded phrase
	end := 0
	for token := range Tokens(p.text) {
		folded.words = append(folded.words, word{text: token.Text, wide: token.Wide})
		end = token.End
	}
	if len(folded.words) == 0 {
		return folded
	}
	last := folded.words[len(folded.words)-1]
	starred := strings.HasPrefix(p.text[end:], "*") || strings.HasPrefix(p.text[end:], "＊")
	folded.prefix = !last.wide && (starred || !p.quoted && findsLonger(last.text))
	return folded
}

// findsLonger reports whether a word also matches longer words without a star. Korean ones do from the first
// syllable on, because particles follow them without a space.
func findsLonger(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return isHangul(first) || utf8.RuneCountInString(text) >= longEnough
}

func appendNew(phrases []phrase, added phrase) []phrase {
	for _, known := range phrases {
		if known.prefix == added.prefix && slices.Equal(known.words, added.words) {
			return phrases
		}
	}
	return append(phrases, added)
}

// IndexTerm is one condition on an entry's Terms: that one of them is Text, or with Prefix, begins with it.
type IndexTerm struct {
	Text   string
	Prefix bool
	// Or is another term that meets the condition, whole; "" for none.
	Or string
}

// Terms returns the terms to look up in an index: every matching entry has all of them, within the limits of
// the entry's terms. Not every entry that has them matches, since they contain no excluded words. The most
// selective terms come first, at least one and at most MaxQueryWords.
func (q Query) Terms() []IndexTerm {
	var terms []IndexTerm
	for _, phrase := range q.phrases[:q.wanted] {
		terms = phrase.terms(terms)
	}
	slices.SortFunc(terms, bySelectivity)
	terms = slices.Compact(terms)
	return terms[:min(len(terms), MaxQueryWords)]
}

// terms appends the terms that an entry with the phrase has in the index.
func (p phrase) terms(terms []IndexTerm) []IndexTerm {
	for i, w := range p.words {
		last := i == len(p.words)-1
		switch {
		case !w.wide:
			terms = append(terms, IndexTerm{Text: w.text, Prefix: last && p.prefix})
		case !last && p.words[i+1].wide:
			terms = append(terms, IndexTerm{Text: w.text + p.words[i+1].text})
		case i == 0 || !p.words[i-1].wide:
			terms = append(terms, IndexTerm{Text: w.text, Prefix: true})
		}
	}
	return terms
}

// bySelectivity orders whole terms before prefixes, and long ones before short ones.
func bySelectivity(a, b IndexTerm) int {
	switch {
	case a.Prefix != b.Prefix && b.Prefix:
		return -1
	case a.Prefix != b.Prefix:
		return 1
	case len(a.Text) != len(b.Text):
		return len(b.Text) - len(a.Text)
	}
	return strings.Compare(a.Text, b.Text)
}
