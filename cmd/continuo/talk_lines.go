package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	xterm "golang.org/x/term"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
)

// lineReader returns the messages of a person or a script, one at a time; io.EOF at the end.
type lineReader interface {
	read() typed
	// asks says that a question has just been shown, and returns the least time of a line that answers it.
	asks() int
	// prompt sets the prompt of the next line, where a person types it.
	prompt(text string)
	// close restores the terminal. It may be called while read waits, which then never returns.
	close()
}

// newLines chooses how to read: with line editing from a terminal, plainly from a pipe. complete returns the
// completions for Tab.
func (t *talk) newLines(ctx context.Context, complete func(arguments bool) []string) lineReader {
	file, isFile := t.in.(*os.File)
	if t.plain || !isFile {
		scanner := bufio.NewScanner(t.in)
		scanner.Buffer(nil, maxLine)
		return pipeLines{scanner}
	}
	screen := t.out
	if plain, ok := screen.(*rawLines); ok {
		screen = plain.out // the editor ends its lines itself
	}
	t.out = &rawLines{out: screen, raw: func() bool { return t.underway != nil }}
	if t.keys == nil {
		t.keys = newKeyboard(file)
	}
	editor := xterm.NewTerminal(struct {
		io.Reader
		io.Writer
	}{t.keys, screen}, t.prompt())
	completed := completeSlash(complete)
	editor.AutoCompleteCallback = func(line string, position int, key rune) (string, int, bool) {
		if line == "" {
			t.keys.beginAgain()
		}
		return completed(line, position, key)
	}
	for _, line := range t.said(ctx) {
		editor.History.Add(line)
	}
	return &editedLines{file: file, keys: t.keys, editor: editor}
}

// said returns the newest one-line messages of the conversation, oldest first, for the arrow keys.
func (t *talk) said(ctx context.Context) []string {
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

func (p pipeLines) read() typed {
	if p.scanner.Scan() {
		return typed{line: p.scanner.Text()}
	}
	err := p.scanner.Err()
	switch {
	case err == nil:
		return typed{err: io.EOF}
	case errors.Is(err, bufio.ErrTooLong):
		return typed{err: usage("a line on standard input is longer than %s", term.Size(maxLine))}
	}
	return typed{err: fmt.Errorf("read standard input: %w", err)}
}

func (pipeLines) asks() int     { return 0 } // a script is asked nothing
func (pipeLines) prompt(string) {}
func (pipeLines) close()        {}

// editedLines reads from a terminal with line editing. The terminal is in raw mode only while a line is
// being read, so that Ctrl-C is a signal while an answer comes.
type editedLines struct {
	file   *os.File
	keys   *keyboard
	editor *xterm.Terminal

	mu     sync.Mutex
	before *xterm.State // nil while the terminal is as it was
	closed bool
}

func (e *editedLines) read() typed {
	if err := e.raw(); err != nil {
		return typed{err: err}
	}
	defer e.restore()
	if width, height, err := xterm.GetSize(int(e.file.Fd())); err == nil {
		_ = e.editor.SetSize(width, height) // at worst lines wrap in the wrong place
	}
	e.editor.SetBracketedPasteMode(true)
	defer e.editor.SetBracketedPasteMode(false)
	e.keys.nextLine()
	var lines []string // pasted ones, which wait for the line that Enter ends
	for {
		line, err := e.editor.ReadLine()
		if line != "" || err == nil || errors.Is(err, xterm.ErrPasteIndicator) {
			lines = append(lines, line)
		}
		if errors.Is(err, xterm.ErrPasteIndicator) {
			continue
		}
		begun, ended := e.keys.times()
		return typed{strings.Join(lines, "\n"), err, begun, ended}
	}
}

// asks is part of lineReader. A line that is being typed stays in the editor; it has the time at which it was begun.
func (e *editedLines) asks() int {
	e.mu.Lock() // the mode of the terminal stays as it is
	defer e.mu.Unlock()
	return e.keys.mark()
}

func (e *editedLines) prompt(text string) { e.editor.SetPrompt(text) }

func (e *editedLines) raw() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return io.EOF
	}
	before, err := xterm.MakeRaw(int(e.file.Fd()))
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	e.before = before
	return nil
}

func (e *editedLines) restore() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.before != nil {
		_ = xterm.Restore(int(e.file.Fd()), e.before) // an error could not be handled
		e.before = nil
	}
}

func (e *editedLines) close() {
	e.restore()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

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
func (t *talk) slashLines(arguments bool) (lines []string) {
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

// rawLines writes the line ends of a terminal in raw mode, which does not convert them itself.
type rawLines struct {
	out io.Writer
	raw func() bool
}

// Write is part of io.Writer.
func (w *rawLines) Write(text []byte) (int, error) {
	if !w.raw() {
		return w.out.Write(text)
	}
	_, err := w.out.Write(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))
	return len(text), err
}
