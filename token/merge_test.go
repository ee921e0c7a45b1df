package token

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// plainMerge is the definition, in quadratic time.
func plainMerge(v *vocab, piece string) []int {
	parts := strings.Split(piece, "")
	if len(parts) != len(piece) { // Split goes by character, the merge by byte
		parts = parts[:0]
		for i := range len(piece) {
			parts = append(parts, piece[i:i+1])
		}
	}
	for {
		lowest, at := uint32(noRank), 0
		for i := range len(parts) - 1 {
			joined := parts[i] + parts[i+1]
			if rank := v.rank(joined, 0, len(joined)); rank < lowest {
				lowest, at = rank, i
			}
		}
		if lowest == noRank {
			break
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
	ids := make([]int, len(parts))
	for i, part := range parts {
		ids[i] = int(v.rank(part, 0, len(part)))
	}
	return ids
}

func TestMergersFollowTheDefinition(t *testing.T) {
	eachEncoding(t, func(t *testing.T, enc *Encoding) {
		random := rand.New(rand.NewPCG(9, 10))
		sources := []string{sample("english.txt"), sample("chinese.txt"), sample("scripts.txt"), strings.Repeat("aaab", 200), strings.Repeat(" ", 600), strings.Repeat("=-", 300)}
		for range rounds(t, 150) {
			source := sources[random.IntN(len(sources))]
			from := random.IntN(len(source) - 401)
			piece := source[from : from+1+random.IntN(400)]
			checkMergers(t, enc.vocab, piece)
			for n := 1; n <= min(len(piece), shortToken); n++ {
				checkShort(t, enc, source, from, from+n)
			}
		}
		for n := shortPiece - 2; n <= shortPiece+2; n++ {
			checkMergers(t, enc.vocab, sample("chinese.txt")[:n])
		}
	})
}

// checkShort checks the count of a piece of a few bytes, within a text and at its end.
func checkShort(t *testing.T, enc *Encoding, text string, i, end int) {
	t.Helper()
	want := len(plainMerge(enc.vocab, text[i:end]))
	for _, text := range []string{text, text[:end]} {
		var m merger
		if got := enc.countPiece(text, i, end, &m); got != want {
			t.Errorf("%q has %d tokens, the definition says %d", text[i:end], got, want)
		}
		if end-i > 2 && want > 1 && enc.vocab.countShort(text, i, end) != want {
			t.Errorf("%q has %d tokens, the definition says %d", text[i:end], enc.vocab.countShort(text, i, end), want)
		}
	}
}

func checkMergers(t *testing.T, v *vocab, piece string) {
	t.Helper()
	want := plainMerge(v, piece)
	var m merger
	if got := m.appendIDs(nil, v, piece, 0, len(piece)); !slices.Equal(got, want) {
		t.Fatalf("merge of %q\n got %v\nwant %v", piece, got, want)
	}
	if got := m.count(v, piece, 0, len(piece)); got != len(want) {
		t.Fatalf("count of %q = %d, want %d", piece, got, len(want))
	}
	h := takeHeapMerger()
	defer h.release()
	if got := h.merge(v, piece, 0, len(piece)); got != len(want) {
		t.Fatalf("heap merge of %q = %d parts, want %d", piece, got, len(want))
	}
}
