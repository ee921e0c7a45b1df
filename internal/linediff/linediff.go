// Package linediff tells in which lines two texts differ.
//
// It finds a shortest way from one text to the other (Myers, "An O(ND) Difference Algorithm and Its Variations", 1986,
// the variant that needs room for one row only). The work is bounded: where two texts have too little in common, what
// lies between the lines that are found equal by then is told as replaced as a whole, which is right, but not shortest.
package linediff

import "strings"

// Op says in which of two texts a line stands.
type Op string

// The places of a line.
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

// Lines compares two texts line by line. The lines of Equal and Left in order are the left text, those of Equal and
// Right the right one; of a stretch that was replaced the left lines come first. Lines end with "\n"; an empty text
// has none.
func Lines(left, right string) []Line {
	c := comparison{left: split(left), right: split(right), work: maxWork}
	c.compare(0, len(c.left), 0, len(c.right))
	return c.lines
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// maxWork bounds how many places a comparison looks at besides the lines themselves: some tens of milliseconds.
const maxWork = 8 << 20

// comparison is the state of one Lines.
type comparison struct {
	left, right []string
	lines       []Line
	work        int // that is left
}

// compare tells of the stretches left[a:b] and right[c:d].
func (c *comparison) compare(a, b, from, to int) {
	for a < b && from < to && c.left[a] == c.right[from] {
		c.tell(Equal, c.left[a:a+1])
		a, from = a+1, from+1
	}
	end := 0
	for a < b-end && from < to-end && c.left[b-end-1] == c.right[to-end-1] {
		end++
	}
	c.between(a, b-end, from, to-end)
	c.tell(Equal, c.left[b-end:b])
}

// between tells of stretches that neither begin nor end with the same line: it cuts them in two where a shortest way
// has its middle.
func (c *comparison) between(a, b, from, to int) {
	if a < b && from < to {
		if x, y, ok := c.middle(c.left[a:b], c.right[from:to]); ok {
			c.compare(a, a+x, from, from+y)
			c.compare(a+x, b, from+y, to)
			return
		}
	}
	c.tell(Left, c.left[a:b])
	c.tell(Right, c.right[from:to])
}

// tell adds lines. Of what was replaced the left lines go before the right ones.
func (c *comparison) tell(op Op, texts []string) {
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

// middle finds a place on a shortest way from the beginning of both to their ends, by going from both sides until the
// ways meet; ok is false where there is none but a corner, or the work has come to its bound.
func (c *comparison) middle(left, right []string) (x, y int, ok bool) {
	n, m := len(left), len(right)
	delta := n - m
	most := (n + m + 1) / 2
	// forward[most+k] is how far a way has come in left on the diagonal k = x-y; backward the same from the ends.
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

// step takes a way on diagonal k one line further, and along all equal lines behind it.
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

// inside reports whether a place lies between the corners: only there does it cut both stretches into smaller ones.
func inside(x, y, n, m int) (int, int, bool) {
	ok := x >= 0 && y >= 0 && x <= n && y <= m && x+y > 0 && x+y < n+m
	return x, y, ok
}
