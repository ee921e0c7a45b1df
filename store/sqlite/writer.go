package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// writer has the one connection that writes. Its goroutine takes a change and all others that wait at that
// moment, and commits them together: while the disk works, the next group gathers.
type writer struct {
	conn    *connection
	changes chan *change // unbuffered: a caller whose change is not taken still holds it
	closing chan struct{}
	closed  sync.WaitGroup
	// resetTimeout is the statement that sets the connection's usual busy timeout.
	resetTimeout string
	residue      atomic.Bool // the connection's residue, for other goroutines to read
}

// change is one caller's write.
type change struct {
	ctx context.Context
	// apply makes the change inside a transaction. When it returns a verdict (see isVerdict) it has written
	// nothing. After any other error the whole transaction is rolled back, and apply may be called again.
	apply func(*connection) error
	err   error
	done  chan struct{} // closed when err is set and, if it is nil, the change is durable
}

// maxGroup bounds how many changes share a commit.
const maxGroup = 256

func newWriter(conn *connection, busyTimeout time.Duration) *writer {
	w := &writer{
		conn: conn, changes: make(chan *change), closing: make(chan struct{}),
		resetTimeout: fmt.Sprintf(`PRAGMA busy_timeout = %d`, busyTimeout.Milliseconds()),
	}
	w.closed.Go(w.run)
	return w
}

// close waits for the changes under way.
func (w *writer) close() error {
	close(w.closing)
	w.closed.Wait()
	return w.conn.close()
}

// do returns when the change is durable or refused. If the caller gives up while the change waits to be
// taken, nothing has changed; once taken, the change ends soon, and do waits for its result.
func (w *writer) do(ctx context.Context, apply func(*connection) error) error {
	c := &change{ctx: ctx, apply: apply, done: make(chan struct{})}
	select {
	case <-w.closing:
		return continuo.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case w.changes <- c:
		<-c.done
		return c.err
	}
}

func (w *writer) run() {
	always := make(chan struct{})
	close(always)
	for {
		var idle chan struct{}
		if w.conn.indexDirty {
			idle = always
		}
		select {
		case <-w.closing:
			return
		case <-idle:
			w.tidy()
		case <-w.retry():
			w.truncateLog()
		case first := <-w.changes:
			group := w.gather(first)
			w.commit(group)
			if w.conn.residue {
				w.truncateLog()
			}
			for _, c := range group {
				close(c.done)
			}
		}
	}
}

// truncateRetry is the pause before another attempt to truncate a write-ahead log that a reader holds.
const truncateRetry = time.Second

// retry fires when there is residue in the write-ahead log; nil, which never fires, when there is none.
func (w *writer) retry() <-chan time.Time {
	if !w.conn.residue {
		return nil
	}
	return time.After(truncateRetry)
}

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
	w.conn.residue = w.conn.residue || removed
}

// gather takes the changes that wait now.
func (w *writer) gather(first *change) []*change {
	group := []*change{first}
	for len(group) < maxGroup {
		select {
		case c := <-w.changes:
			group = append(group, c)
		default:
			return group
		}
	}
	return group
}

// commit commits a group in one transaction. If that fails for a reason that one change alone may have
// caused, each change gets a transaction of its own.
func (w *writer) commit(group []*change) {
	err := w.conn.transact(func() error {
		for _, c := range group {
			if c.err = c.try(w.conn); c.err != nil && !isVerdict(c.err) {
				return c.err
			}
		}
		return nil
	})
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

func (c *change) try(conn *connection) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return c.apply(conn)
}
