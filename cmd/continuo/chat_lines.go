package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/chatscreen"
	"github.com/continuo-log/continuo/internal/term"
)

// lineReader returns the messages of a person or a script, one at a time; io.EOF at the end.
type lineReader interface {
	Read() term.Line
	// Asks says that a question has just been shown, and returns the least time of a line that answers it.
	Asks() int
	// Prompt sets the prompt of the next line, where a person types it.
	Prompt(text string)
	// Close restores the terminal. It may be called while Read waits, which then never returns.
	Close()
}

// completer lists what can follow in a line that ends at the cursor.
type completer func(ctx context.Context, line string) []chatscreen.Completion

// newLines chooses how to read: with line editing and completion from a terminal, plainly from a pipe.
func (t *chatSession) newLines(ctx context.Context, complete completer) lineReader {
	file, isFile := t.in.(*os.File)
	if t.plain || !isFile {
		scanner := bufio.NewScanner(t.in)
		scanner.Buffer(nil, maxLine)
		return pipeLines{scanner}
	}
	screen := t.out
	if plain, ok := screen.(*term.RawLines); ok {
		screen = plain.Out // the editor ends its lines itself
	}
	t.out = &term.RawLines{Out: screen, Raw: func() bool { return t.pendingLine != nil }}
	if t.keys == nil {
		t.keys = term.NewKeyboard(file)
	}
	return term.NewEditor(file, t.keys, screen, t.prompt(), t.inputHistory(ctx), completeLine(ctx, complete))
}

// inputHistory returns earlier messages of one line, oldest first, for the arrow keys.
func (t *chatSession) inputHistory(ctx context.Context) []string {
	past, _ := t.pastMessages(ctx, t.conversation) // on an error the arrow keys have less history, nothing else
	slices.Reverse(past)
	return slices.DeleteFunc(past, func(text string) bool { return strings.Contains(text, "\n") })
}

// pipeLines reads one message per line.
type pipeLines struct{ scanner *bufio.Scanner }

func (p pipeLines) Read() term.Line {
	if p.scanner.Scan() {
		return term.Line{Text: p.scanner.Text()}
	}
	err := p.scanner.Err()
	switch {
	case err == nil:
		return term.Line{Err: io.EOF}
	case errors.Is(err, bufio.ErrTooLong):
		return term.Line{Err: usage("a line on standard input is longer than %s", term.Size(maxLine))}
	}
	return term.Line{Err: fmt.Errorf("read standard input: %w", err)}
}

func (pipeLines) Asks() int     { return 0 } // a script is asked nothing
func (pipeLines) Prompt(string) {}
func (pipeLines) Close()        {}

// completeLine completes the line when Tab is pressed: as far as all completions agree.
func completeLine(ctx context.Context, complete completer) func(line string, position int, key rune) (string, int, bool) {
	return func(line string, position int, key rune) (string, int, bool) {
		if key != '\t' || position != len(line) || !chatscreen.Completes(line) {
			return "", 0, false
		}
		if text := chatscreen.Common(complete(ctx, line)); len(text) > len(line) {
			line = text
		}
		return line, len(line), true
	}
}
