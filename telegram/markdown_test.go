package telegram

import (
	"strings"
	"testing"

	"github.com/continuo-log/continuo/telegram/telegramtest"
)

// TestMarkdown checks what Telegram is sent for what models write.
func TestMarkdown(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"emphasis":           {"**b** *i* ~~s~~ ***bi*** __b__", "*b* _i_ ~s~ *_bi_* *b*"},
		"no emphasis":        {"2 * 3 * 4, snake_case_name, a*", `2 \* 3 \* 4, snake\_case\_name, a\*`},
		"products":           {"2*3*4 = 24, 2**10 and 3**2, **2*3** *2*x", `2\*3\*4 \= 24, 2\*\*10 and 3\*\*2, *2\*3* _2_x`},
		"bold within italic": {"*a **b** c*", "_a _*_b_*_ c_"},
		"a heading":          {"## Plan `x` #\ntext", "*Plan *`x`\ntext"},
		"an underlined one":  {"Plan\n===\n\ntext", "*Plan*\n\ntext"},
		"a list":             {"Items:\n- a\n- b\n  - c\n\n1. x\n2. y", "Items:\n• a\n• b\n   • c\n\n1\\. x\n2\\. y"},
		"a list from 7":      {"7) x\n8) y", "7\\) x\n8\\) y"},
		"an item of lines":   {"- a\n  b\n\n  c", "• a\n   b\n\n   c"},
		"code in a list":     {"- a\n  ```go\n  x\n  ```\n- b", "• a\n```go\nx\n```\n• b"},
		"links":              {"[a](https://x.test/p?q=(1)) <https://y.test>", `[a](https://x.test/p?q=(1\)) https://y\.test`},
		"a bold link":        {"**[a](https://x.test)**", "[*a*](https://x.test)"},
		"other links":        {"[a](b.md) [c](javascript:x) ![i](https://x.test/i.png)", `a \(b\.md\) c \(javascript:x\) [i](https://x.test/i.png)`},
		"definitions":        {"See [1].\n\n[1]: https://x.test", "See \\[1\\]\\.\n\n\\[1\\]: https://x\\.test"},
		"code":               {"`a.b` ``c`d`` and\n~~~py\nx = 1\n\ny\n~~~", "`a.b` `c\\`d` and\n```py\nx = 1\n\ny\n```"},
		"indented code":      {"run\n\n    make all\n", "run\n\n```\nmake all\n```"},
		"an unclosed block":  {"```go\nx := 1", "```go\nx := 1\n```"},
		"a language":         {"```a b\nx\n```\n```<x>\ny\n```", "```a\nx\n```\n\n```\ny\n```"},
		"a quote":            {"> **a\n> b**\n>\n> c\n\nd", ">*a*\n>*b*\n>\n>c\n\nd"},
		"code in a quote":    {"> a\n> ```\n> x\n> ```\n> b", ">a\n```\nx\n```\n>b"},
		"html":               {"<b>x</b> &amp; <br>", `<b\>x</b\> &amp; <br\>`},
		"escapes":            {`\*a\* \_`, `\*a\* \_`},
		"a line":             {"a\n\n---\n\nb", "a\n\n———\n\nb"},
		"a table": {
			"Look:\n| Name | N |\n|:--|--:|\n| **bold** `x` | 1 |\n| a\\|b | 200 |\n| 日本 | 3 | more |",
			"Look:\n```\nName   |   N\n-------+-----+-----\nbold x |   1\na|b    | 200\n日本   |   3 | more\n```",
		},
		"no table": {"a | b\nc | d", `a \| b` + "\n" + `c \| d`},
	} {
		t.Run(name, func(t *testing.T) {
			got := markdownV2(scan(test.source, maxUnits))
			if got != test.want {
				t.Errorf("%q becomes\n%s\nnot\n%s", test.source, got, test.want)
			}
			if _, _, err := telegramtest.ParseMarkdownV2(got); err != nil {
				t.Errorf("%s\nis refused: %v", got, err)
			}
		})
	}
}

// TestStylesContinueInTheNextPart checks that each part of a long piece has its style.
func TestStylesContinueInTheNextPart(t *testing.T) {
	for source, mark := range map[string]string{
		"**" + strings.Repeat("word ", 100) + "end**":                    "*",
		"> " + strings.Repeat("word ", 100):                              ">",
		"[" + strings.Repeat("word ", 100) + "end](https://x.test)":      "[",
		"|a|\n|-|\n" + strings.Repeat("|word|\n", 100):                   "```",
		"# " + strings.Repeat("word ", 100):                              "*",
		"~~" + strings.Repeat("word ", 100) + "\n*" + "x" + "* " + "e~~": "~",
	} {
		parts := checkSplit(t, "", source, 200)
		if len(parts) < 3 {
			t.Errorf("%q has %d parts", source, len(parts))
		}
		for _, p := range parts {
			if !strings.HasPrefix(p.Markdown, mark) {
				t.Errorf("a part of %q begins without %q: %q", source, mark, p.Markdown)
			}
		}
	}
}

// TestAWideTableStaysAsItIs checks that no table grows beyond measure.
func TestAWideTableStaysAsItIs(t *testing.T) {
	source := "|a|b|\n|-|-|\n|" + strings.Repeat("x", 5000) + "|y|\n" + strings.Repeat("|c|d|\n", 1000)
	if got := plainText(scan(source, maxUnits)); len(got) > 2*len(source) {
		t.Errorf("%d bytes become %d", len(source), len(got))
	}
}

// TestLongTexts checks that a text which is read in pieces is shown as a whole one.
func TestLongTexts(t *testing.T) {
	paragraphs := strings.Repeat(strings.Repeat("word ", 20)+"**b**\n\n", 300)
	if spans := scan(paragraphs, maxUnits); len(spans) != 600 {
		t.Errorf("300 paragraphs have %d spans", len(spans))
	}
	block := "```go\n" + strings.Repeat("x := 1\n\n", 4000) + "```"
	if spans := scan(block, maxUnits); len(spans) != 1 || spans[0].language != "go" || spans[0].text != strings.TrimSpace(strings.Repeat("x := 1\n\n", 4000))+"\n" {
		t.Errorf("a block of code has %d spans, the first of %d bytes", len(spans), len(spans[0].text))
	}
	for _, text := range []string{paragraphs, block, strings.Repeat("é", 20_000), strings.Repeat("word ", 9_000), strings.Repeat("word\n", 9_000)} {
		checkSplit(t, "Ann", text, maxUnits)
		if got, want := letters(plainText(scan(text, maxUnits))), letters(strings.TrimPrefix(text, "```go")); got != want {
			t.Errorf("%.40q in pieces has %d letters, not %d", text, len(got), len(want))
		}
	}
}
