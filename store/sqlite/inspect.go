package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/continuo-log/continuo/store/internal/form"
)

// Facts is the result of an inspection of a file.
type Facts struct {
	Schema, Conversations, Entries int64
	// Damage lists what PRAGMA integrity_check reports, and the entries that do not match their checksums, a
	// few findings of each at most; empty when the file is sound.
	Damage []string
}

// maxDamage bounds how many findings are returned.
const maxDamage = 5

// Inspect reads a file without changing it, through a read-only connection of its own. No store of this
// process may have the file open meanwhile, because that breaks SQLite's locks. A deleted conversation that
// forks begin with counts as one. With an error it returns the facts found so far.
func Inspect(ctx context.Context, path string) (found Facts, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("inspect %s: %w", path, explain(path, err))
		}
	}()
	absolute, err := filepath.Abs(path)
	if err != nil {
		return found, err
	}
	name := url.URL{Scheme: "file", Path: slashed(absolute), RawQuery: "mode=ro&_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, fact := range []struct {
		query string
		into  *int64
	}{
		{`PRAGMA user_version`, &found.Schema},
		{`SELECT count(*) FROM conversations`, &found.Conversations},
		{`SELECT count(*) FROM entries`, &found.Entries},
	} {
		if err := db.QueryRowContext(ctx, fact.query).Scan(fact.into); err != nil {
			return found, err
		}
	}
	if found.Damage, err = damageOf(ctx, db); err != nil || len(found.Damage) > 0 {
		return found, err // reading a damaged file may fail
	}
	found.Damage, err = damagedEntries(ctx, db)
	return found, err
}

func damageOf(ctx context.Context, db *sql.DB) (damage []string, err error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf(`PRAGMA integrity_check(%d)`, maxDamage))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var finding string
		if err := rows.Scan(&finding); err != nil {
			return damage, err
		}
		if finding != "ok" {
			damage = append(damage, finding)
		}
	}
	return damage, rows.Err()
}

// damagedEntries reads all entries and compares them with their checksums.
func damagedEntries(ctx context.Context, db *sql.DB) (damage []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT coalesce(conversations.id, conversation), seq, body, checksum FROM entries LEFT JOIN conversations ON number = conversation`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var conversation, body sql.RawBytes
	var seq, checksum int64
	for rows.Next() && len(damage) < maxDamage {
		if err := rows.Scan(&conversation, &seq, &body, &checksum); err != nil {
			return damage, err
		}
		if form.Checksum(body) != checksum {
			damage = append(damage, fmt.Sprintf("entry %d of conversation %s does not match its checksum", seq, conversation))
		}
	}
	return damage, rows.Err()
}
