package child

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for name, c := range map[string]struct {
		text  string
		limit int
		want  []string // "!" for a line that is too long
	}{
		"ends":               {"a\nb\r\n\nc", 1, []string{"a\n", "b\r\n", "\n", "c"}},
		"one byte too much":  {"abc\nabcd\nab\n", 3, []string{"abc\n", "!", "ab\n"}},
		"at the end":         {"a\nabcd", 3, []string{"a\n", "!"}},
		"longer than memory": {long + "\na\n" + long, 100, []string{"!", "a\n", "!"}},
		"within the limit":   {long + "\r\na\n", len(long), []string{long + "\r\n", "a\n"}},
		"nothing":            {"", 1, nil},
	} {
		for _, in := range []io.Reader{strings.NewReader(c.text), iotest.HalfReader(strings.NewReader(c.text))} {
			if got := allLines(NewLines(in, c.limit)); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %.200q, want %.200q", name, got, c.want)
			}
		}
	}
}

func allLines(lines *Lines) (all []string) {
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, ErrLongLine):
			all = append(all, "!")
			continue
		case len(line) > 0:
			all = append(all, string(line))
		}
		if err != nil {
			return all
		}
	}
}

// A line without end is refused before it is read.
func TestALineWithoutEnd(t *testing.T) {
	read := 0
	lines := NewLines(readerFunc(func(into []byte) (int, error) { read += len(into); return len(into), nil }), 1<<20)
	if _, err := lines.Next(); !errors.Is(err, ErrLongLine) || read > 2<<20 {
		t.Errorf("%v after %d bytes", err, read)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(into []byte) (int, error) { return f(into) }
