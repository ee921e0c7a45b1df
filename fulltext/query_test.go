package fulltext_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/fulltext"
)

func parse(t testing.TB, text string) fulltext.Query {
	t.Helper()
	query, err := fulltext.ParseQuery(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return query
}

func TestQueryFinds(t *testing.T) {
	for _, test := range []struct{ query, yes, no string }{
		{"refund", "They REFUNDED it.|a refund|Refund-policy", "prerefund|ref und|refun"},
		{"cat", "the Cat sat|cat's", "cats|concat"},
		{"cats", "catsuit", "cat"},
		{"status refund", "refund of unknown status", "refund"},
		{`"refund status"`, "the refund status.|refund, status|Refund\nStatus", "status refund|refund of status|refund statuses"},
		{`"refund stat*"`, "refund status", "refunds status"},
		{"„refund status“ »a b« 「c d」", "c d a b refund status", "d c a b refund status"},
		{`"refund status`, "refund status", "status refund"},
		{`"refund"`, "refund", "refunded"},
		{"re*", "refund|re|retry", "are"},
		{"(foo*)", "foobar", "bar"},
		{"refund -status", "refunded", "refund status|refund statuses"},
		{`refund -"status code"`, "code status refund", "refund status code"},
		{"run --verbose", "run verbose", "run"},
		{"a - b", "b a", "a"},
		{"−x y", "y", "x y"},
		{"file_read", "file_read(x)|file.reader|file read|FILE-READING", "read file|fileread|file: not read|file_re"},
		{"os.Args", "os.Args[1]", "args os"},
		{"v2.10", "v2.10.3", "v2.1|v2.100"},
		{"fileread", "fileRead fileReader", "file read"},
		{"error", "\x1b[1;31mERROR\x1b[0m: no", "\x1b31merror"},
		{"& refund !", "refund", "fund"},
		{"muller", "Müller|Mu\u0308ller|MÜLLER", "moller"},
		{"STRASSE", "Straße|Straßen", "strase"},
		{"istanbul", "İstanbul'da|ISTANBUL|ıstanbul", "stanbul"},
		{"IŞIK", "ışıklar|isik", "ask"},
		{"数据库", "一个数据库系统|数据\n库", "数据|据库数|数据仓库"},
		{"数", "大数", "据"},
		{"智能", "人工智能。", "能智"},
		{"数据 python", "用Python读数据", "用Python读数"},
		{"データ検索", "データ検索する|ﾃﾞｰﾀ検索", "データを検索"},
		{"か", "かな", "がな"},
		{"ค้นหา", "การค้นหาข้อมูล", "คนหา|หาค้น"},
		{"검색", "검색을 하다|검색", "정보검색|검"},
		{"책", "책을 읽다", "공책"},
		{`"책"`, "책 한 권", "책을"},
		{"مدرسة", "في مدرسه|مَدْرَسَة", "مدرس"},
		{"١٢٣", "123|١٢٣", "12"},
		{"खोज", "हिन्दी में खोज", "खोजना"},
		{"हिन्दी", "हिन्दी", "हिन्दु"},
		{strings.Repeat("a", 100), strings.Repeat("A", 70) + "bc|" + strings.Repeat("a", 64), strings.Repeat("a", 63)},
	} {
		query := parse(t, test.query)
		for _, text := range strings.Split(test.yes, "|") {
			if _, ok := query.Match(text); !ok {
				t.Errorf("%q does not find %q", test.query, text)
			}
			if missing := missing(query, fulltext.Terms(text)); missing != "" {
				t.Errorf("%q: the index does not have %s of %q", test.query, missing, text)
			}
		}
		for _, text := range strings.Split(test.no, "|") {
			if match, ok := query.Match(text); ok {
				t.Errorf("%q finds %q at %v", test.query, text, match.Hits)
			}
		}
	}
}

// missing is the first term of a query that an index does not have.
func missing(query fulltext.Query, terms []string) string {
	for _, wanted := range query.Terms() {
		found := false
		for _, term := range terms {
			found = found || term == wanted.Text || wanted.Prefix && strings.HasPrefix(term, wanted.Text)
		}
		if !found {
			return fmt.Sprintf("%+v", wanted)
		}
	}
	return ""
}

func TestQueryTerms(t *testing.T) {
	for query, want := range map[string]string{
		"refund the":              "the refund*",
		`"refund the" -status`:    "refund the",
		"数据库":                     "据库 数据",
		"数":                       "数*",
		"数a据":                     "a 据* 数*",
		"a数据b":                    "数据 a b",
		"a A Ａ":                   "a",
		"검색":                      "검색*",
		"re*":                     "re*",
		"数*":                      "数*",
		strings.Repeat("W", 100):  strings.Repeat("w", 64) + "*",
		"한*":                      "한*",
		"file_read file_write":    "file write* read*",
		"file_reader":             "file reader*",
		"\"x\" x -y -\"z 数据\" 据库": "据库 x",
	} {
		var got []string
		for _, term := range parse(t, query).Terms() {
			if term.Prefix {
				term.Text += "*"
			}
			got = append(got, term.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q looks up %q, want %q", query, got, want)
		}
	}
	sentence := ""
	for i := range 300 {
		sentence += string(rune(0x4E00 + i))
	}
	if terms := parse(t, sentence).Terms(); len(terms) != fulltext.MaxQueryWords {
		t.Errorf("a sentence looks up %d terms", len(terms))
	}
}

func TestQueryErrorsAdvise(t *testing.T) {
	for query, want := range map[string]string{
		"":                        "has no words",
		" \t":                     "has no words",
		`"" * -`:                  "has no words",
		"🎉 !?":                    "with letters or digits",
		"-status":                 "add a word to search for",
		strings.Repeat("a", 1001): "use at most 1000",
		words(33):                 "use at most 32",
	} {
		if _, err := fulltext.ParseQuery(query); !errors.Is(err, fulltext.ErrQuery) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", query, err, want)
		}
	}
	parse(t, words(32))
	parse(t, strings.Repeat("语", 1000))
	parse(t, strings.Repeat("again ", 150)) // one word
	var none fulltext.Query
	if _, ok := none.Match("anything"); ok || len(none.Terms()) > 0 {
		t.Error("the zero query finds something")
	}
}

func words(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "w%d ", i)
	}
	return all.String()
}
