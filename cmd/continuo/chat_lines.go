package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
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

// newLines chooses how to read: with line editing from a terminal, plainly from a pipe. complete returns the
// completions for Tab.
func (t *chatSession) newLines(ctx context.Context, complete func(arguments bool) []string) lineReader {
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
	return term.NewEditor(file, t.keys, screen, t.prompt(), t.inputHistory(ctx), completeSlash(complete))
}

// inputHistory returns the newest one-line messages of the conversation, oldest first, for the arrow keys.
func (t *chatSession) inputHistory(ctx context.Context) []string {
	if t.conversation.ID == "" {
		return nil
	}
	entries, err := t.newest(ctx, t.conversation, 100)
	if err != nil {
		return nil // the arrow keys then have less history, nothing else
	}
	var lines []string
	for _, entry := range entries {
		if text := entry.Content.String(); entry.Role == continuo.User && text != "" && term.Clean(text) == text && !strings.Contains(text, "\n") {
			lines = append(lines, text)
		}
	}
	return lines
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

// completeSlash completes the name of a command when Tab is pressed, and then its argument, if exactly one line begins
// with the text. lines returns the commands, or the commands with arguments.
func completeSlash(lines func(arguments bool) []string) func(line string, position int, key rune) (string, int, bool) {
	return func(line string, position int, key rune) (string, int, bool) {
		if key != '\t' || position != len(line) || !strings.HasPrefix(line, "/") {
			return "", 0, false
		}
		var found string
		for _, whole := range lines(strings.Contains(line, " ")) {
			if strings.HasPrefix(whole, line) {
				if found != "" {
					return line, position, true // ambiguous: complete nothing
				}
				found = whole
			}
		}
		if found == "" {
			return line, position, true
		}
		return found, len(found), true
	}
}

// slashLines are the completions: commands, or commands with a known argument.
func (t *chatSession) slashLines(arguments bool) (lines []string) {
	if !arguments {
		for _, command := range slashCommands() {
			lines = append(lines, command.name+" ")
		}
		return lines
	}
	for _, mode := range []continuo.Mode{continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun} {
		lines = append(lines, "/mode "+string(mode))
	}
	for _, id := range append(agentIDs(t.settings), config.NoAgent) {
		lines = append(lines, "/agent "+id)
	}
	return lines
}
