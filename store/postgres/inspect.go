package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	selectServer = `
SELECT current_setting('server_version'), current_setting('server_encoding'), pg_is_in_recovery(), pg_database_size(current_database()),
  current_setting('fsync') = 'on', current_setting('synchronous_commit') <> 'off',
  current_setting('max_connections')::int, (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`

	selectClock = `SELECT clock_timestamp()`

	// A role without pg_monitor sees that there are standbys, but none of their columns.
	selectStandbys = `
SELECT coalesce(application_name, ''), coalesce(state, ''), coalesce(sync_state, ''), coalesce(extract(epoch FROM replay_lag), 0)::float8
FROM pg_stat_replication ORDER BY 1 LIMIT 20`

	// countSome counts exactly up to a limit; %s is a table.
	countSome = `SELECT count(*) FROM (SELECT FROM continuo.%s LIMIT 100000) AS counted`
	enough    = 100_000

	// The estimate of ANALYZE; -1 before its first run.
	estimate = `
SELECT coalesce(sum(reltuples), -1)::bigint FROM pg_class
WHERE relnamespace = 'continuo'::regnamespace AND relkind = 'r' AND relname ~ ('^' || $1 || '(_p[0-9]+)?$') AND reltuples >= 0`
)

// Facts is the result of an inspection of a database.
type Facts struct {
	Location string // the database, without a password
	Server   string // version of the server
	Encoding string // of the database; anything other than UTF8 is an error
	// Made says whether the schema exists; Schema is its version, Partitions the number of parts that tables
	// are divided into.
	Made               bool
	Schema, Partitions int
	// Conversations and Entries are exact up to 100 000, and the server's estimates above.
	Conversations, Entries int64
	Bytes                  int64 // of the database
	// Clock is how far the server's clock is ahead of this machine's.
	Clock time.Duration
	// Listens says whether a notification of one connection arrives at another.
	Listens bool
	// Standby says that this server accepts no writes. Standbys are the servers that follow it.
	Standby  bool
	Standbys []Standby
	// Fsync and Durable (synchronous_commit) say whether commits survive a crash of the server.
	Fsync, Durable              bool
	Connections, MaxConnections int // open connections of all programs, and the server's limit
}

// Standby is a server that follows another one.
type Standby struct {
	Name, State, Sync string
	Lag               time.Duration // how far its data are behind
}

// inspectTimeout bounds an inspection; listenTimeout bounds the wait for a notification.
const (
	inspectTimeout = 30 * time.Second
	listenTimeout  = 2 * time.Second
)

// Inspect inspects the database of a URL without changing it. With an error it returns the facts found so
// far. No error shows the password.
func Inspect(ctx context.Context, url string) (found Facts, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	config, err := configure(url, withDefaults(Options{}))
	if err != nil {
		return found, err
	}
	found.Location = locationOf(config.ConnConfig.Config)
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return found, fmt.Errorf("inspect %s: %w", found.Location, translate(&lostError{err: err}))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, look := range []func(context.Context, *pgx.Conn) error{found.server, found.clock, found.schema, found.standbys, found.listens} {
		if err := look(ctx, conn); err != nil {
			return found, fmt.Errorf("inspect %s: %w", found.Location, translate(err))
		}
	}
	return found, nil
}

func (f *Facts) server(ctx context.Context, conn *pgx.Conn) error {
	return conn.QueryRow(ctx, selectServer).Scan(&f.Server, &f.Encoding, &f.Standby, &f.Bytes, &f.Fsync, &f.Durable, &f.MaxConnections, &f.Connections)
}

// clock compares the server's clock with the midpoint of the query's duration on this machine.
func (f *Facts) clock(ctx context.Context, conn *pgx.Conn) error {
	var there time.Time
	before := time.Now()
	err := conn.QueryRow(ctx, selectClock).Scan(&there)
	took := time.Since(before)
	f.Clock = there.Sub(before.Add(took / 2))
	return err
}

func (f *Facts) schema(ctx context.Context, conn *pgx.Conn) error {
	version, err := readVersion(ctx, conn)
	if err != nil || !version.made {
		return err
	}
	f.Made, f.Schema, f.Partitions = true, version.version, version.partitions
	if f.Conversations, err = countOf(ctx, conn, "conversations"); err == nil {
		f.Entries, err = countOf(ctx, conn, "entries")
	}
	return err
}

// countOf counts the rows of a table exactly if they are few, and returns an estimate otherwise.
func countOf(ctx context.Context, conn *pgx.Conn, table string) (n int64, err error) {
	if err := conn.QueryRow(ctx, fmt.Sprintf(countSome, table)).Scan(&n); err != nil || n < enough {
		return n, err
	}
	var estimated int64
	err = conn.QueryRow(ctx, estimate, table).Scan(&estimated)
	return max(n, estimated), err
}

func (f *Facts) standbys(ctx context.Context, conn *pgx.Conn) error {
	rows, _ := conn.Query(ctx, selectStandbys)
	standbys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Standby, err error) {
		var lag float64
		err = row.Scan(&s.Name, &s.State, &s.Sync, &lag)
		s.Lag = time.Duration(lag * float64(time.Second))
		return s, err
	})
	f.Standbys = standbys
	return err
}

// listens sends a notification from one connection to another on a channel that no other process uses. A
// standby cannot notify.
func (f *Facts) listens(ctx context.Context, conn *pgx.Conn) error {
	if f.Standby {
		return nil
	}
	other, err := pgx.ConnectConfig(ctx, conn.Config())
	if err != nil {
		return &lostError{err: err}
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	channel := pgx.Identifier{"continuo_probe_" + strings.ToLower(rand.Text())}.Sanitize()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	if _, err := other.Exec(ctx, "NOTIFY "+channel); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	_, err = conn.WaitForNotification(waiting)
	f.Listens = err == nil
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return err
}
