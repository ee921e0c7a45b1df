package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

const (
	// The check of one file stops after 100 faults.
	checkPages = `PRAGMA integrity_check(100)`

	checkKeys = `SELECT "table", rowid, parent FROM pragma_foreign_key_check LIMIT 100`

	entryOwners = `
SELECT id FROM conversations INDEXED BY conversations_by_id
WHERE id > ?1 AND EXISTS (SELECT 1 FROM entries WHERE place BETWEEN number << 32 AND number << 32 | 4294967295)
ORDER BY id LIMIT +?2`
)

// CheckIntegrity has SQLite read the whole file: pages, indexes, the full-text index, and foreign keys. It
// calls found for each fault, and returns an error only where the check could not run.
func (s *Store) CheckIntegrity(ctx context.Context, found func(what string)) error {
	return s.read(ctx, func(conn *connection) error {
		err := conn.query(checkPages, nil, func(rows *sql.Rows) error {
			var what string
			if err := rows.Scan(&what); err != nil {
				return err
			}
			if what != "ok" {
				found("PRAGMA integrity_check: " + what)
			}
			return nil
		})
		if err == nil {
			err = conn.query(checkKeys, nil, func(rows *sql.Rows) error {
				var table, parent string
				var row sql.NullInt64
				if err := rows.Scan(&table, &row, &parent); err != nil {
					return err
				}
				found(fmt.Sprintf("PRAGMA foreign_key_check: a row of %s names one of %s that is not there", table, parent))
				return nil
			})
		}
		if isCorrupt(err) {
			found(translate(err).Error())
			return nil
		}
		return err
	})
}

// EntryOwners lists the conversations that have entries, above after, without reading the rows of conversations.
func (s *Store) EntryOwners(ctx context.Context, after string, limit int) ([]string, error) {
	return s.listTexts(ctx, entryOwners, after, limit)
}
