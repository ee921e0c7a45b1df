// Package linediff finds the lines in which two texts differ.
//
// It computes a shortest edit script (Myers, "An O(ND) Difference Algorithm and Its Variations", 1986, the variant in
// linear space). The work is bounded: when two texts have too little in common, each stretch between the equal lines
// found so far is reported as replaced. The result is then correct, but not the shortest.
package linediff

import (
	"strings"
	"unicode"
)

// Op says which of two texts contain a line.
type Op string

// The values of Op.
const (
	Equal Op = "equal" // in both
	Left  Op = "left"
	Right Op = "right"
)

// Line is a line of one text or of both.
type Line struct {
	Op   Op     `json:"op"`
	Text string `json:"text"` // without its line end
}

// Tokens compares two texts that were divided into tokens, as [Lines] compares lines. Work is reduced by how many positions
// were visited, so that several calls can share one bound; see [MaxWork].
func Tokens(left, right []string, work *int) []Line {
	c := comparison{left: left, right: right, work: *work}
	c.compare(0, len(left), 0, len(right))
	*work = max(0, c.work)
	return c.lines
}

// Words compares two texts word by word: a word, a stretch of white space or any other character is a token. Neighbours with
// the same Op are one Line, whose Text may have line ends.
func Words(left, right string, work *int) []Line {
	var joined []Line
	var text strings.Builder
	lines := Tokens(words(left), words(right), work)
	for i, line := range lines {
		text.WriteString(line.Text)
		if i+1 == len(lines) || lines[i+1].Op != line.Op {
			joined = append(joined, Line{line.Op, text.String()})
			text.Reset()
		}
	}
	return joined
}

// words divides a text into words, stretches of white space and single other characters.
func words(text string) (tokens []string) {
	class := func(r rune) int {
		switch {
		case unicode.IsSpace(r):
			return 1
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r), r == '_':
			return 2
		}
		return 0
	}
	begun, before := 0, 0
	for i, r := range text {
		now := class(r)
		if i > 0 && (now != before || now == 0) {
			tokens, begun = append(tokens, text[begun:i]), i
		}
		before = now
	}
	if begun < len(text) {
		tokens = append(tokens, text[begun:])
	}
	return tokens
}

// Lines compares two texts line by line. The lines of Equal and Left in order are the left text, those of Equal and
// Right the right one; of a replaced stretch the left lines come first. Lines end with "\n"; an empty text has none.
func Lines(left, right string) []Line {
	c := comparison{left: split(left), right: split(right), work: MaxWork}
	c.compare(0, len(c.left), 0, len(c.right))
	return c.lines
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// MaxWork bounds how many positions a comparison visits besides the lines themselves: some tens of milliseconds.
const MaxWork = 8 << 20

// comparison is the state of one call of Lines.
type comparison struct {
	left, right []string
	lines       []Line
	work        int // remaining
}

// compare compares the stretches left[a:b] and right[from:to].
func (c *comparison) compare(a, b, from, to int) {
	for a < b && from < to && c.left[a] == c.right[from] {
		c.add(Equal, c.left[a:a+1])
		a, from = a+1, from+1
	}
	end := 0
	for a < b-end && from < to-end && c.left[b-end-1] == c.right[to-end-1] {
		end++
	}
	c.between(a, b-end, from, to-end)
	c.add(Equal, c.left[b-end:b])
}

// between compares stretches that neither begin nor end with the same line: it splits them at the middle of a shortest
// edit script.
func (c *comparison) between(a, b, from, to int) {
	if a < b && from < to {
		if x, y, ok := c.middle(c.left[a:b], c.right[from:to]); ok {
			c.compare(a, a+x, from, from+y)
			c.compare(a+x, b, from+y, to)
			return
		}
	}
	c.add(Left, c.left[a:b])
	c.add(Right, c.right[from:to])
}

// add appends lines to the result. Of a replaced stretch the left lines come before the right ones.
func (c *comparison) add(op Op, texts []string) {
	for _, text := range texts {
		c.lines = append(c.lines, Line{op, text})
	}
	if op != Left || len(texts) == 0 {
		return
	}
	at := len(c.lines) - len(texts)
	first := at
	for first > 0 && c.lines[first-1].Op == Right {
		first--
	}
	if first < at {
		moved := append([]Line{}, c.lines[first:at]...)
		copy(c.lines[first:], c.lines[at:])
		copy(c.lines[first+len(texts):], moved)
	}
}

// middle finds a position on a shortest edit path from the beginning of both texts to their ends, by searching from
// both sides until the paths meet; ok is false if there is none except a corner, or the work has reached its bound.
func (c *comparison) middle(left, right []string) (x, y int, ok bool) {
	n, m := len(left), len(right)
	delta := n - m
	most := (n + m + 1) / 2
	// forward[most+k] is how far a path has got in left on the diagonal k = x-y; backward is the same from the ends.
	forward, backward := make([]int, 2*most+2), make([]int, 2*most+2)
	for d := 0; d <= most; d++ {
		if c.work -= 2 * (d + 1); c.work < 0 {
			return 0, 0, false
		}
		for k := -d; k <= d; k += 2 {
			x := c.step(forward, most, k, d, func(x, y int) bool { return x < n && y < m && left[x] == right[y] })
			if other := delta - k; delta%2 != 0 && other > -d && other < d && x+backward[most+other] >= n {
				return inside(x, x-k, n, m)
			}
		}
		for k := -d; k <= d; k += 2 {
			x := c.step(backward, most, k, d, func(x, y int) bool { return x < n && y < m && left[n-x-1] == right[m-y-1] })
			if other := delta - k; delta%2 == 0 && other >= -d && other <= d && x+forward[most+other] >= n {
				return inside(n-x, m-(x-k), n, m)
			}
		}
	}
	return 0, 0, false
}

// step extends a path on diagonal k by one line, and along all equal lines after it.
func (c *comparison) step(reached []int, zero, k, d int, same func(x, y int) bool) int {
	x := 0
	switch {
	case d == 0:
	case k == -d, k != d && reached[zero+k-1] < reached[zero+k+1]:
		x = reached[zero+k+1]
	default:
		x = reached[zero+k-1] + 1
	}
	begun := x
	for same(x, x-k) {
		x++
	}
	c.work -= x - begun
	reached[zero+k] = x
	return x
}

// inside reports whether a position lies between the corners: only such a position splits both stretches into smaller
// ones.
func inside(x, y, n, m int) (int, int, bool) {
	ok := x >= 0 && y >= 0 && x <= n && y <= m && x+y > 0 && x+y < n+m
	return x, y, ok
}
