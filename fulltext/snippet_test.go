package fulltext_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/fulltext"
)

// marked is a snippet with brackets around what is highlighted.
func marked(s fulltext.Snippet) string {
	var out strings.Builder
	at := 0
	for _, span := range s.Highlights {
		out.WriteString(s.Text[at:span.Start] + "[" + s.Text[span.Start:span.End] + "]")
		at = span.End
	}
	return out.String() + s.Text[at:]
}

func TestSnippet(t *testing.T) {
	filler := strings.Repeat("lorem ipsum ", 30)
	for name, test := range map[string]struct {
		query string
		limit int
		texts []string
		want  string
	}{
		"whole":            {"refund", 0, []string{"A refund,  please.\n\nRefunded?"}, "A [refund], please. [Refunded]?"},
		"cut":              {"refund", 40, []string{filler + "a refund, please " + filler}, "… lorem ipsum a [refund], please lorem …"},
		"at the begin":     {"refund", 40, []string{"A refund " + filler}, "A [refund] lorem ipsum lorem ipsum …"},
		"at the end":       {"refund", 40, []string{filler + "a refund.\n"}, "… lorem ipsum lorem ipsum a [refund]."},
		"two places":       {"refund status", 90, []string{"a refund " + filler + "the status"}, "a [refund] lorem ipsum lorem ipsum lorem … ipsum lorem ipsum lorem ipsum the [status]"},
		"two texts":        {"refund status", 90, []string{"the status", "none", "my refund"}, "the [status] … my [refund]"},
		"phrase":           {`"refund status"`, 0, []string{"my refund-\n status"}, "my [refund- status]"},
		"overlap":          {"refund refund_status", 0, []string{"refund_status"}, "[refund_status]"},
		"Chinese":          {"数据库", 24, []string{strings.Repeat("这是一个很长的句子", 9) + "数据库系统" + strings.Repeat("这是一个很长的句子", 9)}, "子这是一个很长的句子[数据库]系统这是一个很长的句子"},
		"controls":         {"refund", 0, []string{"a\x07\x1b[31mrefund\x1b[0m\x00\u202e b\tc\u2028d\u2066"}, "a\uFFFD[refund]\uFFFD b c d"},
		"after an escape":  {"refund", 0, []string{"\x1b refund"}, "\uFFFD [refund]"},
		"no UTF-8":         {"refund", 0, []string{"\xff refund \xc3"}, "\uFFFD [refund] \uFFFD"},
		"small":            {"refund", 6, []string{"all refunded"}, "[refund]"},
		"smaller":          {"refund", 1, []string{"all refunded"}, "[r]"},
		"not within marks": {"ค้น้", 3, []string{"การค้น้"}, "[ค้]"},
		"a blob":           {strings.Repeat("a", 64), 40, []string{"x " + strings.Repeat("a", 9000) + " y"}, "… [" + strings.Repeat("a", 36) + "] …"},
		"beside a blob":    {"refund", 40, []string{strings.Repeat("a", 9000) + " refund"}, "… " + strings.Repeat("a", 29) + " [refund]"},
	} {
		match, ok := parse(t, test.query).Match(test.texts...)
		if !ok {
			t.Errorf("%s: no match", name)
			continue
		}
		if got := marked(match.Snippet(test.texts, test.limit)); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, test.want)
		}
	}
}

func TestSnippetOfOtherTexts(t *testing.T) {
	match, _ := parse(t, "refund status").Match("the refund", "the status")
	for _, texts := range [][]string{nil, {""}, {"x"}, {"数据数据"}, {"the refund"}} {
		proper(t, match.Snippet(texts, 10), 10)
	}
	if got := (fulltext.Match{}).Snippet([]string{"text"}, 0); got.Text != "" {
		t.Errorf("no match shows %q", got.Text)
	}
}

// proper fails unless a snippet is within its limit, on one line, and its highlights are in order.
func proper(t testing.TB, snippet fulltext.Snippet, limit int) {
	t.Helper()
	if limit <= 0 {
		limit = 160
	}
	if !utf8.ValidString(snippet.Text) || utf8.RuneCountInString(snippet.Text) > limit {
		t.Fatalf("%d characters of %d: %q", utf8.RuneCountInString(snippet.Text), limit, snippet.Text)
	}
	if strings.ContainsFunc(snippet.Text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) && r != ' ' }) || strings.Contains(snippet.Text, "  ") {
		t.Fatalf("not one line: %q", snippet.Text)
	}
	end := 0
	for _, span := range snippet.Highlights {
		if span.Start < end || span.End <= span.Start || span.End > len(snippet.Text) || !utf8.ValidString(snippet.Text[span.Start:span.End]) {
			t.Fatalf("%v are not places of %q", snippet.Highlights, snippet.Text)
		}
		end = span.End
	}
}
