package term

import (
	"fmt"
	"strings"
	"testing"
)

// becomes narrower.
type fakeTerminal struct {
	width  int
	lines  [][]rune // logical lines; the last one is where text may still go
	line   int      // of the cursor
	writes int
}

func (s *fakeTerminal) Write(text []byte) (int, error) {
	s.writes++
	rest := string(text)
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, "\x1b["):
			rest = s.sequence(rest[2:])
		case rest[0] == '\r':
			rest = rest[1:]
		case rest[0] == '\n':
			s.line++
			s.grow()
			rest = rest[1:]
		default:
			end := strings.IndexAny(rest, "\x1b\r\n")
			if end < 0 {
				end = len(rest)
			}
			s.grow()
			s.lines[s.line] = []rune(rest[:end]) // a Screen writes whole lines from their beginning
			rest = rest[end:]
		}
	}
	return len(text), nil
}

func (s *fakeTerminal) grow() {
	for len(s.lines) <= s.line {
		s.lines = append(s.lines, nil)
	}
}

func (s *fakeTerminal) sequence(rest string) string {
	var n int
	switch end := strings.IndexAny(rest, "AJKhl"); rest[end] {
	case 'A':
		_, _ = fmt.Sscanf(rest, "%dA", &n)
		for n > 0 && s.line > 0 { // rows are counted, not lines
			s.line--
			n -= max(1, (len(s.lines[s.line])+s.width-1)/s.width)
		}
		return rest[end+1:]
	case 'J':
		s.lines = s.lines[:min(s.line, len(s.lines))]
		return rest[end+1:]
	default:
		return rest[end+1:]
	}
}

func (s *fakeTerminal) String() string {
	var lines []string
	for _, line := range s.lines {
		lines = append(lines, string(line))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// TestScreen shows pictures over one another: each is where the one before was, what stands above is
// left alone, the same picture is not written again, and a terminal that becomes narrower is repainted in place.
func TestScreen(t *testing.T) {
	terminal := &fakeTerminal{width: 40, lines: [][]rune{[]rune("before")}, line: 1}
	p := Screen{Out: terminal}
	picture := func(lines ...string) []string { return lines }
	expect := func(want ...string) {
		t.Helper()
		if got := terminal.String(); got != strings.Join(want, "\n") {
			t.Fatalf("the screen shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	}
	p.Show(picture("one", strings.Repeat("x", 30), "three"), 40)
	expect("before", "one", strings.Repeat("x", 30), "three")
	p.Show(picture("one", "two"), 40)
	expect("before", "one", "two")
	writes := terminal.writes
	p.Show(picture("one", "two"), 40)
	if terminal.writes != writes {
		t.Error("an unchanged picture was written again")
	}
	p.Show(picture("one", strings.Repeat("y", 30)), 40)
	terminal.width = 12
	p.Show(picture("narrow", "er"), 12)
	expect("before", "narrow", "er")
	_, _ = fmt.Fprint(terminal, "ok? \n› y\n")
	p.Wrote(4, 3)
	p.Show(picture("decided"), 12)
	expect("before", "decided")
	p.Keep()
	p.Show(picture("another"), 12)
	expect("before", "decided", "another")
}
