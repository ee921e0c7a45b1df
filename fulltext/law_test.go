package fulltext_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"

	"github.com/continuo-log/continuo/fulltext"
)

// pieces are what texts are made of: words, characters, marks and what parts them, of many scripts.
var pieces = []string{
	"refund", "Status", "file_read", "x", "2024", "don't", "İstanbul", "Straße", "Mu\u0308ller", "검색을", "\u1100\u1161\u11a8",
	"数据库", "データ", "ﾃﾞ", "ค้นหา", "น้ำ", "हिन्दी", "क्ष", "مُحَمَّد", "می\u200cخواهم", "שָׁלוֹם", "བོད་སྐད", "👍🏽", "👨‍👩‍👧", "🇩🇪", "²", "½", "ﷺ", "ﬁ",
	" ", " ", " ", "\n", "\t ", ".", ",", "-", "_", "*", "\"", "„", "\u200b", "\u00ad", "\u200d", "\u0301", "\u3099", "\u0e49", "\x00", "\x1b", "\x1b[31m", "\x1b[", "\u202e", "\xff", "\u2028",
	strings.Repeat("QUJD", 40), strings.Repeat("ж", 70), strings.Repeat("\u1112\u1161\u11ab", 40),
}

func textOf(t *rapid.T, label string) string {
	made := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.StringN(0, 4, -1)), 0, 60).Draw(t, label)
	return strings.Join(made, "")
}

// TestTheIndexLosesNothing: whatever stretch of a text's tokens is asked for, as words, as it is folded, or in
// quotes verbatim, the index has all terms of the query, and the text matches.
func TestTheIndexLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := []string{textOf(t, "first"), textOf(t, "second")}
		field := rapid.IntRange(0, 1).Draw(t, "field")
		tokens := slices.Collect(fulltext.Tokens(texts[field]))
		if len(tokens) == 0 {
			t.Skip("no words")
		}
		from := rapid.IntRange(0, len(tokens)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, min(len(tokens), from+12)).Draw(t, "to")
		for _, asked := range queriesOf(texts[field], tokens[from:to]) {
			if utf8.RuneCountInString(asked) <= fulltext.MaxQueryChars {
				finds(t, asked, texts)
			}
		}
	})
}

// queriesOf are queries that a stretch of a text's tokens must answer.
func queriesOf(text string, tokens []fulltext.Token) []string {
	unquoted := strings.NewReplacer(`"`, " ", "“", " ", "”", " ", "„", " ", "‟", " ", "«", " ", "»", " ", "「", " ", "」", " ", "『", " ", "』", " ", "＂", " ", "〝", " ", "〞", " ", "〟", " ")
	var words, sources []string
	for _, token := range tokens {
		words, sources = append(words, token.Text), append(sources, text[token.Start:token.End])
	}
	last := tokens[len(tokens)-1]
	stretch := text[tokens[0].Start:last.End]
	begun := firstHalf(last)
	return []string{
		strings.Join(words, " "), strings.Join(sources, " "), `"` + strings.Join(words, " ") + `"`,
		`"` + unquoted.Replace(stretch) + `"`, strings.Join(words, "_"), strings.Join(words, "*"),
		strings.Join(append(slices.Clone(words[:len(words)-1]), begun+"*"), " "),
		`"` + strings.Join(append(slices.Clone(words[:len(words)-1]), begun+"*"), " ") + `"`,
	}
}

// firstHalf is a beginning of a word that folds to a beginning of its folded form.
func firstHalf(token fulltext.Token) string {
	runes := []rune(token.Text)
	half := string(runes[:(len(runes)+1)/2])
	again := slices.Collect(fulltext.Tokens(half))
	if token.Wide || len(again) != 1 || again[0].Text != half {
		return token.Text
	}
	return half
}

// finds fails unless a query finds the texts, by the index and in truth, and shows a proper snippet of them.
func finds(t rapid.TB, asked string, texts []string) {
	t.Helper()
	query, err := fulltext.ParseQuery(asked)
	if err != nil {
		t.Fatalf("%q: %v", asked, err)
	}
	match, ok := query.Match(texts...)
	if !ok {
		t.Fatalf("%q does not find %q", asked, texts)
	}
	if missing := missing(query, fulltext.Terms(texts...)); missing != "" {
		t.Fatalf("%q: the index does not have %s of %q", asked, missing, texts)
	}
	if match.Score <= 0 || len(match.Hits) == 0 {
		t.Fatalf("%q: %+v", asked, match)
	}
	for _, limit := range []int{0, 1, 7, 25, 40, 300} {
		shows(t, query, match, texts, limit)
	}
}

// shows fails unless a snippet is proper and something of it is highlighted; and where the whole of the texts is
// shown, what is highlighted is what the query finds there.
func shows(t rapid.TB, query fulltext.Query, match fulltext.Match, texts []string, limit int) {
	t.Helper()
	snippet := match.Snippet(texts, limit)
	if limit == 0 {
		limit = 160
	}
	if n := utf8.RuneCountInString(snippet.Text); !utf8.ValidString(snippet.Text) || n > limit || len(snippet.Highlights) == 0 {
		t.Fatalf("%q within %d: %d characters, highlights %v: %q", texts, limit, n, snippet.Highlights, snippet.Text)
	}
	end := 0
	for _, span := range snippet.Highlights {
		if span.Start < end || span.End <= span.Start || span.End > len(snippet.Text) || !utf8.ValidString(snippet.Text[span.Start:span.End]) {
			t.Fatalf("%v are not places of %q", snippet.Highlights, snippet.Text)
		}
		if limit == 300 && !hasWords(snippet.Text[span.Start:span.End]) {
			t.Fatalf("%q is highlighted in %q", snippet.Text[span.Start:span.End], snippet.Text)
		}
		end = span.End
	}
}

func hasWords(text string) bool {
	for range fulltext.Tokens(text) {
		return true
	}
	return false
}

// TestMatchesAreInTheIndex: whatever matches a query, also one with quotes, stars and minus signs anywhere, has
// all of its terms in the index.
func TestMatchesAreInTheIndex(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 5).Draw(t, "query")
		query, err := fulltext.ParseQuery(strings.Join(words, rapid.SampledFrom([]string{" ", "", "* ", " -"}).Draw(t, "between")))
		if err != nil {
			t.Skip("no query")
		}
		text := strings.Join(rapid.Permutation(words).Draw(t, "said"), rapid.SampledFrom([]string{" ", "", "x "}).Draw(t, "parted by"))
		texts := []string{textOf(t, "before") + text, textOf(t, "other")}
		if _, ok := query.Match(texts...); !ok {
			return
		}
		found++
		if missing := missing(query, fulltext.Terms(texts...)); missing != "" {
			t.Fatalf("%q: the index does not have %s of %q", words, missing, texts)
		}
	})
	if found < 10 {
		t.Errorf("only %d matches: the test shows little", found)
	}
}
