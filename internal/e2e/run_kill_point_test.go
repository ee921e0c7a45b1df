package e2e

import "sync"

// killPoint is a point of a run at which a program can be killed.
type killPoint string

const (
	inStream killPoint = "in a stream"
	inTool   killPoint = "in a tool"
	atEnd    killPoint = "at the end of an answer"
)

// killPoints report that a program has reached a kill point. One is armed at a time.
type killPoints struct {
	mu     sync.Mutex
	kind   killPoint
	left   int // how many are still to be passed
	sprung chan string
}

// arm waits for the n-th kill point of a kind; the channel gets the key of the program that reached it, "" for any.
func (t *killPoints) arm(kind killPoint, n int) <-chan string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kind, t.left, t.sprung = kind, n, make(chan string, 1)
	return t.sprung
}

// reach reports that a program has reached a kill point.
func (t *killPoints) reach(kind killPoint, program string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kind != kind || t.left <= 0 {
		return
	}
	if t.left--; t.left == 0 {
		t.sprung <- program
	}
}

// disarm ends the wait for a kill point: no program may reach it.
func (t *killPoints) disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left > 0 {
		t.left = 0
		t.sprung <- ""
	}
}
