package linediff

import (
	"fmt"
	"strings"
	"testing"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"
)

// sides puts the two texts together again.
func sides(lines []Line) (left, right []string, changed int) {
	for _, line := range lines {
		if line.Op != Right {
			left = append(left, line.Text)
		}
		if line.Op != Left {
			right = append(right, line.Text)
		}
		if line.Op != Equal {
			changed++
		}
	}
	return left, right, changed
}

// shortest is how many lines differ at least, by the whole table.
func shortest(left, right []string) int {
	row := make([]int, len(right)+1)
	for j := range row {
		row[j] = j
	}
	for i, l := range left {
		before := row[0]
		row[0] = i + 1
		for j, r := range right {
			was := row[j+1]
			if l == r {
				row[j+1] = before
			} else {
				row[j+1] = 1 + min(row[j], row[j+1])
			}
			before = was
		}
	}
	return row[len(right)]
}

func TestLinesAreBothTextsAndTheFewestDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"", "a", "b", "c", "é", "\r"})
		left := strings.Join(rapid.SliceOfN(line, 0, 25).Draw(t, "left"), "\n")
		right := strings.Join(rapid.SliceOfN(line, 0, 25).Draw(t, "right"), "\n")
		lines := Lines(left, right)
		gotLeft, gotRight, changed := sides(lines)
		if strings.Join(gotLeft, "\n") != left || strings.Join(gotRight, "\n") != right {
			t.Fatalf("%q and %q give %v", left, right, lines)
		}
		if want := shortest(split(left), split(right)); changed != want {
			t.Fatalf("%q and %q differ in %d lines, %d are told: %v", left, right, want, changed, lines)
		}
		for i := 1; i < len(lines); i++ {
			if lines[i-1].Op == Right && lines[i].Op == Left {
				t.Fatalf("a right line stands before a left one of the same stretch: %v", lines)
			}
		}
	})
}

func TestLines(t *testing.T) {
	for _, test := range []struct{ left, right, want string }{
		{"", "", ""},
		{"", "a", "right a"},
		{"a", "", "left a"},
		{"a\n", "a", "equal a|left "},
		{"a\nb\nc", "a\nx\nc", "equal a|left b|right x|equal c"},
		{"a\nb\nc", "b\nc\nd", "left a|equal b|equal c|right d"},
		{"a\nb", "c\nd", "left a|left b|right c|right d"},
	} {
		var lines []string
		for _, line := range Lines(test.left, test.right) {
			lines = append(lines, string(line.Op)+" "+line.Text)
		}
		if got := strings.Join(lines, "|"); got != test.want {
			t.Errorf("%q and %q: %s, want %s", test.left, test.right, got, test.want)
		}
	}
}

// Two texts without a line in common cost the most: the comparison gives up, and still tells both.
func TestTheWorkIsBounded(t *testing.T) {
	const many = 50_000
	var left, right strings.Builder
	for i := range many {
		fmt.Fprintf(&left, "left %d\n", i)
		fmt.Fprintf(&right, "right %d\n", i)
	}
	shared := "the same\n"
	c := comparison{left: split(shared + left.String()), right: split(shared + right.String()), work: MaxWork}
	c.compare(0, len(c.left), 0, len(c.right))
	if c.work < -4*many {
		t.Errorf("%d more places than the bound were looked at", -c.work)
	}
	gotLeft, gotRight, changed := sides(c.lines)
	if strings.Join(gotLeft, "\n") != shared+left.String() || strings.Join(gotRight, "\n") != shared+right.String() || changed != 2*many {
		t.Errorf("%d and %d lines, %d of them changed", len(gotLeft), len(gotRight), changed)
	}
	if c.lines[0].Op != Equal {
		t.Error("the first line, which is the same, is told as changed")
	}
}

func TestWords(t *testing.T) {
	for _, test := range []struct{ left, right, want string }{
		{"", "", ""},
		{"the old word", "the new word", "equal:the |left:old|right:new|equal: word"},
		{"a(b)", "a(b, c)", "equal:a(b|right:, c|equal:)"},
		{"déjà vu", "déjà\n vu", "equal:déjà|left: |right:\n |equal:vu"},
		{"", "x y", "right:x y"},
	} {
		work := MaxWork
		var got []string
		for _, line := range Words(test.left, test.right, &work) {
			got = append(got, string(line.Op)+":"+line.Text)
		}
		if joined := strings.Join(got, "|"); joined != test.want {
			t.Errorf("%q and %q: %s, want %s", test.left, test.right, joined, test.want)
		}
	}
}

func TestWordsAreBothTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left, right := rapid.String().Draw(t, "left"), rapid.String().Draw(t, "right")
		work := rapid.SampledFrom([]int{0, 10, MaxWork}).Draw(t, "work")
		var gotLeft, gotRight string
		for _, line := range Words(left, right, &work) {
			if line.Op != Right {
				gotLeft += line.Text
			}
			if line.Op != Left {
				gotRight += line.Text
			}
		}
		if gotLeft != left || gotRight != right || work < 0 {
			t.Fatalf("%q and %q became %q and %q, work %d", left, right, gotLeft, gotRight, work)
		}
	})
}
