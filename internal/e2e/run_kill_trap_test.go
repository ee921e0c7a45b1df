package e2e

import "sync"

// moment is a place of a run in which a program can be killed.
type moment string

const (
	inStream moment = "in a stream"
	inTool   moment = "in a tool"
	atEnd    moment = "at the end of an answer"
)

// traps tell when a program has come to a moment. One is set at a time.
type traps struct {
	mu     sync.Mutex
	kind   moment
	left   int // how often the moment is yet to be let pass
	sprung chan string
}

// set waits for the n-th moment of a kind; the channel gets the key of the program that has come to it, "" for any.
func (t *traps) set(kind moment, n int) <-chan string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kind, t.left, t.sprung = kind, n, make(chan string, 1)
	return t.sprung
}

// pass tells of a moment.
func (t *traps) pass(kind moment, program string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kind != kind || t.left <= 0 {
		return
	}
	if t.left--; t.left == 0 {
		t.sprung <- program
	}
}

// spring ends the wait for a moment: it may not come.
func (t *traps) spring() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left > 0 {
		t.left = 0
		t.sprung <- ""
	}
}
