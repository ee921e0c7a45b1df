package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Migrations are named NNNN_what.sql, numbered from 1 without a gap, and never changed once released.
// continuo.schema_version holds the number of the last one that was applied to a database.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

const (
	// Only one process at a time migrates. The lock's number is arbitrary and used by this program only.
	lockMigrations = `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true), pg_advisory_xact_lock(4856930273144520)`

	// The catalogs are read as tables: to_regclass would answer from the connection's cache, and miss a
	// schema that another process created while this one waited for the lock.
	versionIsKept = `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'continuo' AND tablename = 'schema_version')`

	selectVersion = `SELECT version, partitions FROM continuo.schema_version`

	createVersion = `
CREATE SCHEMA IF NOT EXISTS continuo;

CREATE TABLE continuo.schema_version (
  version    int NOT NULL, -- the last migration
  partitions int NOT NULL  -- of each table that is divided; 0: none is
)`

	insertVersion = `INSERT INTO continuo.schema_version (version, partitions) VALUES (0, $1)`
	updateVersion = `UPDATE continuo.schema_version SET version = $1`

	selectReadOnly = `SELECT current_setting('transaction_read_only') = 'on'`
)

// bringUpToDate reads the schema's version and migrates a schema that is older than today's.
func (s *Store) bringUpToDate(ctx context.Context) error {
	all, err := form.Migrations(migrationFiles)
	if err != nil {
		return err
	}
	err = s.retryTransient(ctx, func() error {
		return s.onConnection(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			if err := checkWritable(ctx, conn); err != nil {
				return err
			}
			return migrate(ctx, conn, all, s.options)
		})
	})
	if err == nil || isVerdict(err) || errors.Is(err, continuo.ErrNewerSchema) {
		return err
	}
	return translate(err)
}

// checkWritable fails if a write would fail.
func checkWritable(ctx context.Context, conn *pgxpool.Conn) error {
	var readOnly bool
	if err := conn.QueryRow(ctx, selectReadOnly).Scan(&readOnly); err != nil || !readOnly {
		return err
	}
	_, err := conn.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS continuo`)
	return err
}

// schemaVersion is the version of a database's schema; the zero value is that of an empty database.
type schemaVersion struct {
	made                bool
	version, partitions int
}

func readVersion(ctx context.Context, q querier) (v schemaVersion, err error) {
	if err := q.QueryRow(ctx, versionIsKept).Scan(&v.made); err != nil || !v.made {
		return v, err
	}
	err = q.QueryRow(ctx, selectVersion).Scan(&v.version, &v.partitions)
	return v, err
}

// migrate brings the schema up to date, in one transaction. Several processes may call it at the same time:
// the later ones find it done. A current schema is only read.
func migrate(ctx context.Context, conn *pgxpool.Conn, all []string, options Options) error {
	partitions := options.Partitions
	version, err := readVersion(ctx, conn)
	if err != nil {
		return err
	}
	if options.Existing && !version.made {
		return fmt.Errorf("there are no tables: %w", continuo.ErrNotFound)
	}
	if err := version.check(len(all), partitions); err != nil || version.version == len(all) {
		return err
	}
	return pgx.BeginFunc(context.WithoutCancel(ctx), conn, func(tx pgx.Tx) error {
		return migrateLocked(context.WithoutCancel(ctx), tx, all, partitions)
	})
}

func migrateLocked(ctx context.Context, tx pgx.Tx, all []string, partitions int) error {
	if _, err := tx.Exec(ctx, lockMigrations); err != nil {
		return err
	}
	version, err := readVersion(ctx, tx)
	if err == nil {
		err = version.check(len(all), partitions)
	}
	if err == nil && !version.made {
		err = makeVersion(ctx, tx, partitions)
		version.partitions = partitions
	}
	if err != nil {
		return err
	}
	for i, text := range all[version.version:] {
		if err := script(ctx, tx, partition(text, version.partitions)); err != nil {
			return fmt.Errorf("migration %d: %w", version.version+i+1, err)
		}
	}
	_, err = tx.Exec(ctx, updateVersion, len(all))
	return err
}

func makeVersion(ctx context.Context, tx pgx.Tx, partitions int) error {
	if err := script(ctx, tx, createVersion); err != nil {
		return fmt.Errorf("make the schema continuo (its role needs the right CREATE on the database): %w", err)
	}
	_, err := tx.Exec(ctx, insertVersion, partitions)
	return err
}

// script runs several statements that take no arguments.
func script(ctx context.Context, tx pgx.Tx, text string) error {
	_, err := tx.Conn().PgConn().Exec(ctx, text).ReadAll()
	return err
}

// check refuses the schema of a newer version, and a number of partitions other than the schema's.
func (v schemaVersion) check(known, partitions int) error {
	if v.version > known {
		return fmt.Errorf("%w: its schema has version %d, this program knows versions up to %d; install a newer continuo",
			continuo.ErrNewerSchema, v.version, known)
	}
	if v.made && partitions > 0 && partitions != v.partitions {
		return fmt.Errorf("%w: its tables were made with %d partitions, not %d; a database keeps its number: leave store.partitions out, or copy everything into an empty database",
			continuo.ErrInvalid, v.partitions, partitions)
	}
	return nil
}
