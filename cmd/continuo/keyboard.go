package main

import (
	"bytes"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// keyboard stands between a terminal and what reads lines from it, and knows of each line whether it was begun before a
// question was shown: what is typed ahead is no answer. A Read gives one line at most, so that a line editor holds
// nothing of the next one, and never waits with the lock held. One goroutine reads at a time; any may call mark.
//
// Times are counted in questions: a line's time is how many had been shown when its first byte was read.
type keyboard struct {
	in       io.Reader
	terminal *os.File // in, where it is a terminal; else nil: bytes then have the time at which they arrive here

	mu        sync.Mutex
	questions int
	rest      []byte // read, and not given yet
	restTime  int
	given     int  // time of the bytes that were given last
	begun     int  // time of the line that is being given
	inLine    bool // a part of it has been given
}

func newKeyboard(in io.Reader) *keyboard {
	k := &keyboard{in: in}
	if file, ok := in.(*os.File); ok && isTerminal(file) {
		k.terminal = file
	}
	return k
}

// endsLine are the keys that a line editor may end its line at: Enter, Ctrl-C, Ctrl-D.
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

// gave notes the time of what is given.
func (k *keyboard) gave(time int) {
	k.given = time
	if !k.inLine {
		k.inLine, k.begun = true, time
	}
}

// fill waits for something to be typed, without the lock. It may find that mark has taken it.
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

// pull takes what the terminal has, which must be something unless reading it fails.
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

// mark notes that a question has been shown, and gives the time that a line must have to answer it. Everything that was
// typed by then is read, also a line that the terminal still holds back because Enter was not pressed yet: it is in raw
// mode for that moment.
func (k *keyboard) mark() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.terminal != nil && inForeground(k.terminal) {
		file := int(k.terminal.Fd())
		before, err := term.MakeRaw(file)
		for len(k.rest) < maxLine && hasInput(k.terminal) {
			if k.pull() != nil {
				break // the next Read says why
			}
		}
		if err == nil {
			_ = term.Restore(file, before) // nothing could be done about it
		}
	}
	k.questions++
	return k.questions
}

// nextLine says that what is given now begins a line.
func (k *keyboard) nextLine() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inLine = false
}

// beginAgain says that all of the line so far has been deleted, and that the key that was given last begins it.
func (k *keyboard) beginAgain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun = k.given
}

// times are those of the line that was given: of its first byte and of its last.
func (k *keyboard) times() (begun, ended int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begun, k.given
}
