package main

import (
	"bytes"
	"io"
	"os"
	"sync"

	xterm "golang.org/x/term"
)

// keyboard reads from a terminal for a line reader, and knows for each line whether it was begun before a question was
// shown: text that was typed ahead is no answer. A Read returns at most one line, so that a line editor buffers nothing
// of the next one, and never waits with the lock held. One goroutine reads at a time; any may call mark.
//
// Times are counted in questions: a line's time is how many had been shown when its first byte was read.
type keyboard struct {
	in       io.Reader
	terminal *os.File // in, if it is a terminal; else nil: bytes then have the time at which they are read here

	mu        sync.Mutex
	questions int
	rest      []byte // read, and not returned yet
	restTime  int
	given     int  // time of the bytes that were returned last
	begun     int  // time of the current line
	inLine    bool // a part of it has been returned
}

func newKeyboard(in io.Reader) *keyboard {
	k := &keyboard{in: in}
	if file, ok := in.(*os.File); ok && isTerminal(file) {
		k.terminal = file
	}
	return k
}

// endsLine are the keys at which a line editor may end its line: Enter, Ctrl-C, Ctrl-D.
const endsLine = "\r\n\x03\x04"

// Read is part of io.Reader.
func (k *keyboard) Read(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.rest) == 0 {
		if err := k.fill(); err != nil {
			k.gave(k.questions)
			return 0, err
		}
	}
	line := k.rest
	if end := bytes.IndexAny(line, endsLine); end >= 0 {
		if bytes.HasPrefix(line[end:], []byte("\r\n")) {
			end++
		}
		line = line[:end+1]
	}
	n := copy(p, line)
	k.rest = k.rest[n:]
	k.gave(k.restTime)
	return n, nil
}

// gave records the time of the returned bytes.
func (k *keyboard) gave(time int) {
	k.given = time
	if !k.inLine {
		k.inLine, k.begun = true, time
	}
}

// fill waits for input, without the lock. mark may have taken the input already.
func (k *keyboard) fill() error {
	k.mu.Unlock()
	if k.terminal != nil && waitForInput(k.terminal) {
		k.mu.Lock()
		if len(k.rest) > 0 || !hasInput(k.terminal) {
			return nil
		}
		return k.pull()
	}
	text := make([]byte, readAtOnce)
	n, err := k.in.Read(text)
	k.mu.Lock()
	return k.took(text[:n], err)
}

const readAtOnce = 4 << 10

// pull reads the terminal's input, at least one byte unless reading fails.
func (k *keyboard) pull() error {
	text := make([]byte, readAtOnce)
	n, err := k.terminal.Read(text)
	return k.took(text[:n], err)
}

func (k *keyboard) took(text []byte, err error) error {
	if len(text) == 0 {
		return err
	}
	k.rest, k.restTime = append(k.rest, text...), k.questions
	return nil
}

// mark records that a question was shown, and returns the time that a line must have to answer it. It reads everything
// that was typed before, also a line that the terminal still buffers because Enter was not pressed: for that moment the
// terminal is in raw mode.
func (k *keyboard) mark() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.terminal != nil && inForeground(k.terminal) {
		file := int(k.terminal.Fd())
		before, err := xterm.MakeRaw(file)
		for len(k.rest) < maxLine && hasInput(k.terminal) {
			if k.pull() != nil {
				break // the next Read returns the error
			}
		}
		if err == nil {
			_ = xterm.Restore(file, before) // an error could not be handled
		}
	}
	k.questions++
	return k.questions
}

// nextLine says that the next byte begins a line.
func (k *keyboard) nextLine() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inLine = false
}

// beginAgain says that the whole line so far has been deleted, and that the last key begins it again.
func (k *keyboard) beginAgain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun = k.given
}

// times are those of the last line: of its first byte and of its last.
func (k *keyboard) times() (begun, ended int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begun, k.given
}
