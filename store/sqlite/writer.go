package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// writer has the one connection that writes, and one goroutine that uses it: it takes all changes that wait, commits them
// together, and begins again.
type writer struct {
	conn *connection
	// resetTimeout is the statement that sets the connection's usual busy timeout.
	resetTimeout string
	residue      atomic.Bool   // the connection's residue, for other goroutines to read
	wake         chan struct{} // has room for one signal: a change waits, or the writer was closed
	ended        sync.WaitGroup
	wiping       wiping

	mu       sync.Mutex
	waiting  []*change
	isClosed bool
}

// change is one caller's write.
type change struct {
	ctx context.Context
	// apply makes the change inside a transaction. When it returns a verdict (see isVerdict) it has written
	// nothing. After any other error the whole transaction is rolled back, and apply may be called again.
	apply    func(*connection) error
	err      error
	panicked any           // what apply panicked with
	done     chan struct{} // closed when err is set and, if it is nil, the change is durable
}

// maxGroup bounds how many changes share a commit.
const maxGroup = 256

func newWriter(conn *connection, busyTimeout time.Duration) *writer {
	w := &writer{conn: conn, wake: make(chan struct{}, 1), resetTimeout: fmt.Sprintf(`PRAGMA busy_timeout = %d`, busyTimeout.Milliseconds())}
	w.ended.Go(w.run)
	return w
}

// close waits for the changes in progress. Those that wait are refused.
func (w *writer) close() error {
	w.mu.Lock()
	w.isClosed = true
	refused := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	for _, c := range refused {
		c.err = continuo.ErrClosed
		close(c.done)
	}
	w.signal()
	w.ended.Wait()
	return w.conn.close()
}

// do returns when the change is durable or refused. If the caller gives up while the change waits to be
// taken, nothing has changed; once taken, the change ends soon, and do waits for its result.
func (w *writer) do(ctx context.Context, apply func(*connection) error) error {
	c := &change{ctx: ctx, apply: apply, done: make(chan struct{})}
	if err := w.enter(c); err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if w.withdraw(c) {
			return ctx.Err()
		}
		<-c.done // taken
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.err
}

// enter adds a change to those that wait.
func (w *writer) enter(c *change) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosed {
		return continuo.ErrClosed
	}
	w.waiting = append(w.waiting, c)
	w.signal()
	return nil
}

// withdraw removes a change that waits. It reports false for a change that was taken or refused.
func (w *writer) withdraw(c *change) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.waiting, c)
	if i < 0 {
		return false
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	return true
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run commits changes until the writer is closed. Between the groups it tidies the index of words, clears the unused space of
// pages and truncates the write-ahead log where that is needed.
func (w *writer) run() {
	w.tidy()
	last := 0                  // how many changes the last group had
	var retry <-chan time.Time // nil: nothing may remain in the log
	for {
		group, isClosed := w.take(last)
		switch {
		case len(group) > 0:
			last = len(group)
			w.write(group)
		case isClosed:
			w.finishWiping()
			return
		}
		if w.conn.indexDirty {
			w.tidy()
		} else if w.wiping.isDue() {
			w.wipe()
		}
		if w.conn.residue && retry == nil {
			retry = time.After(truncateRetry)
		}
		if len(group) > 0 || w.conn.indexDirty || w.wiping.isDue() {
			continue // perhaps more waits
		}
		select {
		case <-w.wake:
		case <-w.wiping.wait():
		case <-retry:
			retry = nil
			if w.conn.residue {
				w.truncateLog()
			}
		}
	}
}

// write commits a group and ends its changes.
func (w *writer) write(group []*change) {
	w.commit(group)
	if w.conn.removed {
		w.conn.removed = false
		w.wiping.begin()
	}
	if w.conn.residue {
		w.truncateLog()
	}
	for _, c := range group {
		close(c.done)
	}
}

// takeTries bounds how often the writer lets other goroutines run before it takes the changes that wait.
const takeTries = 3

// take removes the changes of the next group from those that wait. It lets the callers of the last group, which are about
// to send their next changes, come first: otherwise the first of them would be committed alone while all others wait.
func (w *writer) take(last int) (group []*change, isClosed bool) {
	for try := 0; ; try++ {
		w.mu.Lock()
		if last < 2 || try == takeTries || len(w.waiting) >= last {
			break
		}
		w.mu.Unlock()
		runtime.Gosched()
	}
	defer w.mu.Unlock()
	count := min(len(w.waiting), maxGroup)
	group = w.waiting[:count:count]
	w.waiting = slices.Clone(w.waiting[count:])
	return group, w.isClosed
}

// truncateRetry is the pause before another attempt to truncate a write-ahead log that a reader holds.
const truncateRetry = time.Second

// truncateLog moves everything from the write-ahead log to the file and truncates the log, so that no older
// version of a page stays there. While a reader of another process holds the log, this is retried until it
// succeeds.
func (w *writer) truncateLog() {
	var busy, frames, moved int64
	err := w.conn.script(`PRAGMA busy_timeout = 100`) // for readers: writers wait for this connection
	if err == nil {
		err = w.conn.row(`PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &frames, &moved)
	}
	err = errors.Join(err, w.conn.script(w.resetTimeout))
	w.conn.residue = err != nil || busy != 0
	w.residue.Store(w.conn.residue)
}

// tidy removes the terms of some removed documents from the index. After a failure, it is retried after the
// next change that removes a document, and when the store is next opened.
func (w *writer) tidy() {
	var removed bool
	err := w.conn.row(anyRemoved, nil, &removed)
	if err == nil && removed {
		err = w.conn.transact(func() error { return purgeTerms(w.conn, purgeInBetween) })
	}
	w.conn.indexDirty = removed && err == nil
	if removed {
		w.conn.residue = true
		w.wiping.begin()
	}
}

// commit commits a group in one transaction. If that fails for a reason that one change alone may have
// caused, each change gets a transaction of its own.
func (w *writer) commit(group []*change) {
	w.conn.alone = len(group) == 1
	err := w.conn.transact(func() error {
		for _, c := range group {
			if c.err = c.try(w.conn); c.err != nil && (w.conn.alone || !isVerdict(c.err)) {
				return c.err
			}
		}
		return nil
	})
	w.conn.alone = false
	var begin *beginError
	switch {
	case err == nil:
	case len(group) == 1 || errors.As(err, &begin):
		for _, c := range group {
			c.err = err
		}
	default:
		for i := range group {
			w.commit(group[i : i+1])
		}
	}
}

// try makes a change, whose panic continues in its caller.
func (c *change) try(conn *connection) (err error) {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.panicked = nil
	defer func() {
		if cause := recover(); cause != nil {
			c.panicked, err = fmt.Sprintf("%v\n\nin the writer of the database:\n%s", cause, debug.Stack()), errPanicked
		}
	}()
	return c.apply(conn)
}

var errPanicked = errors.New("a write panicked")
