package fulltext

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Loose is a query for a ranked search: quoted phrases, words with a star and exclusions are conditions, as in a [Query],
// while of the other words an entry needs only one, in some form.
type Loose struct {
	// Text is what the query looks for, without what it excludes.
	Text string
	// Required are the terms of the conditions: every matching entry has all of them.
	Required []IndexTerm
	// Words are the terms of the other words as they are written, which also find longer words.
	Words []IndexTerm

	query Query
}

// ParseLoose parses a query as ParseQuery does. Words that are ignored count only if there are no others; of the others
// without conditions the first MaxQueryWords count.
func ParseLoose(text string, ignored func(word string) bool) (Loose, error) {
	if n := utf8.RuneCountInString(text); n > MaxQueryChars {
		return Loose{}, fmt.Errorf("%w: %d characters are too many: use at most %d", ErrQuery, n, MaxQueryChars)
	}
	var required, optional, aside, excluded []phrase
	var words []string
	for _, part := range partsOf(text) {
		one := part.phrase()
		if len(one.words) == 0 {
			continue
		}
		if !part.excluded {
			words = append(words, part.text)
		}
		switch {
		case part.excluded:
			excluded = appendNew(excluded, one)
		case part.quoted, isStarred(part.text):
			required = appendNew(required, one)
		case !slices.ContainsFunc(one.words, func(w word) bool { return !ignored(w.text) }):
			aside = appendNew(aside, one)
		case len(optional) < MaxQueryWords:
			optional = appendForms(optional, one)
		}
	}
	if len(required)+len(optional) == 0 {
		optional = aside[:min(len(aside), MaxQueryWords)]
	}
	switch found := len(required) + len(optional); {
	case found == 0 && len(excluded) > 0:
		return Loose{}, fmt.Errorf("%w: %.100q only excludes words: add a word to search for", ErrQuery, text)
	case found == 0:
		return Loose{}, fmt.Errorf("%w: %.100q has no words: add one or more words with letters or digits", ErrQuery, text)
	case len(required)+len(excluded) > MaxQueryWords:
		return Loose{}, fmt.Errorf("%w: %d conditions are too many: use at most %d", ErrQuery, len(required)+len(excluded), MaxQueryWords)
	}
	q := Loose{Text: strings.Join(words, " ")}
	if len(required) > 0 {
		q.Required = Query{phrases: required, wanted: len(required)}.Terms()
	}
	for _, one := range optional {
		if len(one.words) == 1 {
			q.Words = one.terms(q.Words)
		}
	}
	wanted := append(required, optional...)
	q.query = Query{phrases: append(wanted, excluded...), wanted: len(wanted), required: len(required), loose: true}
	q.query.matcher = newMatcher(q.query.phrases)
	return q, nil
}

func isStarred(text string) bool {
	return strings.HasSuffix(text, "*") || strings.HasSuffix(text, "＊")
}

// appendForms appends a word as it is written, and shorter if its stem is the beginning of it. Characters of a script
// without spaces are appended as pairs of neighbours.
func appendForms(phrases []phrase, one phrase) []phrase {
	if len(one.words) > 1 && !hasNarrow(one) {
		for i := 1; i < len(one.words); i++ {
			phrases = appendNew(phrases, phrase{words: one.words[i-1 : i+1]})
		}
		return phrases
	}
	phrases = appendNew(phrases, one)
	if len(one.words) > 1 || one.words[0].wide {
		return phrases
	}
	text := one.words[0].text
	if stem := Stem(text); stem != text && strings.HasPrefix(text, stem) && utf8.RuneCountInString(stem) >= longEnough {
		phrases = appendNew(phrases, phrase{words: []word{{text: stem}}, prefix: true})
	}
	return phrases
}

func hasNarrow(p phrase) bool {
	for _, w := range p.words {
		if !w.wide {
			return true
		}
	}
	return false
}

// Match decides whether an entry with these texts meets the conditions, and has one of the other words if there are no
// conditions.
func (q Loose) Match(texts ...string) (Match, bool) { return q.query.Match(texts...) }

// Allows decides whether an entry with these texts meets the conditions, whatever other words it has.
func (q Loose) Allows(texts ...string) bool {
	conditions := q.query
	conditions.free = true
	_, ok := conditions.Match(texts...)
	return ok
}

// Beginning is the match of texts that have none of the words: its snippet shows their beginning.
func Beginning(texts ...string) Match {
	for field, text := range texts {
		for token := range Tokens(text) {
			return Match{Score: 1, best: []Hit{{Field: field, Start: token.Start, End: token.End}}}
		}
	}
	return Match{Score: 1}
}
