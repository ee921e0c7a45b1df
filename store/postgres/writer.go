package postgres

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxGroup and maxGroupBytes bound the changes that share a commit.
	maxGroup      = 256
	maxGroupBytes = 4 << 20

	// lingerPart is which part of the time of the last commit a group waits for those that were in it.
	lingerPart = 8

	// groupLockTimeout is how long a group waits for what a transaction of another process has locked. Then
	// each of its changes goes alone, so that one conversation does not hold up the others.
	groupLockTimeout = 100 * time.Millisecond
)

// change is a write to one conversation, made by one statement. It is refused when the statement affects or
// returns no row, and has written nothing then.
type change struct {
	conversationID string // "" for what belongs to none
	key            string // by which changes are ordered and spread over the writers
	statement      string
	args           []any
	size           int // bytes of args, about
	// scan reads the row that the statement returns; nil when nothing of it is needed.
	scan func(row pgx.Row) error
	// why finds the verdict on a change that was refused. Nil says that it should not be refused any more.
	why func(ctx context.Context, q querier) error
	// committed reports whether the change was committed, when its connection was lost meanwhile. Nil: it can
	// simply be made twice.
	committed func(ctx context.Context, q querier) (bool, error)
	// races says that a key that is taken may be the work of a change at the same time, and why will know.
	races bool
}

// write makes a change. A caller that gives up while its change waits to be taken has changed nothing; once
// taken, a change is settled soon, and its result is worth waiting for.
func (s *Store) write(ctx context.Context, c *change) error {
	if !s.gate.enter() {
		return continuo.ErrClosed
	}
	defer s.gate.leave()
	err := s.settle(ctx, c)
	if err == nil && c.conversationID != "" {
		s.changed(c.conversationID)
	}
	return s.failed(err)
}

// settle has a change made in a group. Where that leaves a question, the change is made alone.
func (s *Store) settle(ctx context.Context, c *change) error {
	applied, err := s.writers.do(ctx, c)
	if applied || errors.Is(err, errNotTaken) {
		return orCancelled(ctx, err)
	}
	if err == nil {
		err = s.retryTransient(context.WithoutCancel(ctx), func() error { return s.query(context.WithoutCancel(ctx), c.why) })
		if err != nil {
			return err
		}
	}
	var lost *lostError
	doubtful := errors.As(err, &lost) && lost.sent
	return s.commit(ctx, c.alone, c.committed, doubtful)
}

// alone makes the change in a transaction of its own.
func (c *change) alone(ctx context.Context, tx pgx.Tx) error {
	applied, err := c.read(ctx, tx)
	if err == nil && !applied {
		if err = c.why(ctx, tx); err == nil {
			return errAgain
		}
	}
	if c.races && isTaken(err) {
		return errAgain
	}
	return err
}

func (c *change) read(ctx context.Context, q querier) (applied bool, err error) {
	if c.scan == nil {
		tag, err := q.Exec(ctx, c.statement, c.args...)
		return tag.RowsAffected() > 0, err
	}
	return scanned(c.scan(q.QueryRow(ctx, c.statement, c.args...)))
}

// readFrom reads the change's result out of those of a group.
func (c *change) readFrom(results pgx.BatchResults) (applied bool, err error) {
	if c.scan == nil {
		tag, err := results.Exec()
		return tag.RowsAffected() > 0, err
	}
	return scanned(c.scan(results.QueryRow()))
}

