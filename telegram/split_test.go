package telegram

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"

	"github.com/continuo-log/continuo/internal/plaintext"
	"github.com/continuo-log/continuo/telegram/telegramtest"
)

// shown is a character as people see it.
type shown struct {
	r      rune
	inCode bool
}

// seen lists what is seen of a text, white space left out. units are of UTF-16.
func seen(text string, inCode func(unit int) bool) (list []shown) {
	unit := 0
	for _, r := range text {
		if !plaintext.IsBlank(string(r)) {
			list = append(list, shown{r, inCode(unit)})
		}
		unit += units(r)
	}
	return list
}

// reporter is a test, or a case of one.
type reporter interface {
	Helper()
	Errorf(format string, values ...any)
	Fatalf(format string, values ...any)
}

// checkSplit checks the laws of parts: Telegram takes each, none is too long or empty, and together they show what the
// text shows, code as code.
func checkSplit(t reporter, header, text string, limit int) []part {
	t.Helper()
	spans := scan(text, limit)
	parts := split(header, spans, limit)
	var got, want []shown
	for i, p := range parts {
		if length := len(utf16.Encode([]rune(p.Markdown))); length > limit {
			t.Errorf("part %d has %d units of %d", i, length, limit)
		}
		if length := len(utf16.Encode([]rune(p.Plain))); length > limit {
			t.Errorf("part %d has %d units of %d as plain text", i, length, limit)
		}
		if plaintext.IsBlank(p.Plain) {
			t.Errorf("part %d shows nothing: %q", i, p.Plain)
		}
		visible, entities, err := telegramtest.ParseMarkdownV2(p.Markdown)
		if err != nil {
			t.Fatalf("part %d is refused: %v\n%s", i, err, p.Markdown)
		}
		got = append(got, seen(visible, func(unit int) bool {
			return slices.ContainsFunc(entities, func(e telegramtest.Entity) bool {
				return (e.Type == "code" || e.Type == "pre") && unit >= e.Offset && unit < e.Offset+e.Length
			})
		})...)
	}
	if all := plainText(spans); !strings.ContainsAny(text, "[<") && !hasFence.MatchString(text) && letters(all) != letters(clean(text)) {
		t.Errorf("%q is shown as %q", clean(text), all)
	}
	if len(parts) > 0 {
		want = seen(oneLine(header, limit/8), func(int) bool { return false })
	}
	for _, s := range spans {
		want = append(want, seen(s.text, func(int) bool { return s.kind != spanText })...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q in parts of %d shows %v, not %v", text, limit, got, want)
	}
	return parts
}

// hasFence finds what a text hides on purpose besides links: the language of a block of code.
var hasFence = regexp.MustCompile("```|~~~")

// letters are those of a text, which Markdown leaves as they are.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, text)
}

// TestAnyMarkdownIsShown writes random Markdown: each is taken, in parts of any size, and shows all words.
func TestAnyMarkdownIsShown(t *testing.T) {
	pieces := []string{
		"word", " ", "\n", "\n\n", "*", "**", "_", "__", "~~", "~", "`", "```", "```go\n", "# ", "## ", "- ", "1. ", "> ", "    ", "\t", "|", "---", "|---|\n",
		"[a](https://x.test/b)", "[a](b)", "![i](https://x.test/(y))", "<https://x.test>", "<b>", "\\", "&amp;", ".", "!", "x_y", "😀", "===\n", "***\n", "|a|b|\n|-|-:|\n|c|",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "pieces"), "")
		checkSplit(t, "Ann", text, rapid.IntRange(minUnits, 400).Draw(t, "limit"))
	})
}

// A table in a list is a block of code, which begins a line also in a quote.
func TestATableInAQuotedList(t *testing.T) {
	checkSplit(t, "Ann", "> - |a|b|\n|-|-:|\n|c|", 100)
	checkSplit(t, "Ann", "> - x\n>   - |a|b|\n>     |-|-:|\n>     |c|", 100)
}

func FuzzSplit(f *testing.F) {
	f.Add("Ann", "Hello. *World*!", 256)
	f.Add("", strings.Repeat("a b\n\n", 400), 300)
	f.Add("Bob [x]", "see `a.b` and\n```go\n"+strings.Repeat("x := `1` + \\\n", 60)+"```\nend", 256)
	f.Add("😀", strings.Repeat("👨‍👩‍👧🇩🇪", 200), 257)
	f.Add("", strings.Repeat("*_", 3000), 4096)
	f.Add("\u200b", "\u200b"+strings.Repeat("\n", 5000)+"x", 256)
	f.Add("A", "```\n```\n``` \na`b`c`d``e`\n```x\ny", 256)
	f.Add(strings.Repeat("*", 50), "```"+strings.Repeat("l", 32)+"\n"+strings.Repeat("😀`", 90)+"\n```", 100)
	f.Add("A", strings.Repeat("e\u0301", 900)+strings.Repeat("\u0301", 900), 256)
	f.Fuzz(func(t *testing.T, header, text string, limit int) {
		if limit < minUnits || limit > maxUnits {
			limit = minUnits + (limit&0xFFFF)%(maxUnits-minUnits)
		}
		checkSplit(t, header, text, limit)
	})
}

