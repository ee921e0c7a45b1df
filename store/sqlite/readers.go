package sqlite

import (
	"context"
	"database/sql"
	"errors"

	continuo "github.com/continuo-log/continuo"
)

// readers is a bounded pool of connections that cannot write. They are opened at first use.
type readers struct {
	db      *sql.DB
	idle    chan *connection // as many as MaxReaders; nil is a connection that is not open yet
	closing chan struct{}
}

func newReaders(db *sql.DB, size int) *readers {
	r := &readers{db: db, idle: make(chan *connection, size), closing: make(chan struct{})}
	for range size {
		r.idle <- nil
	}
	return r
}

// do runs a query on a connection that no other goroutine uses meanwhile.
func (r *readers) do(ctx context.Context, query func(*connection) error) error {
	select {
	case <-r.closing:
		return continuo.ErrClosed
	default:
	}
	select {
	case <-r.closing:
		return continuo.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case conn := <-r.idle:
		err := error(nil)
		if conn == nil {
			conn, err = r.open(ctx)
		}
		defer func() { r.idle <- conn }()
		if err != nil {
			return err
		}
		return query(conn)
	}
}

func (r *readers) open(ctx context.Context) (*connection, error) {
	conn, err := newConnection(ctx, r.db)
	if err != nil {
		return nil, err
	}
	if err := conn.script(`PRAGMA query_only = on`); err != nil {
		return nil, errors.Join(err, conn.close())
	}
	return conn, nil
}

// close waits for the queries in progress.
func (r *readers) close() error {
	close(r.closing)
	var errs []error
	for range cap(r.idle) {
		if conn := <-r.idle; conn != nil {
			errs = append(errs, conn.close())
		}
	}
	return errors.Join(errs...)
}
