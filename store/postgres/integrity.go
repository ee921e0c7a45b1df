package postgres

import (
	"context"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	selectTables = `SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace = 'continuo'::regnamespace AND c.relkind = 'r' ORDER BY 1`

	selectIndexes = `
SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam
WHERE c.relnamespace = 'continuo'::regnamespace AND c.relkind = 'i' AND a.amname = 'btree' ORDER BY 1`

	// The schema of the extension amcheck, where it is installed and may be used.
	selectAmcheck = `
SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
JOIN pg_proc AS p ON p.pronamespace = n.oid AND p.proname = 'bt_index_check' AND has_function_privilege(p.oid, 'EXECUTE')
WHERE e.extname = 'amcheck' LIMIT 1`

	// readTable reads every row whole, its TOAST values included; %s is a table.
	readTable = `SELECT count(*), coalesce(sum(length(t::text)), 0) FROM %s AS t`

	// checkIndex compares an index with its table; %s is the schema of amcheck.
	checkIndex = `SELECT %s.bt_index_check($1::regclass, true)`

	noTimeout = `SET LOCAL statement_timeout = 0`

	entryOwners = `
WITH RECURSIVE owners (id) AS (
  (SELECT conversation_id FROM continuo.entries WHERE conversation_id > $1 ORDER BY conversation_id LIMIT 1)
  UNION ALL
  SELECT (SELECT conversation_id FROM continuo.entries WHERE conversation_id > id ORDER BY conversation_id LIMIT 1) FROM owners WHERE id IS NOT NULL)
SELECT id FROM owners WHERE id IS NOT NULL LIMIT $2`
)

// CheckIntegrity has the server read every row of every table and, where the extension amcheck is installed, compare
// every index with its table. It calls found for each table or index that fails, and returns an error only where the
// check could not run. Pages with a wrong checksum are found where the cluster has data checksums.
func (s *Store) CheckIntegrity(ctx context.Context, found func(what string)) error {
	if !s.gate.enter() {
		return continuo.ErrClosed
	}
	defer s.gate.leave()
	return s.failed(s.checkIntegrity(ctx, found))
}

func (s *Store) checkIntegrity(ctx context.Context, found func(what string)) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return &lostError{err: err}
	}
	defer conn.Release()
	tables, err := textsOf(ctx, conn, selectTables)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := checkOne(ctx, conn, found, "table "+table, fmt.Sprintf(readTable, table)); err != nil {
			return err
		}
	}
	schemas, err := textsOf(ctx, conn, selectAmcheck)
	if err != nil || len(schemas) == 0 {
		return err
	}
	indexes, err := textsOf(ctx, conn, selectIndexes)
	if err != nil {
		return err
	}
	for _, index := range indexes {
		if err := checkOne(ctx, conn, found, "index "+index, fmt.Sprintf(checkIndex, schemas[0]), index); err != nil {
			return err
		}
	}
	return nil
}

func textsOf(ctx context.Context, conn *pgxpool.Conn, query string) ([]string, error) {
	rows, _ := conn.Query(ctx, query)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// checkOne runs a statement that fails where what it reads is damaged.
func checkOne(ctx context.Context, conn *pgxpool.Conn, found func(what string), what, statement string, args ...any) error {
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, noTimeout); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
	if isDamage(err) {
		found(fmt.Sprintf("%s: %v", what, err))
		return nil
	}
	return err
}

// isDamage reports whether the server could not read what it stores: the classes of internal and system errors.
func isDamage(err error) bool {
	code := codeOf(err)
	return strings.HasPrefix(code, "XX") || strings.HasPrefix(code, "58")
}

// EntryOwners lists the conversations that have entries, above after, from the index of entries alone.
func (s *Store) EntryOwners(ctx context.Context, after string, limit int) ([]string, error) {
	return s.listKeys(ctx, "list owners of entries", entryOwners, after, limit)
}
