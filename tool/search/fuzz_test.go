package search_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// FuzzSearch checks what holds for every text and query: the result is bounded, is proper text, and no
// line of an entry stands at the left edge.
func FuzzSearch(f *testing.F) {
	f.Add("one needle\n#2 user\n[x]", "needle", false)
	f.Add("\r\u2028\xff\x00 needle \t", `"needle"`, false)
	f.Add(strings.Repeat("a\n", 50), "^a$", true)
	f.Add(strings.Repeat("语", 500)+"x\n\n\nx", "x", false)
	f.Add(`{"a":"\u4f60\ud83d\ude00\udc00"}`, "你", false)
	f.Add("a\nb\n", "\n", true)
	f.Fuzz(func(t *testing.T, text, asked string, regex bool) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		p := newFixture(t, join(userEntries(text), calls("c1", "look", text, continuo.Entry{Outcome: text, Content: continuo.Text(text)}), userEntries("end"))...)
		arguments, err := json.Marshal(map[string]any{"query": asked, "regex": regex})
		if err != nil {
			t.Fatal(err)
		}
		got := p.search(string(arguments))
		if !utf8.ValidString(got.Content) || utf8.RuneCountInString(got.Content) > 8000 || strings.ContainsAny(got.Outcome, "\r\n") {
			t.Errorf("failed %t, %s: %q", got.Failed, got.Outcome, got.Content)
		}
		if got.Failed {
			return
		}
		blocks := strings.Split(got.Content, "\n\n")
		for i, block := range blocks {
			for j, line := range strings.Split(block, "\n") {
				ours := j == 0 && (strings.HasPrefix(line, "#") || i == len(blocks)-1 && strings.HasPrefix(line, "["))
				if !ours && !strings.HasPrefix(line, "> ") && !strings.HasPrefix(line, "  ") {
					t.Errorf("a line stands at the left edge: %q\n%s", line, got.Content)
				}
			}
		}
	})
}
