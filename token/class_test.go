package token

import (
	"testing"
	"unicode"
)

func TestClassesAreAPartition(t *testing.T) {
	for r, c := range classes() {
		n := 0
		for _, kind := range []class{letter, number, space, symbol} {
			if c&kind != 0 {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%U is in %d of letter, number, space and symbol, want 1", r, n)
		}
		if c&letter != 0 && c&bothRuns == 0 {
			t.Fatalf("letter %U is in no run", r)
		}
	}
}

// Characters that Go's tables have had since Unicode 15.0 keep their class there; where tables differ, the
// reference decides (see TestReference).
func TestClassesFollowUnicode(t *testing.T) {
	listed := []*unicode.RangeTable{addedUpper, addedLower, addedLetter, addedMark, addedNumber, later}
	for i, c := range classes() {
		r := rune(i)
		if unicode.In(r, listed...) {
			continue
		}
		want := symbol
		switch {
		case unicode.IsLetter(r):
			want = letter
		case unicode.IsNumber(r):
			want = number
		case unicode.IsSpace(r):
			want = space
		}
		if c&want == 0 {
			t.Errorf("%U has class %b, want %b", r, c, want)
		}
		if unicode.IsMark(r) != (c&symbol != 0 && c&bothRuns == bothRuns) {
			t.Errorf("%U has class %b, mark is %v", r, c, unicode.IsMark(r))
		}
		if isNewline := r == '\r' || r == '\n'; isNewline != (c&newline != 0) {
			t.Errorf("%U has class %b", r, c)
		}
	}
}
