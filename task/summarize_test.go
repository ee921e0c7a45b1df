package task_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/continuo-log/continuo/task"
)

func summary(t testing.TB, text string, most int) string {
	t.Helper()
	short, err := task.Extractive{}.Summarize(t.Context(), text, most)
	if err != nil {
		t.Fatal(err)
	}
	return short
}

// Facts outlast boilerplate and repeats: of a conversation with six facts among 80 near-identical questions all six
// survive, and each repeated answer is there once.
func TestASummaryKeepsFactsBeforeRepeats(t *testing.T) {
	facts := map[int]string{
		7: "We decided to use PostgreSQL 16.", 19: "The deadline is 14 March 2026.", 33: "Never deploy on Fridays.",
		41: "The budget is 4200 euros.", 58: "Ask Marta Lindqvist before you touch billing.", 73: "The staging host is not reachable from the office.",
	}
	var text strings.Builder
	for i := range 80 {
		fmt.Fprintf(&text, "User: How should we handle case %d of the form?\n", i)
		if fact := facts[i]; fact != "" {
			fmt.Fprintf(&text, "User: %s\n", fact)
		}
		text.WriteString("Assistant: That depends on the case, as always. Let me know if I can help with anything else!\n")
	}
	got := summary(t, text.String(), 1000)
	for _, fact := range facts {
		if !strings.Contains(got, fact) {
			t.Errorf("%q is not in %q", fact, got)
		}
	}
	if n := strings.Count(got, "Let me know"); n > 1 {
		t.Errorf("a repeat is there %d times in %q", n, got)
	}
}

func TestSummariesOfOtherTexts(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		most int
		want string
	}{
		"short enough":      {"All of it. Every word.", 22, "All of it. Every word."},
		"no room":           {"All of it.", 0, ""},
		"no words":          {strings.Repeat("=", 50), 10, ""},
		"one long sentence": {"one two three four five six", 15, "one two three…"},
		"no spaces":         {strings.Repeat("x", 50), 10, "xxxxxxxxx…"},
		"chinese":           {"我们需要修复登录错误。今天天气很好。", 11, "我们需要修复登录错误。"},
		"versions":          {"Use version 1.2.3 of it. And so on and so forth.", 26, "Use version 1.2.3 of it."},
	} {
		if got := summary(t, test.text, test.most); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// A summary fits, is always the same, and has nothing but sentences of the text, in their order.
func TestSummariesAreExtracts(t *testing.T) {
	words := []string{"the", "database", "query", "is", "slow", "index", "add", "user", "fast", "日本", "cache", "why"}
	ends := []string{". ", "! ", "? ", "\n", "。"}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		var sentences []string
		var text strings.Builder
		for i := range 2 + random.IntN(30) {
			sentence := []string{fmt.Sprintf("s%02d", i)}
			for range 1 + random.IntN(9) {
				sentence = append(sentence, words[random.IntN(len(words))])
			}
			end := ends[random.IntN(len(ends))]
			one := strings.Join(sentence, " ") + strings.TrimSpace(end)
			sentences = append(sentences, one)
			text.WriteString(strings.Join(sentence, " ") + end)
		}
		most := 5 + random.IntN(300)
		got := summary(t, text.String(), most)
		if utf8.RuneCountInString(got) > most || got != summary(t, text.String(), most) {
			t.Fatalf("seed %d: %q is longer than %d, or another one each time", seed, got, most)
		}
		if strings.HasSuffix(got, "…") || got == text.String() {
			continue // part of the first sentence; all of a short text
		}
		at := 0
		for _, part := range strings.Split(got, " … ") {
			for part != "" {
				next := slices.IndexFunc(sentences[at:], func(s string) bool { return strings.HasPrefix(part, s) })
				if next < 0 {
					t.Fatalf("seed %d: %q of %q is nowhere after sentence %d", seed, part, got, at)
				}
				part = strings.TrimPrefix(strings.TrimPrefix(part, sentences[at+next]), " ")
				at += next + 1
			}
		}
	}
}
