package postgres

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"math/rand/v2"
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

	// lingerPart is the divisor of the last commit's duration that gives how long a group waits for the
	// callers of the previous group.
	lingerPart = 8

	// groupLockTimeout is how long a group waits for a lock of another process's transaction. After it, each
	// of the changes is made alone, so that one conversation does not block the others.
	groupLockTimeout = 100 * time.Millisecond
)

// change is a write to one conversation by one statement. A statement that affects or returns no row has
// written nothing; the change is then refused.
type change struct {
	conversationID string // "" for a change of no conversation
	key            string // orders the changes and assigns them to writers
	statement      string
	args           []any
	size           int // of args in bytes, approximately
	// scan reads the row that the statement returns; nil when the row is not needed.
	scan func(row pgx.Row) error
	// why returns the reason of a refusal. Nil means that the change should no longer be refused.
	why func(ctx context.Context, q querier) error
	// committed reports whether the change was committed although its connection was lost. Nil: the change
	// can safely be made twice.
	committed func(ctx context.Context, q querier) (bool, error)
	// races means that a unique violation may be caused by a concurrent change; why then finds the reason.
	races bool
}

// write makes a change. If the caller gives up while the change waits to be taken, nothing has changed; once
// taken, the change ends soon, and write waits for its result.
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

// settle makes a change in a group. If the result is uncertain, it makes the change alone.
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
	return s.commit(ctx, c.inOwnTransaction, c.committed, doubtful)
}

// inOwnTransaction makes the change in a transaction of its own.
func (c *change) inOwnTransaction(ctx context.Context, tx pgx.Tx) error {
	applied, err := c.read(ctx, tx)
	if err == nil && !applied {
		if err = c.why(ctx, tx); err == nil {
			return errRetry
		}
	}
	if c.races && isTaken(err) {
		return errRetry
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

// readFrom reads the change's result from those of a group.
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

// writers assign changes to connections of their own, those of one conversation always to the same one.
type writers struct {
	seed    maphash.Seed
	process int64 // tells the writers of this store from those of others
	each    []*writer
	closing chan struct{}
	closed  sync.WaitGroup
}

// writer has one connection. Its goroutine takes a change and all others that wait at that moment, and
// commits them together: while the database works, the next group gathers.
type writer struct {
	config  *pgx.ConnConfig
	prepare func(context.Context, *pgx.Conn) error
	timeout time.Duration // of a group
	conn    *pgx.Conn     // nil: not connected
	changes chan *queued  // unbuffered: a caller whose change is not taken still holds it

	expected int           // the number of changes in the last group
	took     time.Duration // the duration of its commit
}

// queued is a change on its way through a writer.
type queued struct {
	*change
	applied bool
	err     error         // of the group: none of it is committed; with a *lostError with sent, this is unknown
	done    chan struct{} // closed when applied and err are set
}

func newWriters(config *pgxpool.Config, options Options) *writers {
	w := &writers{seed: maphash.MakeSeed(), process: rand.Int64N(1 << 48), closing: make(chan struct{})}
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

// close ends the writers. No call of do may follow.
func (w *writers) close() {
	close(w.closing)
	w.closed.Wait()
}

// errNotTaken means that a caller gave up before its change was taken.
var errNotTaken = errors.New("the change was not taken")

// do makes a change in a group. With an error, the change was not made or its result is unknown; see
// queued.err.
func (w *writers) do(ctx context.Context, c *change) (applied bool, err error) {
	q := &queued{change: c, done: make(chan struct{})}
	one := w.each[w.of(c.key)]
	select {
	case <-ctx.Done():
		return false, errNotTaken
	case one.changes <- q:
		<-q.done
		return q.applied && q.err == nil, q.err
	}
}

// of is the index of the writer that makes the changes with a key.
func (w *writers) of(key string) uint64 { return maphash.String(w.seed, key) % uint64(len(w.each)) }

// number identifies the writer of a key among those of all processes, as far as chance can.
func (w *writers) number(key string) int64 { return w.process<<8 | int64(w.of(key)&0xff) }

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

// gather takes the changes that wait now, in an order that prevents deadlocks between processes. The callers
// of the previous group are about to send their next changes, and gather waits for them for a fraction of
// that commit's duration. Otherwise the first of them would be committed alone while all others wait.
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

// next returns a change that waits now or, with linger, arrives before that time is over; nil when there is
// none.
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

// commit sends a group in one round trip: its statements are one transaction, which the end of the batch
// commits.
func (w *writer) commit(group []*queued) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return &lostError{err: err}
	}
	together, others := joinable(group)
	batch := &pgx.Batch{}
	if len(together) > 0 {
		appendTogether(batch, together)
	}
	for _, q := range others {
		batch.Queue(q.statement, q.args...)
	}
	results := w.conn.SendBatch(ctx, batch)
	var err error
	if len(together) > 0 {
		err = readTogether(results, together)
	}
	for _, q := range others {
		if err != nil {
			break
		}
		q.applied, err = q.readFrom(results)
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return w.checked(err)
}

// joinable separates from a group, which is ordered by key, the appends of one entry that one statement can make
// together: the first of each conversation. Without two of them there are none.
//
// The statement locks the conversations in the order of the group as long as the database joins them with nested
// loops. Should it choose another order and meet a group of another process that has the same conversations, then
// groupLockTimeout ends one of both, and its changes are made alone.
func joinable(group []*queued) (together, others []*queued) {
	begun := "" // the conversation of the change before
	for _, q := range group {
		if q.statement == appendOne && q.conversationID != begun {
			together = append(together, q)
		} else {
			others = append(others, q)
		}
		begun = q.conversationID
	}
	if len(together) < 2 {
		return nil, group
	}
	return together, others
}

// readTogether reads which of the appends the statement made.
func readTogether(results pgx.BatchResults, appends []*queued) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	made := make(map[string]bool, len(appends))
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { made[id] = true; return nil }); err != nil {
		return err
	}
	for _, q := range appends {
		q.applied = made[q.conversationID]
	}
	return nil
}

// checked closes a connection that can no longer be used.
func (w *writer) checked(err error) error {
	switch {
	case err == nil:
	case w.conn.IsClosed():
		w.conn = nil
		return &lostError{err: err, sent: true}
	case codeOf(err) == readOnlyTransaction:
		w.disconnect() // the next connection may reach the server that accepts writes
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
