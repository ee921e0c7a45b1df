package recall

import (
	"cmp"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// Index is the condition on an entry in the index that it has the term.
func (t Term) Index() fulltext.IndexTerm {
	switch {
	case !t.Wide:
		return fulltext.StemTerm(t.Stem)
	case utf8.RuneCountInString(t.Stem) == 1:
		return fulltext.IndexTerm{Text: t.Stem, Prefix: true}
	}
	return fulltext.IndexTerm{Text: t.Stem}
}

// TokensOf is the size of an entry.
func TokensOf(entry *continuo.Entry) int {
	if entry.Tokens > 0 {
		return entry.Tokens
	}
	return continuo.Measure(entry.Content, nil, nil).Tokens
}

// SpeakerOf is the name of who wrote an entry; "" for none.
func SpeakerOf(entry *continuo.Entry) string {
	if entry.Name != "" || entry.Author == nil {
		return entry.Name
	}
	return cmp.Or(entry.Author.DisplayName, entry.Author.RoleName)
}