func scanned(err error) (applied bool, _ error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// writers spreads changes over connections of their own, those of one conversation always to the same.
type writers struct {
	seed    maphash.Seed
	each    []*writer
	closing chan struct{}
	closed  sync.WaitGroup
}

// writer has one connection. Its goroutine takes a change, and with it all others that wait at that moment,
// and commits them together: while the database works, the next group gathers.
type writer struct {
	config  *pgx.ConnConfig
	prepare func(context.Context, *pgx.Conn) error
	timeout time.Duration // of a group
	conn    *pgx.Conn     // nil: not connected
	changes chan *queued  // unbuffered: whoever waits to be taken holds its own change

	expected int           // how many changes the last group had
	took     time.Duration // its commit
}

// queued is a change on its way through a writer.
type queued struct {
	*change
	applied bool
	err     error         // of the group: none of it is committed, or if it is a *lostError that was sent, nobody knows
	done    chan struct{} // closed when applied and err are set
}

func newWriters(config *pgxpool.Config, options Options) *writers {
	w := &writers{seed: maphash.MakeSeed(), closing: make(chan struct{})}
	for range options.Writers {
		one := &writer{
			config:  config.ConnConfig.Copy(),
			prepare: prepareConnection(config.ConnConfig.RuntimeParams, options, min(options.LockTimeout, groupLockTimeout)),
			timeout: 2 * (options.StatementTimeout + options.LockTimeout),
			changes: make(chan *queued),
		}
		w.each = append(w.each, one)
		w.closed.Go(func() { one.run(w.closing) })
	}
	return w
}

// close ends the writers. Nobody calls do any more.
func (w *writers) close() {
	close(w.closing)
	w.closed.Wait()
}

// errNotTaken says that a caller gave up before its change was taken.
var errNotTaken = errors.New("the change was not taken")

// do has a change made in a group. With an error it was not, or nobody knows; see queued.err.
func (w *writers) do(ctx context.Context, c *change) (applied bool, err error) {
	q := &queued{change: c, done: make(chan struct{})}
	one := w.each[maphash.String(w.seed, c.key)%uint64(len(w.each))]
	select {
	case <-ctx.Done():
		return false, errNotTaken
	case one.changes <- q:
		<-q.done
		return q.applied && q.err == nil, q.err
	}
}

func (w *writer) run(closing <-chan struct{}) {
	defer w.disconnect()
	for {
		select {
		case <-closing:
			return
		case first := <-w.changes:
			group := w.gather(first)
			began := time.Now()
			err := w.commit(group)
			w.took = time.Since(began)
			for _, q := range group {
				q.err = err
				close(q.done)
			}
		}
	}
}

// gather takes the changes that wait now, in an order that no two processes lock things crosswise. Whoever
// was in the group before is about to come again: for them it waits a fraction of the time that their commit
// took. Otherwise the first of them would go alone, and all others wait for its commit.
func (w *writer) gather(first *queued) []*queued {
	group, size := []*queued{first}, first.size
	linger := time.NewTimer(w.took / lingerPart)
	defer linger.Stop()
	for len(group) < maxGroup && size < maxGroupBytes {
		q := w.next(linger.C, len(group) < w.expected)
		if q == nil {
			break
		}
		group, size = append(group, q), size+q.size
	}
	w.expected = len(group)
	slices.SortStableFunc(group, func(a, b *queued) int { return cmp.Compare(a.key, b.key) })
	return group
}

// next returns a change that waits now or, with linger, comes before that time is over; nil when none does.
func (w *writer) next(linger <-chan time.Time, wait bool) *queued {
	select {
	case q := <-w.changes:
		return q
	default:
	}
	if !wait {
		return nil
	}
	select {
	case q := <-w.changes:
		return q
	case <-linger:
		return nil
	}
}

// commit sends a group in one go: its statements are one transaction, which the end of the batch commits.
func (w *writer) commit(group []*queued) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return &lostError{err: err}
	}
	batch := &pgx.Batch{}
	for _, q := range group {
		batch.Queue(q.statement, q.args...)
	}
	results := w.conn.SendBatch(ctx, batch)
	var err error
	for _, q := range group {
		if q.applied, err = q.readFrom(results); err != nil {
			break
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return w.checked(err)
}

// checked lets go of a connection that is no use any more.
func (w *writer) checked(err error) error {
	switch {
	case err == nil:
	case w.conn.IsClosed():
		w.conn = nil
		return &lostError{err: err, sent: true}
	case codeOf(err) == readOnlyTransaction:
		w.disconnect() // the next connection may find the server that can be written
	}
	return err
}

func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil && !w.conn.IsClosed() {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, w.config.Copy())
	if err != nil {
		return err
	}
	if err := w.prepare(ctx, conn); err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	w.conn = conn
	return nil
}

func (w *writer) disconnect() {
	if w.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.conn.Close(ctx)
	w.conn = nil
}
