package term

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Line is a line that a person typed, with the times of its first and its last byte, in the time of a [Keyboard].
type Line struct {
	Text         string
	Err          error
	Begun, Ended int
}

// Editor reads from a terminal with line editing. The terminal is in raw mode only while a line is being read, so that Ctrl-C is
// a signal while an answer comes.
type Editor struct {
	file   *os.File
	keys   *Keyboard
	editor *term.Terminal

	mu     sync.Mutex
	before *term.State // nil while the terminal is as it was
	closed bool
}

// NewEditor returns an editor of the lines of a keyboard on the terminal file; it writes to screen. complete gets the line,
// the cursor and the key at each key, and returns the new ones if it completes; history is for the arrow keys, the oldest
// line first.
func NewEditor(file *os.File, keys *Keyboard, screen io.Writer, prompt string, history []string, complete func(line string, position int, key rune) (string, int, bool)) *Editor {
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, screen}, prompt)
	editor.AutoCompleteCallback = func(line string, position int, key rune) (string, int, bool) {
		if line == "" {
			keys.BeginAgain()
		}
		return complete(line, position, key)
	}
	for _, line := range history {
		editor.History.Add(line)
	}
	return &Editor{file: file, keys: keys, editor: editor}
}

// Read returns the next line, of which pasted lines are a part; io.EOF at the end.
func (e *Editor) Read() Line {
	if err := e.raw(); err != nil {
		return Line{Err: err}
	}
	defer e.restore()
	if width, height, err := term.GetSize(int(e.file.Fd())); err == nil {
		_ = e.editor.SetSize(width, height) // at worst lines wrap in the wrong place
	}
	e.editor.SetBracketedPasteMode(true)
	defer e.editor.SetBracketedPasteMode(false)
	e.keys.NextLine()
	var lines []string // pasted ones, which wait for the line that Enter ends
	for {
		line, err := e.editor.ReadLine()
		if line != "" || err == nil || errors.Is(err, term.ErrPasteIndicator) {
			lines = append(lines, line)
		}
		if errors.Is(err, term.ErrPasteIndicator) {
			continue
		}
		begun, ended := e.keys.Times()
		return Line{strings.Join(lines, "\n"), err, begun, ended}
	}
}

// Asks says that a question has just been shown, and returns the least time of a line that answers it. A line that is
// being typed stays in the editor; it has the time at which it was started.
func (e *Editor) Asks() int {
	e.mu.Lock() // the mode of the terminal stays as it is
	defer e.mu.Unlock()
	return e.keys.Mark()
}

// Prompt sets the prompt of the next line.
func (e *Editor) Prompt(text string) { e.editor.SetPrompt(text) }

func (e *Editor) raw() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return io.EOF
	}
	before, err := term.MakeRaw(int(e.file.Fd()))
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	e.before = before
	return nil
}

func (e *Editor) restore() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.before != nil {
		_ = term.Restore(int(e.file.Fd()), e.before) // an error could not be handled
		e.before = nil
	}
}

// Close restores the terminal. It may be called while Read waits, which then never returns.
func (e *Editor) Close() {
	e.restore()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

// RawLines writes the line ends of a terminal in raw mode, which does not convert them itself.
type RawLines struct {
	Out io.Writer
	Raw func() bool
}

// Write is part of io.Writer.
func (w *RawLines) Write(text []byte) (int, error) {
	if !w.Raw() {
		return w.Out.Write(text)
	}
	_, err := w.Out.Write(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))
	return len(text), err
}
