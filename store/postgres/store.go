package postgres

import (
	"context"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options configures a Store. The zero value works.
type Options struct {
	// Existing has Open fail with continuo.ErrNotFound where it would make the tables.
	Existing bool
	// MaxConns bounds how many connections the store has, those of the writers included; WatchChanges has one more.
	// At least Writers+2. Default 16.
	MaxConns int
	// Writers is how many connections commit appends and updates of turns, in groups. Default 2.
	Writers int
	// Partitions divides the tables of an empty database by the hash of their keys, into so many parts. A
	// database keeps what it was made with, and another number is refused. Default: what the database has;
	// an empty one gets plain tables.
	Partitions int
	// StatementTimeout is how long one statement may run. Default 10 s.
	StatementTimeout time.Duration
	// LockTimeout is how long a statement waits for what another transaction has locked. The server aborts a
	// transaction that is idle for half as long, such as that of a suspended program. Default 5 s.
	LockTimeout time.Duration
	// Patience is how long operations are tried again while the database cannot be reached or cannot be
	// written, as while it starts anew or a standby takes over. Default 15 s; less than 0: they are not.
	Patience time.Duration
	// Name is what the database's own lists call the connections, unless the URL says application_name.
	// Default "continuo".
	Name string
	// NoNotify keeps other processes from being told of changes: they see them later.
	NoNotify bool
}

// Store is a continuo.Store over one PostgreSQL database. It is safe for concurrent use, and any number of
// processes may have the same database open.
type Store struct {
	place   string // of the database, as errors name it
	options Options
	pool    *pgxpool.Pool
	writers *writers
	hints   *hints // nil tells nobody
	gate    *gate
	close   func() error
}

var _ continuo.Store = (*Store)(nil)

// Close waits for the operations under way; those that wait for the database to come back give up. Later
// ones fail with continuo.ErrClosed.
func (s *Store) Close() error { return s.close() }

func (s *Store) closeAll() error {
	s.gate.close()
	s.writers.close()
	s.hints.close()
	s.pool.Close()
	return nil
}

// changed tells other processes that a change of a conversation was committed. Whoever uses transact calls
// it afterwards; write does so by itself.
func (s *Store) changed(conversationID string) { s.hints.changed(conversationID) }

// gate counts the operations under way, and lets none in once it is closed.
type gate struct {
	mu      sync.RWMutex
	closing chan struct{}
	inside  sync.WaitGroup
}

func newGate() *gate { return &gate{closing: make(chan struct{})} }

// enter reports whether an operation may begin; one that did calls leave.
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

// close returns when the last operation has left.
func (g *gate) close() {
	g.mu.Lock()
	close(g.closing)
	g.mu.Unlock()
	g.inside.Wait()
}

// wait returns false when the operation should give up instead.
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
