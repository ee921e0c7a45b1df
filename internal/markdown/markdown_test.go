package markdown

import (
	"strings"
	"testing"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"

	"github.com/continuo-log/continuo/internal/term"
)

// shown is what a text looks like without styles.
func shown(text string, width int) string {
	return term.Plain(strings.ReplaceAll(strings.Join(Render(text, width), "\n"), "\x1b[m", "\x1b[0m"))
}

func TestRender(t *testing.T) {
	for _, test := range []struct {
		name, text string
		width      int
		want       string
	}{
		{"a paragraph", "one two *three* **four** `five` six", 14, "one two three\nfour five six"},
		{"a heading", "# Title\n\ntext", 20, "Title\n\ntext"},
		{"hard and soft ends of lines", "one\ntwo  \nthree", 20, "one two\nthree"},
		{"a list", "- one\n- two\n  1. three\n  2. four", 20, "• one\n• two\n  1. three\n  2. four"},
		{"a loose list", "2. one\n\n3. two", 20, "2. one\n\n3. two"},
		{"tasks", "- [x] one two three\n- [ ] two", 12, "☑ one two\n  three\n☐ two"},
		{"a quotation", "> one two three", 8, "▏ one\n▏ two\n▏ three"},
		{"code", "```go\nfunc f() {\n\treturn\n}\n```", 20, "  func f() {\n      return\n  }"},
		{"code that is not complete yet", "see\n\n```sh\necho 'a", 20, "see\n\n  echo 'a"},
		{"a long line of code", "```\n0123456789\n```", 8, "  012345\n  6789"},
		{"a table", "| a | bc |\n|---|---:|\n| one | 2 |", 20, "a   │ bc\n────┼───\none │  2"},
		{"a table that does not fit", "| key | value |\n|---|---|\n| one | some words |\n| two | more |", 12, "key: one\nvalue: some\nwords\n\nkey: two\nvalue: more"},
		{"a link", "[text](https://a.b) and https://c.d", 40, "text (https://a.b) and https://c.d"},
		{"signs that mean nothing", "2 * 3 * 4 snake_case_name \\*", 40, "2 * 3 * 4 snake_case_name *"},
		{"HTML is shown", "a <b>c</b>\n\n<div>\nx\n</div>", 40, "a <b>c</b>\n\n<div>\nx\n</div>"},
		{"wide characters", "日本語のテキスト", 8, "日本語の\nテキスト"},
		{"a long word", "x 0123456789", 5, "x\n01234\n56789"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := shown(test.text, test.width); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Lines keep to the width, and begin and end without a style.
func TestLinesAreWholeAndFit(t *testing.T) {
	words := rapid.SampledFrom([]string{
		"word", " ", "\n", "\n\n", "# ", "- ", "1. ", "> ", "```go\n", "```", "`", "*", "**", "~~", "[a](b)", "| a | b |\n|---|---|\n| c | d |\n", "    ", "日本", "👩‍👩‍👧", "\t", "<b>", "&amp;", "// x", "\"s\"", "+", "longwordwithoutanyend",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(words, 0, 60).Draw(t, "text"), "")
		width := rapid.IntRange(10, 60).Draw(t, "width")
		for _, line := range Render(text, width) {
			plain := term.Plain(strings.ReplaceAll(line, "\x1b[m", "\x1b[0m"))
			if strings.Contains(plain, "\n") || strings.Count(line, "\x1b[m")*2 != strings.Count(line, "\x1b[") {
				t.Fatalf("%q is no whole line", line)
			}
			if got := term.Width(plain); got > width && got > 2*nested(text) {
				t.Fatalf("%q has %d columns of %d", plain, got, width)
			}
		}
	})
}

// nested bounds how deep quotations and lists are nested: marks take two or more columns each.
func nested(text string) int {
	return 3 * (strings.Count(text, "> ") + strings.Count(text, "- ") + strings.Count(text, "1. ") + 1)
}

func BenchmarkRender(b *testing.B) {
	text := strings.Repeat("A paragraph with **bold** text and `code`, long enough to be wrapped.\n\n```go\nfunc f(x int) string { return \"a\" }\n```\n\n- one\n- two\n\n", 150)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Render(text, 80)
	}
}
