package durable

import (
	"context"
	"sync"

	continuo "github.com/continuo-log/continuo"
)

// branches are the parallel steps of a run that this process executes.
type branches[K Attempt[K]] struct {
	execution *execution[K]
	group     sync.WaitGroup
	mu        sync.Mutex
	busy      map[string]bool // by name
	err       error           // the first that is not transient
	changed   chan struct{}   // capacity 1: a step has ended
}

func newBranches[K Attempt[K]](x *execution[K]) *branches[K] {
	return &branches[K]{execution: x, busy: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// take records in one commit the beginning of those steps whose beginning is not recorded yet, so that none sees
// another's. If all are recorded it executes them, and waits until one ends or the run's log may have changed. A
// machine without branches takes its steps one after another.
func (b *branches[K]) take(ctx context.Context, steps []K, listener *continuo.Listener, logged <-chan struct{}) error {
	x := b.execution
	brancher, ok := x.Machine.(Brancher[K])
	if !ok {
		return x.take(ctx, steps[0])
	}
	entries, err := brancher.Announce(ctx, steps)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		_, err := x.Append(ctx, entries...)
		return err
	}
	for _, step := range steps {
		b.start(ctx, &execution[K]{Machine: brancher.Clone(), driver: x.driver, run: x.run}, step)
	}
	if !b.await(ctx, listener, logged) {
		return context.Cause(ctx)
	}
	return nil
}

// start executes a step in a goroutine, unless one of its name is executing. Transient failures are retried.
func (b *branches[K]) start(ctx context.Context, x *execution[K], step K) {
	name := x.Describe(step).Name
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[name] {
		return
	}
	b.busy[name] = true
	b.group.Go(func() {
		err := x.take(ctx, step)
		if err != nil && x.driver.options.IsTransient(err) {
			x.driver.options.Logger.WarnContext(ctx, "run_retried", "run_id", x.run.ID, "node_id", name, "error", err.Error())
			x.driver.pause(ctx, transientPause)
			err = nil
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.busy, name)
		if b.err == nil {
			b.err = err
		}
		select {
		case b.changed <- struct{}{}:
		default:
		}
	})
}

func (b *branches[K]) wait() { b.group.Wait() }

func (b *branches[K]) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *branches[K]) any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.busy) > 0
}

// await waits until a step has ended or the run's log may have changed; false when ctx is done.
func (b *branches[K]) await(ctx context.Context, listener *continuo.Listener, logged <-chan struct{}) bool {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-b.changed:
			cancel()
		case <-waits.Done():
		}
	}()
	listener.Wait(waits, logged, retryPoll)
	cancel()
	<-stopped
	return ctx.Err() == nil
}
