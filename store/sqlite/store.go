package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/continuo-log/continuo/maintenance"
)

// Options configures a Store. The zero value works.
type Options struct {
	// Existing makes Open fail with continuo.ErrNotFound when the file is missing or empty, instead of
	// creating it.
	Existing bool
	// MaxReaders bounds how many reads run at once; further reads wait. Default: the number of processors, at
	// least 4.
	MaxReaders int
	// BusyTimeout bounds how long an operation waits for a write of another process. Default 10 s.
	BusyTimeout time.Duration
	// Synchronous says what a commit waits for. Default Full.
	Synchronous Synchronous
	// Now is the clock of turns and their leases. Default time.Now.
	Now func() time.Time

	maxPages int // of the file, for tests of a full disk; 0 for no limit
}

// Synchronous says what an acknowledged write survives.
type Synchronous int

const (
	// Full waits for the disk: a write survives a crash of the machine.
	Full Synchronous = iota
	// Normal does not wait: a write survives a crash of the process, but a crash of the machine may lose the
	// newest ones. For tests and for data that can be produced again.
	Normal
)

// Store is an maintenance.Store over one SQLite file. It is safe for concurrent use, and several processes
// may have the same file open.
type Store struct {
	path    string
	db      *sql.DB
	writer  *writer
	readers *readers
	now     func() time.Time
	close   func() error
}

var _ maintenance.Store = (*Store)(nil)

// Open opens the database at path and brings its schema up to date. It creates the file (mode 0600) and its
// folder (mode 0700) when they are missing. It fails with continuo.ErrReadOnly when the file or its folder
// cannot be written, with continuo.ErrFull, and with continuo.ErrNewerSchema; it does not change a file that
// is not a database of Continuo. The caller must Close the store.
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	path, err := prepareFile(path, options.Existing)
	if err != nil {
		return nil, err
	}
	options = withDefaults(options)
	db, err := sql.Open("sqlite", dataSource(path, options))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	conn, err := openWriter(ctx, db, path, options.BusyTimeout)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &Store{path: path, db: db, writer: newWriter(conn, options.BusyTimeout), readers: newReaders(db, options.MaxReaders), now: options.Now}
	s.close = sync.OnceValue(s.closeAll)
	return s, nil
}

func withDefaults(options Options) Options {
	if options.MaxReaders == 0 {
		options.MaxReaders = max(4, runtime.GOMAXPROCS(0))
	}
	if options.BusyTimeout == 0 {
		options.BusyTimeout = 10 * time.Second
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return options
}

// Close waits for the reads and writes in progress. Later ones fail with continuo.ErrClosed.
func (s *Store) Close() error { return s.close() }

func (s *Store) closeAll() error {
	if err := errors.Join(s.readers.close(), s.writer.close(), s.db.Close()); err != nil {
		return fmt.Errorf("close %s: %w", s.path, translate(err))
	}
	return nil
}

// HasResidue is part of continuo.ResidueStore.
func (s *Store) HasResidue() bool { return s.writer.residue.Load() }

// write runs a change in a transaction that other changes may share; see change.apply.
func (s *Store) write(ctx context.Context, apply func(*connection) error) error {
	return s.failed(s.writer.do(ctx, apply))
}

// read runs a query on a connection of the pool.
func (s *Store) read(ctx context.Context, query func(*connection) error) error {
	return s.failed(s.readers.do(ctx, query))
}

// failed adds the name of the file to errors of the database; the caller adds its own text to verdicts.
func (s *Store) failed(err error) error {
	if err == nil || isVerdict(err) {
		return err
	}
	return fmt.Errorf("database %s: %w", s.path, translate(err))
}
