package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// writer has the one connection that writes. A caller that finds it idle leads: it takes all changes that wait,
// commits them together, and hands the lead to the first caller that came meanwhile.
type writer struct {
	conn    *connection // used by the leader only
	closing chan struct{}
	closed  sync.WaitGroup
	// resetTimeout is the statement that sets the connection's usual busy timeout.
	resetTimeout string
	residue      atomic.Bool   // the connection's residue, for other goroutines to read
	upkeep       chan struct{} // has room for one signal: dirty or mayRemain was set
	dirty        atomic.Bool   // the connection's indexDirty when the last leader ended
	mayRemain    atomic.Bool   // its residue then

	mu       sync.Mutex
	waiting  []*change
	leading  bool
	isClosed bool
	idle     sync.Cond // of mu: signalled when nobody leads
	expected int       // how many changes the last group had
}

// change is one caller's write.
type change struct {
	ctx context.Context
	// apply makes the change inside a transaction. When it returns a verdict (see isVerdict) it has written
	// nothing. After any other error the whole transaction is rolled back, and apply may be called again. Nil for
	// upkeep, which is a group of its own.
	apply   func(*connection) error
	err     error
	settled bool
	leads   bool          // lead is closed
	done    chan struct{} // closed when err is set and, if it is nil, the change is durable
	lead    chan struct{} // closed when the caller is to lead the writer
}

// maxGroup bounds how many changes share a commit.
const maxGroup = 256

func newWriter(conn *connection, busyTimeout time.Duration) *writer {
	w := &writer{
		conn: conn, closing: make(chan struct{}), upkeep: make(chan struct{}, 1),
		resetTimeout: fmt.Sprintf(`PRAGMA busy_timeout = %d`, busyTimeout.Milliseconds()),
	}
	w.idle.L = &w.mu
	w.closed.Go(w.runUpkeep)
	return w
}

// close waits for the changes in progress. Those that wait are refused.
func (w *writer) close() error {
	close(w.closing)
	w.mu.Lock()
	w.isClosed = true
	refused := w.waiting
	if w.leading && len(refused) > 0 && refused[0].leads {
		refused = refused[1:] // it is about to lead
	}
	w.waiting = w.waiting[:len(w.waiting)-len(refused)]
	for _, c := range refused {
		c.settle(continuo.ErrClosed)
	}
	for w.leading {
		w.idle.Wait()
	}
	w.mu.Unlock()
	w.closed.Wait()
	return w.conn.close()
}

// do returns when the change is durable or refused. If the caller gives up while the change waits to be
// taken, nothing has changed; once taken, the change ends soon, and do waits for its result.
func (w *writer) do(ctx context.Context, apply func(*connection) error) error {
	c := &change{ctx: ctx, apply: apply, done: make(chan struct{}), lead: make(chan struct{})}
	leads, err := w.enter(c)
	if err != nil {
		return err
	}
	if !leads {
		select {
		case <-c.done:
			return c.err
		case <-c.lead:
		case <-ctx.Done():
			if w.withdraw(c) {
				return ctx.Err()
			}
			<-c.done // taken
			return c.err
		}
	}
	defer w.handOver()
	w.await()
	group := w.take()
	defer w.settle(group)
	w.commit(group)
	if w.conn.residue {
		w.truncateLog()
	}
	return c.err
}

// enter adds a change to those that wait, and reports whether its caller leads.
func (w *writer) enter(c *change) (leads bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosed {
		return false, continuo.ErrClosed
	}
	w.waiting = append(w.waiting, c)
	leads, w.leading = !w.leading, true
	return leads, nil
}

// withdraw removes a change that waits, and passes on the lead where its caller has it. It reports false for a change
// that was taken or refused.
func (w *writer) withdraw(c *change) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.waiting, c)
	if i < 0 {
		return false
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	if c.leads {
		w.passLead()
	}
	return true
}

// handOver ends the caller's lead.
func (w *writer) handOver() {
	w.dirty.Store(w.conn.indexDirty)
	w.mayRemain.Store(w.conn.residue)
	if w.conn.indexDirty || w.conn.residue {
		select {
		case w.upkeep <- struct{}{}:
		default:
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passLead()
}

// passLead makes the first waiting caller the leader. The caller holds mu.
func (w *writer) passLead() {
	if len(w.waiting) == 0 {
		w.leading = false
		w.idle.Broadcast()
		return
	}
	next := w.waiting[0]
	next.leads = true
	close(next.lead)
}

// awaitTries bounds how often a leader lets other goroutines run before it takes the changes that wait.
const awaitTries = 3

// await lets the callers of the last group, which are about to send their next changes, come before the leader takes
// those that wait. Otherwise the first of them would be committed alone while all others wait.
func (w *writer) await() {
	for range awaitTries {
		w.mu.Lock()
		missing := w.expected > 1 && len(w.waiting) < w.expected
		w.mu.Unlock()
		if !missing {
			return
		}
		runtime.Gosched()
	}
}

// take removes the changes of the next group from those that wait; the leader's own is the first.
func (w *writer) take() []*change {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 1
	for count < min(len(w.waiting), maxGroup) && w.waiting[0].apply != nil && w.waiting[count].apply != nil {
		count++
	}
	taken := w.waiting[:count:count]
	w.waiting = slices.Clone(w.waiting[count:])
	w.expected = count
	return taken
}

// settle ends the changes of a group. A panic of one of them continues in the leader: then the transaction is rolled
// back, and those that have no result yet fail.
func (w *writer) settle(group []*change) {
	if w.conn.inTransaction {
		w.conn.rollBack()
		for _, c := range group {
			c.err = errors.Join(c.err, errPanicked)
		}
	}
	for _, c := range group {
		c.settle(c.err)
	}
}

var errPanicked = errors.New("a write that shared the commit failed inside")

func (c *change) settle(err error) {
	if !c.settled {
		c.settled, c.err = true, err
		close(c.done)
	}
}

// runUpkeep tidies the index of words and truncates the write-ahead log between the groups of changes.
func (w *writer) runUpkeep() {
	var retry <-chan time.Time // nil: nothing may remain in the log
	for work := w.tidy; ; work = nil {
		if work == nil {
			select {
			case <-w.closing:
				return
			case <-w.upkeep:
			case <-retry:
				retry, work = nil, w.truncateAgain
			}
		}
		if w.dirty.Load() {
			work = w.tidy
		}
		if work != nil && !w.alone(work) {
			return
		}
		if w.mayRemain.Load() && retry == nil {
			retry = time.After(truncateRetry)
		}
	}
}

// alone leads the writer for work that is not a change. It reports false when the writer was closed.
func (w *writer) alone(work func()) bool {
	c := &change{done: make(chan struct{}), lead: make(chan struct{})}
	leads, err := w.enter(c)
	if err != nil {
		return false
	}
	if !leads {
		select {
		case <-c.done:
			return false
		case <-c.lead:
		}
	}
	defer w.handOver()
	w.take()
	work()
	return true
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

// truncateAgain is truncateLog where it is still needed.
func (w *writer) truncateAgain() {
	if w.conn.residue {
		w.truncateLog()
	}
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

func (c *change) try(conn *connection) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return c.apply(conn)
}
