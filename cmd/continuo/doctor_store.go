package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/continuo-log/continuo/store/sqlite"
)

// lowDisk is how little free disk is worth a warning, noDisk how little is a fault, in bytes.
const (
	lowDisk = 500_000_000
	noDisk  = 10_000_000
)

// store checks the file of the logs. It looks at the file through a connection of its own, closed again
// before the store is opened: SQLite's locks do not bear both in one process.
func (d *diagnosis) store(ctx context.Context, path string) {
	folder := filepath.Dir(path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add("store", good, "%s is not there yet; the first use makes it", path)
		d.folder(folder)
		return
	case err != nil:
		d.add("store", bad, "%s: %s", path, err)
		return
	}
	found, readErr := inspect(ctx, path)
	useErr := use(ctx, path)
	if readErr != nil && useErr == nil {
		d.add("store", bad, "%s cannot be read: %s", path, readErr)
	}
	if readErr == nil {
		d.add("store", good, "%s, %s, schema version %d, %s with %s", path, byteSize(info.Size()+sizeOf(path+"-wal")),
			found.schema, count(found.conversations, "conversation"), count(found.entries, "entry"))
		if len(found.damage) == 0 {
			d.add("store", good, "the file is sound (PRAGMA integrity_check)")
		}
	}
	for _, damage := range found.damage {
		d.add("store", bad, "the file is damaged: %s; restore a backup, or save what can be read with sqlite3's .recover", damage)
	}
	if useErr != nil {
		d.add("store", bad, "it cannot be used: %s", useErr)
	} else if readErr == nil {
		d.add("store", good, "it can be written")
	}
	d.disk(folder)
}

// use opens and closes the store as every command does.
func use(ctx context.Context, path string) error {
	opened, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	return opened.Close()
}

// folder checks whether a file can be made in a folder that may not be there yet.
func (d *diagnosis) folder(folder string) {
	for {
		info, err := os.Stat(folder)
		if errors.Is(err, fs.ErrNotExist) && filepath.Dir(folder) != folder {
			folder = filepath.Dir(folder)
			continue
		}
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", folder)
		}
		if err == nil {
			err = probe(folder)
		}
		if err != nil {
			d.add("store", bad, "it cannot be made: %s", err)
			return
		}
		break
	}
	d.disk(folder)
}

// probe makes a file in a folder and removes it.
func probe(folder string) error {
	file, err := os.CreateTemp(folder, ".continuo-probe-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

func (d *diagnosis) disk(folder string) {
	free, known := freeDisk(folder)
	switch {
	case !known:
	case free < noDisk:
		d.add("disk", bad, "only %s free in %s: free some space", byteSize(free), folder)
	case free < lowDisk:
		d.add("disk", warning, "only %s free in %s", byteSize(free), folder)
	default:
		d.add("disk", good, "%s free in %s", byteSize(free), folder)
	}
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// storeFacts is what a look at the file tells.
type storeFacts struct {
	schema, conversations, entries int64
	damage                         []string // what PRAGMA integrity_check says; empty when the file is sound
}

// maxDamage bounds how many kinds of damage are told.
const maxDamage = 5

// inspect looks at a store's file without changing it.
func inspect(ctx context.Context, path string) (found storeFacts, err error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return found, err
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(absolute), RawQuery: "mode=ro&_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for query, into := range map[string]*int64{
		`PRAGMA user_version`:                &found.schema,
		`SELECT count(*) FROM conversations`: &found.conversations,
		`SELECT count(*) FROM entries`:       &found.entries,
	} {
		if err := db.QueryRowContext(ctx, query).Scan(into); err != nil {
			return found, err
		}
	}
	rows, err := db.QueryContext(ctx, fmt.Sprintf(`PRAGMA integrity_check(%d)`, maxDamage))
	if err != nil {
		return found, err
	}
	defer rows.Close()
	for rows.Next() {
		var finding string
		if err := rows.Scan(&finding); err != nil {
			return found, err
		}
		if finding != "ok" {
			found.damage = append(found.damage, finding)
		}
	}
	return found, rows.Err()
}
