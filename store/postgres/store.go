package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/continuo-log/continuo/maintenance"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options configures a Store. The zero value works.
type Options struct {
	// Existing makes Open fail with continuo.ErrNotFound instead of creating the tables.
	Existing bool
	// MaxConns bounds the number of connections of the store, those of the writers included; WatchChanges has
	// one more. At least Writers+2. Default 16.
	MaxConns int
	// Writers is the number of connections that commit appends and updates of turns, in groups. Default 2.
	Writers int
	// Partitions divides the tables of an empty database into so many parts by the hash of their keys. It is
	// fixed when the tables are created, and another number is refused. Default: the database's number; an
	// empty one gets plain tables.
	Partitions int
	// StatementTimeout bounds how long one statement runs. Default 10 s.
	StatementTimeout time.Duration
	// LockTimeout bounds how long a statement waits for a lock of another transaction. The server aborts a
	// transaction that is idle for half as long, such as that of a suspended program. Default 5 s.
	LockTimeout time.Duration
	// Patience is how long operations are retried while the database cannot be reached or accepts no writes,
	// as during a restart or a failover. Default 15 s; less than 0: no retries.
	Patience time.Duration
	// Name is the application_name of the connections, unless the URL has one. Default "continuo".
	Name string
	// NoNotify turns notifications of other processes off: they see changes later.
	NoNotify bool
}

// Store is an maintenance.Store over one PostgreSQL database. It is safe for concurrent use, and any number of
// processes may have the same database open.
type Store struct {
	location string // the database, as errors name it
	options  Options
	pool     *pgxpool.Pool
	writers  *writers
	hints    *hints // nil: no notifications
	gate     *gate
	close    func() error
}

var _ maintenance.Store = (*Store)(nil)

// Close waits for the operations in progress; retries of an unavailable database stop. Later ones fail with
// continuo.ErrClosed.
func (s *Store) Close() error { return s.close() }

func (s *Store) closeAll() error {
	s.gate.close()
	s.writers.close()
	s.hints.close()
	s.pool.Close()
	return nil
}

// changed notifies other processes that a change of a conversation was committed. A caller of transact calls
// it afterwards; write calls it itself.
func (s *Store) changed(conversationID string) { s.hints.changed(conversationID) }

// gate counts the operations in progress, and refuses new ones once it is closed.
type gate struct {
	mu      sync.RWMutex
	closing chan struct{}
	inside  sync.WaitGroup
}

func newGate() *gate { return &gate{closing: make(chan struct{})} }

// enter reports whether an operation may begin; if so, the caller calls leave at its end.
func (g *gate) enter() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	select {
	case <-g.closing:
		return false
	default:
		g.inside.Add(1)
		return true
	}
}

func (g *gate) leave() { g.inside.Done() }

// close returns when the last operation has called leave.
func (g *gate) close() {
	g.mu.Lock()
	close(g.closing)
	g.mu.Unlock()
	g.inside.Wait()
}

// wait pauses between retries and returns false when the operation should stop retrying.
func (g *gate) wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-g.closing:
		return false
	case <-timer.C:
		return true
	}
}
