package token

import (
	"strings"
	"testing"
)

// hostile are units whose repetition makes long pieces, long runs that end in nothing, or alternatives that are
// tried in vain.
var hostile = []string{
	"a", "A", "z", " ", "\n", "\r", "\t", "'", "1", "٣", "!", "/", "=", "字", "あ", "ʰ", "\u0301", "😀", "\xff", "\xe4\xbd",
	"aB", "Ab", "ab", "A字", "字A", "A\u0301", "\u0301A", "ʰA", "AAAAAAA\u0301", "\u0301AAAAAAA", " \n", "\n ", "\t ", " a", " A", " '", "'s", "'l", "a'", "A'",
	"!\n", "/\n", "\n/", "!A", " \u0301", "\u0301 ", "\u3000", "\u00a0A", "1a", "<|endoftext|>", "ſ'", "abcdefghij", "的是不", "ा", "क्",
}

// TestGrowth counts steps instead of time: four times the text may cost little more than four times the work
// (4.8 times for n log n at this size), where a quadratic path would cost sixteen times.
func TestGrowth(t *testing.T) {
	small := 1 << 10
	if long() {
		small = 256 << 10
	}
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		for _, unit := range hostile {
			for _, shape := range []struct{ before, after string }{{}, {after: "x"}, {before: "A"}, {before: "\u0301", after: "\u0301"}} {
				text := func(size int) string {
					return shape.before + strings.Repeat(unit, size/len(unit)) + shape.after
				}
				few, many := workOf(enc, text(small)), workOf(enc, text(4*small))
				if many.scan > 5*few.scan || many.merge > 6*few.merge+100 {
					t.Errorf("%q repeated between %q: %+v steps for %d bytes, %+v for %d", unit, shape, few, small, many, 4*small)
				}
				if limit := 4 * len(text(4*small)); many.scan > limit {
					t.Errorf("%q repeated between %q: %d bytes looked at, want at most %d", unit, shape, many.scan, limit)
				}
			}
		}
	})
}

type work struct{ scan, merge int }

// workOf does what Count does, without the cache.
func workOf(enc *Encoding, text string) work {
	s := enc.scanner(text)
	var m merger
	for i := 0; i < len(text); {
		end := s.next(i)
		if enc.vocab.rank(text, i, end) == noRank {
			m.count(enc.vocab, text, i, end)
		}
		i = end
	}
	return work{scan: s.steps, merge: m.steps}
}
