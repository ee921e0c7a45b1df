package token

import (
	"strings"
	"testing"
)

func TestVocabulary(t *testing.T) {
	sizes := map[string]int{"o200k_base": 199998, "cl100k_base": 100256}
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		v := enc.vocab
		if v.size() != sizes[enc.Name()] {
			t.Fatalf("%d tokens, want %d", v.size(), sizes[enc.Name()])
		}
		for rank := range uint32(v.size()) {
			token := v.token(rank)
			if got := v.rank(token, 0, len(token)); got != rank {
				t.Fatalf("token %q has rank %d, want %d", token, got, rank)
			}
			// Once more inside a text, where it is read eight bytes at a time.
			if got := v.rank("<"+token+"> and more", 1, 1+len(token)); got != rank {
				t.Fatalf("token %q inside a text has rank %d, want %d", token, got, rank)
			}
		}
		for b := range 256 {
			if v.rank(string([]byte{byte(b)}), 0, 1) == noRank {
				t.Errorf("byte %#x is no token", b)
			}
		}
		for _, text := range []string{"qzx", "\x00\x00\x00\x00\x00\x00\x00", "not a token", strings.Repeat("n", 500)} {
			if got := v.rank(text, 0, len(text)); got != noRank {
				t.Errorf("%q has rank %d, want none", text, got)
			}
		}
	})
}

func TestUnpackRefusesBrokenData(t *testing.T) {
	for _, packed := range []string{"", "no gzip", cl100kPacked[:1000], cl100kPacked[:len(cl100kPacked)-9]} {
		if _, _, err := unpack(packed); err == nil {
			t.Errorf("unpack of %d bytes gives no error", len(packed))
		}
	}
}
