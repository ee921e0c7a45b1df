package nearest

import (
	"strings"
	"testing"
)

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"abc", "abc", 0},
		{"Abc", "aBC", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"max_mesages", "max_messages", 1},
		{"listne", "listen", 1},
		{"kitten", "sitting", 3},
		{"größe", "grösse", 2},
		{"ca", "abc", 3}, // one swap and no edit of what was swapped
		{strings.Repeat("a", 101), "a", maxSuggest},
	} {
		if got := editDistance(c.a, c.b, maxSuggest); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestEditDistanceLaws(t *testing.T) {
	words := []string{""}
	for start, length := 0, 0; length < 4; length++ { // every word of up to 4 letters of two
		end := len(words)
		for _, word := range words[start:end] {
			words = append(words, word+"a", word+"b")
		}
		start = end
	}
	for _, a := range words {
		for _, b := range words {
			distance := editDistance(a, b, maxSuggest)
			if back := editDistance(b, a, maxSuggest); back != distance {
				t.Errorf("%q to %q: %d there and %d back", a, b, distance, back)
			}
			if (distance == 0) != (a == b) || distance > max(len(a), len(b)) || distance < max(len(a)-len(b), len(b)-len(a)) {
				t.Errorf("%q to %q: %d", a, b, distance)
			}
			for bound := range 6 {
				if bounded := editDistance(a, b, bound); bounded != distance && (bounded < bound || distance < bound) {
					t.Errorf("%q to %q: %d, and %d within %d", a, b, distance, bounded, bound)
				}
			}
		}
	}
}
