package token

import (
	"embed"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// The samples were written for these tests.
//
//go:embed testdata/*.txt
var samples embed.FS

func sample(name string) string {
	data, err := samples.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// english, chinese and code return at least n bytes of text. Sentences are drawn again and again in another
// order, so that it does not repeat as a whole.
func english(n int) string { return shuffled(sample("english.txt"), ". ", n) }
func chinese(n int) string { return shuffled(sample("chinese.txt"), "。", n) }

// code is the Go source of this package.
func code(n int) string {
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		panic("the sources are not in the working directory")
	}
	var all strings.Builder
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		all.Write(source)
	}
	return shuffled(all.String(), "\n\n", n)
}

func shuffled(text, separator string, n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	parts := strings.SplitAfter(text, separator)
	var out strings.Builder
	for out.Len() < n {
		out.WriteString(parts[random.IntN(len(parts))])
	}
	return out.String()
}

// awkward are texts that sit on the edges of the patterns' alternatives, and of UTF-8.
var awkward = []string{
	"", " ", "  ", "\n", "\r\n", "\r", "\t", "a", "'", "''", "'s", "'S", "'re", "'RE", "'r", "'l", "'ll", "'LL", "x'", "x'l",
	"I'm he'll WE'VE they'd it's IT'S o'clock d'Artagnan 'tis rock'n'roll", "can't've", "'s's's", "x's'sx", "日本's", "é's", "1's",
	"hello world", "Hello, World!", " hello", "  hello", "   hello   ", "hello\n", "hello \n world", "a \n\n\n b", "a\n  b\n\t c  ",
	"\n\n\n", " \n \n ", "\t\t\tx", "x\t\t\t", "\r\n\r\n x", "\u00a0x", "\u00a0\u00a0x", "\u3000\u3000字", "\u2028x\u2029", "\u0085\u0085a", "\v\f",
	"camelCaseHTTPServerURL", "ABCdefGHI", "aBcDeF", "ABC", "Abc", "aBC", "iPhone15ProMAX", "McDonald's", "USA's", "ǅungla", "ǅǅ", "ʰʰA", "Aʰ", "AʰB", "AʰBc",
	"日本語ABC", "ABC日本語", "A日B本c語D", "ABC日DEF", "日ABC", "日ABCd", "\u0301", "\u0301A", "\u0301ABC", "\u0301ABCd", "\u0301\u0301ABC", "A\u0301BC", "A\u0301", "!\u0301ABC", " \u0301ABC", "e\u0301's",
	"\u0301 ", "\u0301\n", "\u0301\u0301", "\n\u0301A", "1\u0301A", "\u0301'sABC", "!\u0301'stop", "\u0301ABC's",
	"1", "12", "123", "1234", "1234567", "1 234", "12,345.67", "٣٤٥٦٧", "½⅓¼⅕", "1a2b3c", "x1234", "１２３４", "Ⅻ①②③",
	"!", "!!", "!!!a", "!a", " !a", " !!a", "  !!a", "a!b", "a!!b", "//", "/*", "a/b/c", "//\n//\n", "!\n/\n/", "!/\n", "!\r\n\r\nx", "---\n/x", "/\n", "http://x.y/z?a=b&c=d#e",
	"<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "a<|endoftext|>b", "<|im_start|>user\n",
	"\x00", "\x00\x01\x7f", "a\x7fb", "\ufeff", "\ufffd", "\ufffd\ufffdabc", "\u200b\u200d", "\U000e0001\U000e0100", "\U0010ffff", "\ufdd0\uffff",
	"def f(x):\n    return x\n\n\nclass A:\n        pass\n", "{\"a\": [1, 2, {\"b\": null}]}", "for (int i=0;i<n;++i){\r\n\t\tx+=i;\r\n\t}\r\n",
	strings.Repeat("a", 300), strings.Repeat("ab", 200), strings.Repeat("=", 300), strings.Repeat(" ", 300), strings.Repeat("\n", 300),
	strings.Repeat("字", 130), strings.Repeat("हिन्दी", 40), strings.Repeat("-", 127), strings.Repeat("-", 128), strings.Repeat("-", 129), strings.Repeat("Ab", 64), strings.Repeat("Zz9", 99),
}

// broken are texts that are not UTF-8.
var broken = []string{
	"\x80", "\xff", "\xff\xfe", "a\xffb", "\xc3", "\xe4\xbd", "\xe4\xbda", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc0\x80", "\xf8\x88\x80\x80\x80",
	" \xff", "'\xff", "x'\xc5", "x'\xc5s", "\xff's", "日\xe6\x9c", strings.Repeat("\x80", 300), strings.Repeat("\xe4\xbd", 300), strings.Repeat("\xff ", 300),
}

// randomText returns about n characters, each drawn by pick.
func randomText(random *rand.Rand, n int, pick func() rune) string {
	var out strings.Builder
	for range n {
		out.WriteRune(pick())
	}
	return out.String()
}

// anyRune draws any valid code point, each plane's assigned beginning more often than the rest.
func anyRune(random *rand.Rand) rune {
	for {
		r := rune(random.IntN(utf8.MaxRune + 1))
		if random.IntN(4) > 0 {
			r = rune(random.IntN(0x3000))
		}
		if utf8.ValidRune(r) {
			return r
		}
	}
}

// edgeRune draws from few characters of every class, so that all kinds meet.
func edgeRune(random *rand.Rand) rune {
	edges := []rune("aAzZsStTlLdDrReEvVmM''''  \n\r\t/!.1٣½éÉßǅʰªא字あ한\u0301\u0902\u093e\u200d\u00a0\u3000_-\u1c80😀Ⅻ")
	return edges[random.IntN(len(edges))]
}

// long reports whether the tests may take minutes.
func long() bool { return os.Getenv("CONTINUO_LONG") == "1" }

// rounds returns n, or fifty times as many in a long run.
func rounds(t testing.TB, n int) int {
	t.Helper()
	if long() {
		return 50 * n
	}
	return n
}

// lines returns the lines of text that are not empty.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line != "\n" {
			out = append(out, line)
		}
	}
	return out
}
