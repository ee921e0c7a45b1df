package term

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Keyboard reads from a terminal for a line reader, and knows for each line whether it was started before a question was
// shown: text that was typed ahead is no answer. A Read returns at most one line, so that a line editor buffers nothing
// of the next one, and never waits with the lock held. One goroutine reads at a time; any may call Mark.
//
// Times are counted in questions: a line's time is how many had been shown when its first byte was read.
type Keyboard struct {
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

// NewKeyboard returns the keyboard behind in, which need not be a terminal.
func NewKeyboard(in io.Reader) *Keyboard {
	k := &Keyboard{in: in}
	if file, ok := in.(*os.File); ok && IsTerminal(file) {
		k.terminal = file
	}
	return k
}

// maxAhead bounds the text that is kept while nothing reads it, in bytes.
const maxAhead = 32 << 20

// endsLine are the keys at which a line editor may end its line: Enter, Ctrl-C, Ctrl-D.
const endsLine = "\r\n\x03\x04"

// Read is part of io.Reader.
func (k *Keyboard) Read(p []byte) (int, error) {
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
func (k *Keyboard) gave(time int) {
	k.given = time
	if !k.inLine {
		k.inLine, k.begun = true, time
	}
}

// fill waits for input, without the lock. Mark may have taken the input already.
func (k *Keyboard) fill() error {
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
func (k *Keyboard) pull() error {
	text := make([]byte, readAtOnce)
	n, err := k.terminal.Read(text)
	return k.took(text[:n], err)
}

func (k *Keyboard) took(text []byte, err error) error {
	if len(text) == 0 {
		return err
	}
	k.rest, k.restTime = append(k.rest, text...), k.questions
	return nil
}

// Mark records that a question was shown, and returns the time that a line must have to answer it. It reads everything
// that was typed before, also a line that the terminal still buffers because Enter was not pressed: for that moment the
// terminal is in raw mode.
func (k *Keyboard) Mark() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.terminal != nil && inForeground(k.terminal) {
		file := int(k.terminal.Fd())
		before, err := term.MakeRaw(file)
		for len(k.rest) < maxAhead && hasInput(k.terminal) {
			if k.pull() != nil {
				break // the next Read returns the error
			}
		}
		if err == nil {
			_ = term.Restore(file, before) // an error could not be handled
		}
	}
	k.questions++
	return k.questions
}

// NextLine says that the next byte begins a line.
func (k *Keyboard) NextLine() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inLine = false
}

// BeginAgain says that the whole line so far has been deleted, and that the last key begins it again.
func (k *Keyboard) BeginAgain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun = k.given
}

// Times are those of the last line: of its first byte and of its last.
func (k *Keyboard) Times() (begun, ended int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begun, k.given
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// Dimensions returns the size of a terminal in columns and lines, 80 and 24 where that is unknown.
func Dimensions(file *os.File) (width, height int) {
	if file != nil {
		width, height, _ = term.GetSize(int(file.Fd()))
	}
	return cmp.Or(width, 80), cmp.Or(height, 24)
}
