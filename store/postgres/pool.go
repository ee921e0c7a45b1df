package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// querier runs statements: a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
}

// read runs queries on a connection of the pool. After a lost connection it calls them again, for as long as
// Options.Patience: they begin with no results of an earlier call.
func (s *Store) read(ctx context.Context, query func(ctx context.Context, q querier) error) error {
	if !s.gate.enter() {
		return continuo.ErrClosed
	}
	defer s.gate.leave()
	return s.failed(s.retryTransient(ctx, func() error { return s.query(ctx, query) }))
}

func (s *Store) query(ctx context.Context, query func(ctx context.Context, q querier) error) error {
	return s.onConnection(ctx, func(ctx context.Context, conn *pgxpool.Conn) error { return query(ctx, conn) })
}

// transact runs work in a transaction, once or, where nothing was committed for certain, again: after a
// conflict with another transaction (work reads again what it decided by), and after a lost connection, for
// as long as Options.Patience. Where the connection was lost during the commit, committed looks whether the
// transaction was committed; nil says that work can simply be done twice. What names the operation in errors.
// Once work has begun it runs to its end, whatever becomes of ctx. The caller calls changed afterwards.
func (s *Store) transact(ctx context.Context, what string, work func(ctx context.Context, tx pgx.Tx) error, committed func(ctx context.Context, q querier) (bool, error)) error {
	if !s.gate.enter() {
		return continuo.ErrClosed
	}
	defer s.gate.leave()
	err := s.failed(s.commit(ctx, work, committed, false))
	if err != nil && !isVerdict(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// commit carries work out. Doubtful says that an earlier attempt may have been committed. An error that is no
// verdict and leaves it open whether one was is a *lostError that was sent.
func (s *Store) commit(ctx context.Context, work func(ctx context.Context, tx pgx.Tx) error, committed func(ctx context.Context, q querier) (bool, error), doubtful bool) error {
	err := s.retryTransient(ctx, func() error {
		if done, err := s.wasCommitted(ctx, doubtful, committed); done || err != nil {
			return err
		}
		sent, err := s.transactOnce(context.WithoutCancel(ctx), work)
		var lost *lostError
		if sent && errors.As(err, &lost) {
			doubtful = true
		} else if doubtful && isVerdict(err) {
			// The refusal may come from our own change, which the server had not finished when it was looked for.
			if done, lookErr := s.wasCommitted(ctx, true, committed); done || lookErr != nil {
				return lookErr
			}
		}
		return err
	})
	if doubtful && err != nil && !isVerdict(err) {
		return &lostError{err: err, sent: true}
	}
	return err
}

// transactOnce makes one attempt. Sent says that COMMIT may have reached the server: pgx is no help there, for
// pgconn.SafeToRetry takes a COMMIT whose answer was lost for one that was never sent.
func (s *Store) transactOnce(ctx context.Context, work func(ctx context.Context, tx pgx.Tx) error) (sent bool, err error) {
	err = s.onConnection(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return err
		}
		if err := work(ctx, tx); err != nil {
			_ = tx.Rollback(ctx) // if that fails, the connection is closed
			return err
		}
		sent = true
		return tx.Commit(ctx)
	})
	return sent, err
}

// commitSomething waits until what was committed before is safe: after a crash a primary shows what its
// standby, which commits have to wait for, may not have yet.
const commitSomething = `UPDATE continuo.schema_version SET version = version`

func (s *Store) wasCommitted(ctx context.Context, doubtful bool, committed func(ctx context.Context, q querier) (bool, error)) (done bool, err error) {
	if !doubtful || committed == nil {
		return false, nil
	}
	err = s.query(context.WithoutCancel(ctx), func(ctx context.Context, q querier) error {
		if done, err = committed(ctx, q); err != nil || !done {
			return err
		}
		_, err = q.Exec(ctx, commitSomething)
		return err
	})
	return done, err
}

// onConnection does work on a connection of the pool, within a time after which the network must be to
// blame. A *lostError says that the connection is gone.
func (s *Store) onConnection(ctx context.Context, work func(ctx context.Context, conn *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*(s.options.StatementTimeout+s.options.LockTimeout))
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return &lostError{err: err}
	}
	defer conn.Release()
	err = work(ctx, conn)
	switch {
	case err == nil:
	case conn.Conn().IsClosed():
		return &lostError{err: err}
	case codeOf(err) == readOnlyTransaction:
		_ = conn.Conn().Close(ctx) // the next connection may find the server that can be written
	}
	return err
}

// prepareConnection sets what holds for every statement, unless the URL has set it. It does so by a
// statement, because some poolers refuse what they do not know of a connection's parameters. LockTimeout is that of the
// connection, which is at most Options.LockTimeout.
func prepareConnection(params map[string]string, options Options, lockTimeout time.Duration) func(context.Context, *pgx.Conn) error {
	settings := map[string]string{
		"statement_timeout": strconv.FormatInt(options.StatementTimeout.Milliseconds(), 10),
		"lock_timeout":      strconv.FormatInt(lockTimeout.Milliseconds(), 10),
		// The locks of a program that is suspended inside a transaction are released before those who wait for them give up.
		"idle_in_transaction_session_timeout": strconv.FormatInt(max(options.LockTimeout/2, time.Millisecond).Milliseconds(), 10),
		"default_transaction_isolation":       "read committed",
	}
	for name := range params {
		delete(settings, name)
	}
	var statements strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&statements, "SET %s = '%s';", name, settings[name])
	}
	return func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, statements.String()).ReadAll()
		return err
	}
}
