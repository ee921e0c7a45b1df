package fulltext_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/continuo-log/continuo/fulltext"
)

// folded are a text's tokens; wide ones in brackets.
func folded(text string) string {
	var all []string
	for token := range fulltext.Tokens(text) {
		if token.Wide {
			token.Text = "[" + token.Text + "]"
		}
		all = append(all, token.Text)
	}
	return strings.Join(all, " ")
}

func TestTokens(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":              {"", ""},
		"punctuation":          {" .,-!? 🎉", ""},
		"case":                 {"The QUICK brown", "the quick brown"},
		"code":                 {"file_read(ctx, os.Args[1]) /usr/lib-x", "file read ctx os args 1 usr lib x"},
		"camel case is one":    {"fileRead HTTPServer2", "fileread httpserver2"},
		"digits stay":          {"utf8 v2 0x7F 3.14", "utf8 v2 0x7f 3 14"},
		"apostrophe":           {"don't l’été", "don t l ete"},
		"German":               {"Müller, Straße, GROẞ", "muller strasse gross"},
		"decomposed":           {"Mu\u0308ller", "muller"},
		"Turkish":              {"İstanbul ISPARTA ışık IŞIK", "istanbul isparta isik isik"},
		"Nordic":               {"Ærø Łódź Þór", "aero lodz thor"},
		"Vietnamese":           {"Đường phố", "duong pho"},
		"Greek":                {"ὈΔΥΣΣΕΎΣ Ὀδυσσεύς", "οδυσσευσ οδυσσευσ"},
		"Russian":              {"Ёлка ёж", "елка еж"},
		"full width":           {"ＡＢＣ１２３", "abc123"},
		"ligature":             {"ﬁnal", "final"},
		"small numbers":        {"x² CO₂ ½", "x2 co2"},
		"Arabic":               {"مُحَمَّد أحمد مدرسة ١٢٣", "محمد احمد مدرسه 123"},
		"Arabic stretched":     {"محـــمد", "محمد"},
		"Persian":              {"می\u200cخواهم", "ميخواهم"},
		"Hebrew":               {"שָׁלוֹם", "שלום"},
		"Hindi":                {"हिन्दी में खोज", "हिन्दी में खोज"},
		"Hindi, dot below":     {"क़लम \u0915\u093cलम", "कलम कलम"},
		"Tamil":                {"கொள்", "கொள்"},
		"Korean":               {"데이터베이스를 검색", "데이터베이스를 검색"},
		"Korean, decomposed":   {norm.NFD.String("검색"), "검색"},
		"Chinese":              {"使用Python编程。2024年", "[使] [用] python [编] [程] 2024 [年]"},
		"Japanese":             {"データを検索する", "[デ] [ー] [タ] [を] [検] [索] [す] [る]"},
		"Japanese, decomposed": {norm.NFD.String("がデ"), "[が] [デ]"},
		"half-width kana":      {"ﾃﾞｰﾀ", "[デ] [ー] [タ]"},
		"Thai":                 {"ค้นหา น้ำ ๒๕", "[ค้] [น] [ห] [า] [น้] [ำ] 25"},
		"Tibetan":              {"བོད་སྐད", "བོད སྐད"},
		"soft hyphen":          {"Daten\u00adbank\u00ad x", "datenbank x"},
		"zero-width space":     {"one\u200btwo", "one two"},
		"keycap":               {"1️⃣ 👍🏽a", "1 a"},
		"no UTF-8":             {"a\xffb\xc3", "a b"},
		"NUL":                  {"a\x00b", "a b"},
		"lone mark":            {"\u0301 \u0e49 a", "a"},
		"ideographic numbers":  {"二〇二四", "[二] [〇] [二] [四]"},
	} {
		if got := folded(test.text); got != test.want {
			t.Errorf("%s: %q has %q, want %q", name, test.text, got, test.want)
		}
	}
}

func TestTokensAreAtTheirOffsets(t *testing.T) {
	text := "Größe: ค้น, x\u00ad"
	var got []string
	for token := range fulltext.Tokens(text) {
		got = append(got, text[token.Start:token.End])
	}
	if want := []string{"Größe", "ค้", "น", "x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for range fulltext.Tokens(text) {
		break // a consumer may stop
	}
}

func TestLongWordsMatchByTheirPrefix(t *testing.T) {
	for _, char := range []string{"a", "Ä", "가", "\u1100\u1161\u11a8", "ß", "ﷺ", "की"} {
		long := strings.Repeat(char, 5000)
		tokens := slices.Collect(fulltext.Tokens(long + " end"))
		if len(tokens) != 2 || tokens[0].End != len(long) {
			t.Fatalf("%q: %d tokens, the first ends at %d", char, len(tokens), tokens[0].End)
		}
		if n := utf8.RuneCountInString(tokens[0].Text); n != fulltext.MaxWord {
			t.Errorf("%q: %d characters count, want %d", char, n, fulltext.MaxWord)
		}
	}
	tall := slices.Collect(fulltext.Tokens("語" + strings.Repeat("\u3099\u0e49", 3000)))
	if len(tall) != 1 || len(tall[0].Text) > 64 {
		t.Errorf("a character with many marks: %d tokens, %d bytes", len(tall), len(tall[0].Text))
	}
}

// TestEveryCharacter checks the laws of folding on all of Unicode, alone and within a word.
func TestEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || 0x40000 <= r && r < 0xE0000 || r >= 0xF0000 { // nothing is there
			continue
		}
		for _, text := range []string{string(r), "b" + string(r), "b" + string(r) + "e", "語" + string(r), "क" + string(r)} {
			checkTokens(t, text)
		}
		char := string(r)
		for _, other := range []string{norm.NFC.String(char), norm.NFD.String(char)} {
			if folded(other) != folded(char) {
				t.Errorf("%U: %q, in another normal form %q", r, folded(char), folded(other))
			}
		}
		for _, other := range []string{strings.ToUpper(char), strings.ToLower(char)} {
			if folded(other) != folded(char) && r != '\u0345' { // a mark whose capital is a letter
				t.Errorf("%U: %q, in another case %q", r, folded(char), folded(other))
			}
		}
	}
}

// checkTokens fails unless tokens are in order, are letters, digits and marks, and fold to themselves.
func checkTokens(t *testing.T, text string) {
	t.Helper()
	end := 0
	for token := range fulltext.Tokens(text) {
		if token.Start < end || token.End <= token.Start || token.End > len(text) {
			t.Errorf("%q: %+v after %d", text, token, end)
		}
		end = token.End
		if token.Text == "" || !utf8.ValidString(token.Text) || utf8.RuneCountInString(token.Text) > fulltext.MaxWord {
			t.Errorf("%q: %q is empty, too long or no UTF-8", text, token.Text)
		}
		if strings.ContainsFunc(token.Text, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) || 'A' <= r && r <= 'Z' }) {
			t.Errorf("%q: %q has more than letters, digits and marks", text, token.Text)
		}
		again := slices.Collect(fulltext.Tokens(token.Text))
		if len(again) != 1 || again[0].Text != token.Text || again[0].Wide != token.Wide {
			t.Errorf("%q: %+q folds to %v", text, token.Text, again)
		}
	}
}
