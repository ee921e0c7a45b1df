package engine

import (
	"context"
	"sync"

	"github.com/continuo-log/continuo/durable"
)

// ErrClosing says that the program is ending.
var ErrClosing = durable.ErrClosing

// lifecycle knows whether work may begin or continue, and counts the turns of projects.
type lifecycle struct {
	quota quota // of turns

	mu     sync.Mutex
	closed bool           // no turn may begin
	turns  sync.WaitGroup // including those that wait in a lane
	// draining ends when nothing may begin any more, closing when running work must end.
	draining, closing context.Context
	stop              context.CancelFunc
	end               context.CancelCauseFunc
}

// newLifecycle bounds the turns of a project; 0 is no bound.
func newLifecycle(maxTurns int) *lifecycle {
	l := &lifecycle{quota: quota{most: maxTurns}}
	l.draining, l.stop = context.WithCancel(context.Background())
	l.closing, l.end = context.WithCancelCause(context.Background())
	return l
}

// drain lets nothing begin any more.
func (l *lifecycle) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.stop()
}

// wait waits until no turn runs or waits.
func (l *lifecycle) wait() { l.turns.Wait() }

// isClosed reports whether no more turns may begin.
func (l *lifecycle) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// admit counts a turn of a project, unless nothing may begin or the project has as many turns as it may; dismiss
// ends the count.
func (l *lifecycle) admit(project string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosing
	}
	if err := l.quota.enter(project); err != nil {
		return err
	}
	l.turns.Add(1)
	return nil
}

// dismiss ends the count of a turn.
func (l *lifecycle) dismiss(project string) {
	l.quota.leave(project)
	l.turns.Done()
}
