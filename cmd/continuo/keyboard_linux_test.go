package main

import (
	"bufio"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/continuo-log/continuo/internal/term"
)

// typing is a person at a pseudo terminal, and what they see there.
type typing struct {
	t       *testing.T
	person  *os.File
	program *os.File
	sees    *watched
}

func newTyping(t *testing.T) typing {
	t.Helper()
	person, program := openTerminal(t)
	p := typing{t, person, program, newWatched()}
	var seeing sync.WaitGroup
	seeing.Go(func() { _, _ = io.Copy(p.sees, person) })
	t.Cleanup(func() {
		_ = program.Close()
		_ = person.Close()
		seeing.Wait()
	})
	return p
}

func (p typing) types(text string) {
	p.t.Helper()
	if _, err := p.person.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// A line that a person was typing in the editor when a question was shown has the time before it, whenever it ends.
func TestPendingLineAtAQuestion(t *testing.T) {
	p := newTyping(t)
	keys := term.NewKeyboard(p.program)
	lines := term.NewEditor(p.program, keys, p.program, "> ", nil, func(line string, position int, _ rune) (string, int, bool) { return line, position, false })
	defer lines.Close()
	read := func() <-chan term.Line {
		got := make(chan term.Line, 1)
		go func() { got <- lines.Read() }()
		return got
	}

	got := read()
	p.sees.wait(t, "> ")
	p.types("y")
	p.sees.wait(t, "> y")
	first := lines.Asks()
	p.types("\rn\rand")
	if line := <-got; line.Text != "y" || line.Begun >= first || line.Ended < first {
		t.Errorf("the line that was in progress is %+v, and the question is of %d", line, first)
	}
	if line := <-read(); line.Text != "n" || line.Begun < first {
		t.Errorf("the line behind it is %+v, and the question is of %d", line, first)
	}

	got = read()
	p.sees.wait(t, "and")
	second := lines.Asks()
	p.types(" so on\r")
	if line := <-got; line.Text != "and so on" || line.Begun < first || line.Begun >= second {
		t.Errorf("the line between two questions is %+v, and they are of %d and %d", line, first, second)
	}
}

// A terminal that edits lines itself holds an unfinished one back: that too was started before the question, and a reader
// that waits meanwhile is not in the way.
func TestLineHeldBackAtAQuestion(t *testing.T) {
	p := newTyping(t)
	keys := term.NewKeyboard(p.program)
	in := bufio.NewReader(keys)
	type line struct {
		text         string
		begun, ended int
	}
	got := make(chan line)
	go func() {
		defer close(got)
		for {
			keys.NextLine()
			text, err := in.ReadString('\n')
			if err != nil {
				return
			}
			begun, ended := keys.Times()
			got <- line{text, begun, ended}
		}
	}()
	p.types("whole\rhe")
	p.sees.wait(t, "whole\r\nhe")
	since := keys.Mark()
	p.types("y\ry\r")
	for _, want := range []line{{"whole\n", since - 1, since - 1}, {"hey\n", since - 1, since}, {"y\n", since, since}} {
		if line := <-got; line != want {
			t.Errorf("read %+v, want %+v", line, want)
		}
	}
	p.types("\x04") // the terminal edits lines as before: this ends the input
	if line, more := <-got; more {
		t.Errorf("read %+v behind the end", line)
	}
}
