package fulltext_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/fulltext"
)

func TestTermsMayBeInDifferentTexts(t *testing.T) {
	match, ok := parse(t, "refund shipping").Match("Shipping costs", "no refunds")
	if want := []fulltext.Hit{{0, 0, 8}, {1, 3, 10}}; !ok || !slices.Equal(match.Hits, want) {
		t.Errorf("got %t %v, want %v", ok, match.Hits, want)
	}
	if _, ok := parse(t, `"costs no"`).Match("shipping costs", "no refunds"); ok {
		t.Error("a phrase reaches over the end of a text")
	}
	if _, ok := parse(t, "shipping -refund").Match("shipping", "refunded"); ok {
		t.Error("what is excluded may be in another text")
	}
}

func TestScoreOrders(t *testing.T) {
	filler := strings.Repeat("filler ", 40)
	for name, test := range map[string]struct{ query, better, worse string }{
		"more often":             {"refund", "refund refund refund " + filler, "refund " + filler},
		"shorter":                {"refund", "a refund", "a refund " + filler},
		"whole words":            {"refund", "refund " + filler, "refunded " + filler},
		"one whole, many longer": {"refund", "refund " + filler + filler, strings.Repeat("refunded ", 30) + filler + filler[:7*11]},
		"near":                   {"refund status", "the refund has a status " + filler, "refund " + filler + " status"},
		"side by side":           {"refund status", "refund status " + filler, "refund has status " + filler[:len(filler)-7]},
		"in order":               {"refund status", "refund status " + filler, "status refund " + filler},
		"in one text":            {"数据 系统", "数据和系统" + filler, "数据" + filler + "和系统"},
	} {
		query := parse(t, test.query)
		better, ok := query.Match(test.better)
		worse, also := query.Match(test.worse)
		if !ok || !also || better.Score <= worse.Score || worse.Score <= 0 {
			t.Errorf("%s: %d, and %d", name, better.Score, worse.Score)
		}
	}
}

// TestTextsAreApart: words at the same places of two texts do not stand near each other.
func TestTextsAreApart(t *testing.T) {
	query := parse(t, "refund status")
	together, _ := query.Match("a refund a status")
	apart, ok := query.Match("a refund", "a status")
	if !ok || apart.Score >= together.Score {
		t.Errorf("in two texts %d, in one %d", apart.Score, together.Score)
	}
}

func TestLongPhrases(t *testing.T) {
	for _, text := range []string{words(9), words(17), words(150)} {
		query := parse(t, `"`+text+`"`)
		if match, ok := query.Match("x " + text + "y"); !ok || match.Hits[0].Start != 2 {
			t.Errorf("%.20q is not found", text)
		}
		if _, ok := query.Match(text[3:]+text[:3], strings.Replace(text, "w4 ", "w4 x ", 1)); ok {
			t.Errorf("%.20q is found in another order", text)
		}
	}
}

// TestScoreStays guards the figures: stored or paged results are only in order while the same match has the same
// score on every machine and in every release.
func TestScoreStays(t *testing.T) {
	query := parse(t, "refund 数据")
	for text, want := range map[string]int64{
		"refund of 数据": 439_852,
		"refunded " + strings.Repeat("x ", 1000) + "数据": 21_547,
	} {
		if match, _ := query.Match(text); match.Score != want {
			t.Errorf("%.20q: got %d, want %d", text, match.Score, want)
		}
	}
	match, ok := query.Match(strings.Repeat("refund 数据 ", 50_000))
	if !ok || match.Score <= 0 || match.Score > 1<<40 {
		t.Errorf("a large text scores %d", match.Score)
	}
}

func TestHitsAreBounded(t *testing.T) {
	for _, query := range []string{"aaaa", words(32), "aaaa bbbb"} {
		match, ok := parse(t, query).Match(strings.Repeat(words(32)+" aaaa bbbb ", 1000))
		if !ok || len(match.Hits) == 0 || len(match.Hits) > 130 {
			t.Errorf("%.20q: %t, %d hits", query, ok, len(match.Hits))
		}
		if !slices.IsSortedFunc(match.Hits, func(a, b fulltext.Hit) int { return a.Start - b.Start }) {
			t.Errorf("%.20q: hits are not in order: %v", query, match.Hits)
		}
	}
}

// TestHitsHaveTheClosestPosition looks for terms that are together only at the end of a long text.
func TestHitsHaveTheClosestPosition(t *testing.T) {
	text := strings.Repeat("refund and so on, ", 300) + strings.Repeat("status or not, ", 300) + "the refund status"
	match, _ := parse(t, "refund status").Match(text)
	for _, want := range []fulltext.Hit{{0, len(text) - 13, len(text) - 7}, {0, len(text) - 6, len(text)}} {
		if !slices.Contains(match.Hits, want) {
			t.Errorf("%v is not among the hits", want)
		}
	}
	if snippet := match.Snippet([]string{text}, 60).Text; !strings.HasSuffix(snippet, "the refund status") {
		t.Errorf("the snippet is %q", snippet)
	}
}
