package token

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

var encodings = map[string]func() *Encoding{"o200k_base": O200k, "cl100k_base": CL100k}

// eachEncoding runs a test for both.
func eachEncoding(t *testing.T, test func(*testing.T, *Encoding)) {
	for name, get := range encodings {
		t.Run(name, func(t *testing.T) { test(t, get()) })
	}
}

func TestName(t *testing.T) {
	for want, get := range encodings {
		if got := get().Name(); got != want {
			t.Errorf("Name() = %q, want %q", got, want)
		}
		if first, again := get(), get(); first != again {
			t.Errorf("%s is unpacked twice", want)
		}
	}
}

func TestAgainstOracle(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		random := rand.New(rand.NewPCG(3, 4))
		check := func(name string, text func() string, n int) {
			t.Run(name, func(t *testing.T) {
				for range rounds(t, n) {
					if text := text(); oracleKnows(text) {
						checkOracle(t, enc, text)
						checkLaws(t, enc, text)
					}
				}
			})
		}
		all := append(append(lines(sample("english.txt")), lines(sample("chinese.txt"))...), lines(sample("scripts.txt"))...)
		next := 0
		check("awkward", func() string { next++; return awkward[next%len(awkward)] }, len(awkward))
		check("samples", func() string { next++; return all[next%len(all)] }, len(all))
		check("code", func() string { return code(4000) }, 1)
		check("mixed scripts", func() string { return mixedScripts(random, all) }, 300)
		check("random", func() string { return randomText(random, 1+random.IntN(30), func() rune { return anyRune(random) }) }, 500)
		check("edges", func() string { return randomText(random, 1+random.IntN(12), func() rune { return edgeRune(random) }) }, 2000)
	})
}

// mixedScripts joins pieces of the lines, cut anywhere between characters.
func mixedScripts(random *rand.Rand, lines []string) string {
	var out strings.Builder
	for range 1 + random.IntN(6) {
		line := []rune(lines[random.IntN(len(lines))])
		from := random.IntN(len(line))
		out.WriteString(string(line[from:min(len(line), from+1+random.IntN(8))]))
	}
	return out.String()
}

func TestBrokenUTF8(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		for _, text := range broken {
			checkLaws(t, enc, text)
		}
		random := rand.New(rand.NewPCG(5, 6))
		for range rounds(t, 2000) {
			text := make([]byte, random.IntN(40))
			for i := range text {
				text[i] = byte(random.Uint32())
			}
			checkLaws(t, enc, string(text))
		}
	})
}

// The ids seldom show where a text was cut, for few tokens reach over a cut; so the cuts are tested themselves.
func TestPieces(t *testing.T) {
	tests := []struct{ text, o200k, cl100k string }{
		{"I'm here, he'll SAY", "I'm| here|,| he'll| SAY", "I|'m| here|,| he|'ll| SAY"},
		{"camelCaseHTTPServer", "camel|Case|HTTPServer", "camelCaseHTTPServer"},
		{"日ABC字d", "日ABC字d", "日ABC字d"},
		{"ABC日's", "ABC日's", "ABC日|'s"},
		{"日ABC's x", "日|ABC's| x", "日ABC|'s| x"},
		{"!\u0301ABC", "!\u0301|ABC", "!\u0301|ABC"},
		{"\u0301ABC", "\u0301|ABC", "\u0301ABC"},
		{"\u0301ABCd", "\u0301ABCd", "\u0301ABCd"},
		{"a  b\n\n  c \t", "a| | b|\n\n| | c| \t", "a| | b|\n\n| | c| \t"},
		{"x=1234567;//\n/\n y", "x|=|123|456|7|;//\n/\n| y", "x|=|123|456|7|;//\n|/\n| y"},
		{" ?!\r\n\ta", " ?!\r\n|\ta", " ?!\r\n|\ta"},
		{"\xff\xfe日\xe6\x9c", "\xff\xfe|日|\xe6\x9c", "\xff\xfe|日|\xe6\x9c"},
	}
	for _, test := range tests {
		for enc, want := range map[*Encoding]string{O200k(): test.o200k, CL100k(): test.cl100k} {
			if got := strings.Join(pieces(enc, test.text), "|"); got != want {
				t.Errorf("%s: pieces of %q are %q, want %q", enc.Name(), test.text, got, want)
			}
		}
	}
}

