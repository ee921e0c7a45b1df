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
// Options.Patience: they must discard the results of an earlier call.
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

// transact runs work in a transaction. If certainly nothing was committed, it retries work after a conflict
// with another transaction (work then reads again what it decides by), and after a lost connection, for as
// long as Options.Patience. If the connection was lost during the commit, committed checks whether the
// transaction was committed; nil means that work can safely be done twice. The argument what names the
// operation in errors. Once work has begun, it runs to its end even if ctx is cancelled. The caller calls
// changed afterwards.
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

// commit runs work. Doubtful means that an earlier attempt may have been committed. An error that is no
// verdict and leaves open whether an attempt was committed is a *lostError with sent set.
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
			// The refusal may be caused by our own change, which the server had not yet committed at the
			// lookup.
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

// transactOnce makes one attempt. Sent says that COMMIT may have reached the server. pgconn.SafeToRetry
// cannot be used here: it treats a COMMIT whose answer was lost as one that was never sent.
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

// commitSomething waits until earlier commits are replicated: after a crash, a primary shows commits that a
// synchronous standby may not have yet.
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

// onConnection runs work on a connection of the pool, with a timeout that only a network failure exceeds. A
// *lostError means that the connection was lost.
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
		_ = conn.Conn().Close(ctx) // the next connection may reach the server that accepts writes
	}
	return err
}

// prepareConnection sets the parameters of every session, unless the URL sets them. It uses a statement,
// because some poolers refuse connection parameters that they do not know. LockTimeout is that of the
// connection, which is at most Options.LockTimeout.
func prepareConnection(params map[string]string, options Options, lockTimeout time.Duration) func(context.Context, *pgx.Conn) error {
	settings := map[string]string{
		"statement_timeout": strconv.FormatInt(options.StatementTimeout.Milliseconds(), 10),
		"lock_timeout":      strconv.FormatInt(lockTimeout.Milliseconds(), 10),
		// The locks of a program that is suspended inside a transaction are released before the programs that
		// wait for them time out.
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
