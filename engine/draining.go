package engine

import (
	"context"
	"sync"

	"github.com/continuo-log/continuo/durable"
)

// ErrClosing says that the program is ending.
var ErrClosing = durable.ErrClosing

// lifecycle knows whether work may begin or continue.
type lifecycle struct {
	mu     sync.Mutex
	closed bool           // no turn may begin
	turns  sync.WaitGroup // including those that wait in a lane
	// draining ends when nothing may begin any more, closing when running work must end.
	draining, closing context.Context
	stop              context.CancelFunc
	end               context.CancelCauseFunc
}

func newLifecycle() *lifecycle {
	l := &lifecycle{}
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

// isClosed reports whether no more turns may begin.
func (l *lifecycle) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// admit counts a turn of a project, unless nothing may begin or the project has as many turns as its quota; dismiss
// ends the count.
func (l *lifecycle) admit(turns *quota, project string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosing
	}
	if err := turns.enter(project); err != nil {
		return err
	}
	l.turns.Add(1)
	return nil
}

// dismiss ends the count of a turn.
func (l *lifecycle) dismiss(turns *quota, project string) {
	turns.leave(project)
	l.turns.Done()
}