// A byte that is not UTF-8 splits the text as U+FFFD does.
func TestBrokenUTF8SplitsAsReplacement(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		random := rand.New(rand.NewPCG(7, 8))
		for range rounds(t, 2000) {
			whole := randomText(random, 1+random.IntN(10), func() rune {
				if random.IntN(3) == 0 {
					return '\ufffd'
				}
				return edgeRune(random)
			})
			damaged := strings.ReplaceAll(whole, "\ufffd", "\xff")
			want := strings.ReplaceAll(strings.Join(pieces(enc, whole), "|"), "\ufffd", "\xff")
			if got := strings.Join(pieces(enc, damaged), "|"); got != want {
				t.Fatalf("pieces of %q are %q, want %q", damaged, got, want)
			}
		}
	})
}

func pieces(enc *Encoding, text string) []string {
	var out []string
	s := enc.scanner(text)
	for i := 0; i < len(text); {
		end := s.next(i)
		out = append(out, text[i:end])
		i = end
	}
	return out
}

func TestSpecialTokensAreText(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		for _, special := range []string{"<|endoftext|>", "<|endofprompt|>", "<|im_start|>"} {
			if n := enc.Count(special); n < 3 {
				t.Errorf("Count(%q) = %d, want that of ordinary text", special, n)
			}
		}
	})
}

func TestDecodeLeavesOutUnknownIDs(t *testing.T) {
	ids := append([]int{-1, 199999, 1 << 30}, O200k().Encode("log")...)
	if got := string(O200k().Decode(append(ids, 200018))); got != "log" {
		t.Errorf("Decode = %q, want %q", got, "log")
	}
	if got := O200k().Decode(nil); len(got) != 0 {
		t.Errorf("Decode(nil) = %q, want nothing", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		texts := append(lines(sample("scripts.txt")), strings.Repeat("ab", 500))
		want := make([]int, len(texts))
		for i, text := range texts {
			want[i] = len(enc.Encode(text))
		}
		var done sync.WaitGroup
		for range 8 {
			done.Go(func() {
				for range 5 {
					for i, text := range texts {
						if got := enc.Count(text); got != want[i] {
							t.Errorf("Count(%q) = %d, want %d", text, got, want[i])
						}
					}
				}
			})
		}
		done.Wait()
	})
}

func TestCountAllocatesNothing(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		for _, text := range []string{english(4000), chinese(4000), code(4000), sample("scripts.txt")} {
			if n := testing.AllocsPerRun(5, func() { enc.Count(text) }); n != 0 {
				t.Errorf("Count(%q) allocates %v times, want 0", clip(text), n)
			}
			bytes := []byte(text)
			if n := testing.AllocsPerRun(5, func() { enc.CountBytes(bytes) }); n != 0 {
				t.Errorf("CountBytes(%q) allocates %v times, want 0", clip(text), n)
			}
		}
	})
}

func TestASCIILettersAreCounted(t *testing.T) {
	for b := range 256 {
		for n := range 20 {
			for _, fold := range []byte{0, 0x20} {
				letters := strings.Repeat("azm", 7)[:n]
				text := letters + string([]byte{byte(b)}) + "zzzzzzzz"
				want, folded := n, byte(b)|fold
				if 'a' <= folded && folded <= 'z' {
					want = len(text)
				}
				if got := asciiLetters(text, fold); got != want {
					t.Fatalf("%q begins with %d letters, not %d", text, want, got)
				}
			}
		}
	}
}
