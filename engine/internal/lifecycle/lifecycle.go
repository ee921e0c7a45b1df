// Package lifecycle knows whether work may begin or continue in this process, and bounds the work of each project.
package lifecycle

import (
	"context"
	"sync"

	"github.com/continuo-log/continuo/durable"
)

// ErrClosing says that the program is ending.
var ErrClosing = durable.ErrClosing

// Lifecycle knows whether work may begin or continue, and counts the turns of projects.
type Lifecycle struct {
	quota Quota // of turns

	mu     sync.Mutex
	closed bool           // no turn may begin
	turns  sync.WaitGroup // including those that wait in a lane
	// draining ends when nothing may begin any more, closing when running work must end.
	Draining, Closing context.Context
	stop              context.CancelFunc
	End               context.CancelCauseFunc
}

// New returns a lifecycle that bounds the turns of a project; 0 is no bound.
func New(maxTurns int) *Lifecycle {
	l := &Lifecycle{quota: Quota{Most: maxTurns}}
	l.Draining, l.stop = context.WithCancel(context.Background())
	l.Closing, l.End = context.WithCancelCause(context.Background())
	return l
}

// Drain lets nothing begin any more.
func (l *Lifecycle) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.stop()
}

// Wait waits until no turn runs or waits.
func (l *Lifecycle) Wait() { l.turns.Wait() }

// AwaitPlace returns nil when a project may begin a turn, else an error after a short wait.
func (l *Lifecycle) AwaitPlace(ctx context.Context, project string) error {
	return l.quota.AwaitPlace(ctx, project)
}

// IsClosed reports whether no more turns may begin.
func (l *Lifecycle) IsClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Admit counts a turn of a project, unless nothing may begin or the project has as many turns as it may; dismiss
// ends the count.
func (l *Lifecycle) Admit(project string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosing
	}
	if err := l.quota.Enter(project); err != nil {
		return err
	}
	l.turns.Add(1)
	return nil
}

// Go runs work that Wait waits for, in a goroutine of its own. Only work that Wait waits for may call it. Its context ends
// with Closing.
func (l *Lifecycle) Go(work func(ctx context.Context)) {
	l.turns.Add(1)
	go func() {
		defer l.turns.Done()
		work(l.Closing)
	}()
}

// Dismiss ends the count of a turn.
func (l *Lifecycle) Dismiss(project string) {
	l.quota.Leave(project)
	l.turns.Done()
}
