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

	// A role without pg_monitor sees that there are standbys, and nothing of them.
	selectStandbys = `
SELECT coalesce(application_name, ''), coalesce(state, ''), coalesce(sync_state, ''), coalesce(extract(epoch FROM replay_lag), 0)::float8
FROM pg_stat_replication ORDER BY 1 LIMIT 20`

	// countSome counts exactly what is little; %s is a table.
	countSome = `SELECT count(*) FROM (SELECT FROM continuo.%s LIMIT 100000) AS counted`
	enough    = 100_000

	// What ANALYZE has estimated, -1 where it has not run yet.
	estimate = `
SELECT coalesce(sum(reltuples), -1)::bigint FROM pg_class
WHERE relnamespace = 'continuo'::regnamespace AND relkind = 'r' AND relname ~ ('^' || $1 || '(_p[0-9]+)?$') AND reltuples >= 0`
)

// Facts is what a look at a database tells.
type Facts struct {
	Place    string // the database, without a password
	Server   string // version of the server
	Encoding string // of the database; anything but UTF8 is a fault
	// Made says that there is a schema; Schema is its version, Partitions into how many parts tables are divided.
	Made               bool
	Schema, Partitions int
	// Conversations and Entries are exact up to 100 000, else what the server estimates.
	Conversations, Entries int64
	Bytes                  int64 // of the database
	// Clock is how far the server's clock is ahead of this machine's.
	Clock time.Duration
	// Listens says that what one connection notifies arrives at another one.
	Listens bool
	// Standby says that this server takes no writes. Standbys follow it.
	Standby  bool
	Standbys []Standby
	// Fsync and Durable (synchronous_commit) say that what was committed survives a crash of the server.
	Fsync, Durable              bool
	Connections, MaxConnections int // open ones of all programs, and how many there may be
}

// Standby is a server that follows another one.
type Standby struct {
	Name, State, Sync string
	Lag               time.Duration // how far what it shows is behind
}

// inspectTimeout bounds a look; listenTimeout how long a notification may take.
const (
	inspectTimeout = 30 * time.Second
	listenTimeout  = 2 * time.Second
)

// Inspect looks at the database of a URL without changing it. After an error the facts are those that were
// found before it. No error shows the password.
func Inspect(ctx context.Context, url string) (found Facts, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	config, err := configure(url, withDefaults(Options{}))
	if err != nil {
		return found, err
	}
	found.Place = placeOf(config.ConnConfig.Config)
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return found, fmt.Errorf("inspect %s: %w", found.Place, translate(&lostError{err: err}))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, look := range []func(context.Context, *pgx.Conn) error{found.server, found.clock, found.schema, found.standbys, found.listens} {
		if err := look(ctx, conn); err != nil {
			return found, fmt.Errorf("inspect %s: %w", found.Place, translate(err))
		}
	}
	return found, nil
}

func (f *Facts) server(ctx context.Context, conn *pgx.Conn) error {
	return conn.QueryRow(ctx, selectServer).Scan(&f.Server, &f.Encoding, &f.Standby, &f.Bytes, &f.Fsync, &f.Durable, &f.MaxConnections, &f.Connections)
}

// clock compares the server's clock with the middle of the time that asking took.
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

// countOf counts the rows of a table, or has them estimated where they are many.
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

// listens has one connection notify another one, on a channel that nobody else listens on. A standby cannot.
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
