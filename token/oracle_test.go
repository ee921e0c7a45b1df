package token

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
	"github.com/tiktoken-go/tokenizer/codec"
)

// The oracle is tiktoken-go/tokenizer v0.7.0, which runs the published patterns through a regexp engine. Later
// versions up to v0.10.0 are wrong about U+007F and form feeds.
var oracles = map[string]func() tokenizer.Codec{
	"o200k_base":  sync.OnceValue(func() tokenizer.Codec { return codec.NewO200kBase() }),
	"cl100k_base": sync.OnceValue(func() tokenizer.Codec { return codec.NewCl100kBase() }),
}

func oracleIDs(t testing.TB, enc *Encoding, text string) []int {
	t.Helper()
	ids, _, err := oracles[enc.Name()]().Encode(text)
	if err != nil {
		t.Fatalf("oracle on %q: %v", clip(text), err)
	}
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

func oracleCount(t testing.TB, enc *Encoding, text string) int {
	t.Helper()
	n, err := oracles[enc.Name()]().Count(text)
	if err != nil {
		t.Fatalf("oracle on %q: %v", clip(text), err)
	}
	return n
}

// oracleKnows reports whether the oracle agrees with the reference about every character of text. It does not
// know the characters of Unicode 15.1 and 16 such as U+1C89, does not fold the long s, and reads invalid UTF-8
// as U+FFFD.
func oracleKnows(text string) bool {
	added := []*unicode.RangeTable{addedUpper, addedLower, addedLetter, addedMark, addedNumber}
	return utf8.ValidString(text) && !strings.Contains(text, "'ſ") &&
		!strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, added...) })
}

// checkOracle compares the ids of one text, which must be one the oracle knows.
func checkOracle(t testing.TB, enc *Encoding, text string) {
	t.Helper()
	got, want := enc.Encode(text), oracleIDs(t, enc, text)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: Encode(%q)\n got %v\nwant %v", enc.Name(), clip(text), got, want)
	}
}

// checkLaws holds for every text: the ids give the bytes back, and the counts agree with the ids.
func checkLaws(t testing.TB, enc *Encoding, text string) {
	t.Helper()
	ids := enc.Encode(text)
	if got := string(enc.Decode(ids)); got != text {
		t.Fatalf("%s: Decode(Encode(%q)) = %q", enc.Name(), clip(text), clip(got))
	}
	for range 2 { // the second count comes from the cache
		if got := enc.Count(text); got != len(ids) {
			t.Fatalf("%s: Count(%q) = %d, Encode gives %d", enc.Name(), clip(text), got, len(ids))
		}
	}
	if got := enc.CountBytes([]byte(text)); got != len(ids) {
		t.Fatalf("%s: CountBytes(%q) = %d, Encode gives %d", enc.Name(), clip(text), got, len(ids))
	}
}

func clip(text string) string {
	if len(text) > 400 {
		return text[:400] + "…"
	}
	return text
}