func TestSplit(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		header, text string
		want         []string // plain
	}{
		"nothing":               {"Ann", " \n\u200b\t", nil},
		"short":                 {"Ann", "  Hi.\r\n", []string{"Ann\nHi."}},
		"paragraphs":            {"", words(30) + "\n\n" + words(10) + "\n" + words(30), []string{words(30), words(10) + "\n" + words(30)}},
		"lines":                 {"", words(30) + "\n" + words(30), []string{words(30), words(30)}},
		"words":                 {"", words(60), []string{words(51), words(9)}},
		"an early paragraph":    {"", "Title\n\n" + words(60), []string{"Title\n\n" + words(49), words(11)}},
		"a long word":           {"", "see " + long, []string{"see", long[:256], long[256:]}},
		"reserved characters":   {"", strings.Repeat(".", 200), []string{strings.Repeat(".", 128), strings.Repeat(".", 72)}},
		"surrogates":            {"", "a" + strings.Repeat("😀", 130), []string{"a" + strings.Repeat("😀", 127), strings.Repeat("😀", 3)}},
		"one character of many": {"", "a" + strings.Repeat("👍🏽", 64), []string{"a" + strings.Repeat("👍🏽", 63), "👍🏽"}},
		"code stays code": {
			"", "```go\n" + strings.Repeat("  call()\n", 40) + "```",
			[]string{
				"```go\n" + strings.TrimSuffix(strings.Repeat("  call()\n", 27), "\n") + "\n```",
				"```go\n" + strings.TrimSuffix(strings.Repeat("  call()\n", 13), "\n") + "\n```",
			},
		},
		"code in a line":  {"", "run `" + words(60) + "`", []string{"run `" + words(50) + "`", "`" + words(10) + "`"}},
		"a forged header": {"Ann*\n_x_", "*Bob*\nhi", []string{"Ann* _x_\nBob\nhi"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range checkSplit(t, test.header, test.text, 256) {
				got = append(got, p.Plain)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the parts are\n%q, not\n%q", got, test.want)
			}
		})
	}
}

// The display name is underlined and nothing else of the text is, whatever it says.
func TestHeader(t *testing.T) {
	parts := split("Ann *B*", scan("**__Bob__**\n<u>x</u> `code`", maxUnits), maxUnits)
	_, entities, err := telegramtest.ParseMarkdownV2(parts[0].Markdown)
	want := []telegramtest.Entity{
		{Type: "underline", Length: 7}, {Type: "bold", Length: 7}, {Type: "bold", Offset: 8, Length: 3}, {Type: "code", Offset: 21, Length: 4},
	}
	if err != nil || !slices.Equal(entities, want) {
		t.Errorf("%+v, %v", entities, err)
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"a\r\nb\rc\x00\x1b[1md\te": "a\nb\nc[1md\te", "\xffx": "\uFFFDx", "a\u2028b\u0085c": "a\nbc",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}

// The work grows with the text alone, whatever is in it.
func BenchmarkSplit(b *testing.B) {
	for name, piece := range map[string]string{
		"words": "some words ", "code": "`a` ", "backticks": "`", "fences": "```\n", "blocks": "```\nx\n```\n", "blank": "\u200b", "lines": "\n",
		"stars": "*", "emphasis": "*a **b ", "marks": "*_~", "brackets": "[", "links": "[a](", "images": "![a](b", "quotes": ">", "items": "- ", "angles": "<a", "tables": "|a|b|\n|-|-|\n",
		"nested": "> - a\n", "ticks": "`a``b```c", "escapes": "\\", "tildes": "~~a~ ", "closers": "a** b_ ", "brackets closed": "[a] ", "nested brackets": "[a](b[",
	} {
		for _, size := range []int{10_000, 1_000_000} {
			text := strings.Repeat(piece, size/len(piece))
			b.Run(name+"/"+strconv.Itoa(size), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					split("Ann", scan(text, maxUnits), maxUnits)
				}
			})
		}
	}
}
