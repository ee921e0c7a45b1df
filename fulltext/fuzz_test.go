package fulltext_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/continuo-log/continuo/fulltext"
)

// FuzzTerms checks what holds for the tokens and terms of every text.
func FuzzTerms(f *testing.F) {
	for _, piece := range pieces {
		f.Add(piece, piece+" "+piece)
	}
	f.Add(strings.Join(pieces, ""), "ab\u0301\u3099c")
	f.Fuzz(func(t *testing.T, first, second string) {
		checkTokens(t, first)
		terms := fulltext.Terms(first, second)
		if !slices.IsSorted(terms) || len(slices.Compact(slices.Clone(terms))) != len(terms) {
			t.Errorf("not sorted or not distinct: %q", terms)
		}
		for _, term := range terms {
			if term == "" || len(term) > 256 || !utf8.ValidString(term) || strings.ContainsAny(term, " \x00'\"*:()-") {
				t.Errorf("%q is no term", term)
			}
		}
		if again := fulltext.Terms(second, first); !slices.Equal(again, terms) {
			t.Errorf("in the other order: %q, want %q", again, terms)
		}
	})
}

// FuzzQuery checks what holds for every query and text: what matches is in the index, hits lie in the texts, and
// snippets are proper.
func FuzzQuery(f *testing.F) {
	f.Add("refund -status", "a refund", "x", 20)
	f.Add(`"数据 refu*" 库`, "数据refunded库", "\x1b[31m", 0)
	f.Add("ค้น* „a b“", "ค้น a\u202e b ab", strings.Repeat("a", 300), 1)
	f.Add(strings.Repeat("b", 70), strings.Repeat("b", 65)+"\u0301", "", -1)
	f.Fuzz(func(t *testing.T, asked, first, second string, limit int) {
		query, err := fulltext.ParseQuery(asked)
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("%q", err.Error())
			}
			return
		}
		texts := []string{first, second}
		match, ok := query.Match(texts...)
		if !ok {
			return
		}
		if missing := missing(query, fulltext.Terms(texts...)); missing != "" {
			t.Errorf("the index does not have %s", missing)
		}
		for _, hit := range match.Hits {
			if !hasWords(texts[hit.Field][hit.Start:hit.End]) {
				t.Errorf("%+v is no hit", hit)
			}
		}
		limit = min(limit, 1000)
		snippet := match.Snippet(texts, limit)
		proper(t, snippet, limit)
		if len(snippet.Highlights) == 0 {
			t.Errorf("nothing is highlighted in %q", snippet.Text)
		}
		proper(t, match.Snippet([]string{second, first}, limit), limit)
	})
}
