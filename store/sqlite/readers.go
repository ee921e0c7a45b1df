package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	continuo "github.com/continuo-log/continuo"
)

// readers is a bounded pool of connections that cannot write. They are opened at first use. The one that was used last
// is used next: its pages are in the caches of the processor.
type readers struct {
	db      *sql.DB
	slots   chan struct{} // as many as MaxReaders; whoever takes one may use a connection
	closing chan struct{}

	mu   sync.Mutex
	idle []*connection
}

func newReaders(db *sql.DB, size int) *readers {
	r := &readers{db: db, slots: make(chan struct{}, size), closing: make(chan struct{})}
	for range size {
		r.slots <- struct{}{}
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
	case <-r.slots:
		defer func() { r.slots <- struct{}{} }()
		conn, err := r.take(ctx)
		if err != nil {
			return err
		}
		defer r.give(conn)
		return query(conn)
	}
}

// take returns an idle connection, or opens one.
func (r *readers) take(ctx context.Context) (*connection, error) {
	r.mu.Lock()
	if n := len(r.idle); n > 0 {
		conn := r.idle[n-1]
		r.idle = r.idle[:n-1]
		r.mu.Unlock()
		return conn, nil
	}
	r.mu.Unlock()
	return r.open(ctx)
}

func (r *readers) give(conn *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, conn)
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
	for range cap(r.slots) {
		<-r.slots
	}
	for _, conn := range r.idle {
		errs = append(errs, conn.close())
	}
	return errors.Join(errs...)
}
