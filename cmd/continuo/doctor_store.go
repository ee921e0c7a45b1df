package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/store/sqlite"
)

// lowDisk is the free disk space that causes a warning, noDisk the one that is a fault, in bytes.
const (
	lowDisk = 500_000_000
	noDisk  = 10_000_000
)

// store checks the store of the logs.
func (d *diagnosis) store(ctx context.Context, settings config.StoreConfig) {
	if settings.URL != "" {
		d.database(ctx, settings)
	} else {
		d.file(ctx, settings)
	}
}

// file checks the file of the logs. It does so before the store is opened: SQLite's locks do not allow both in one
// process.
func (d *diagnosis) file(ctx context.Context, settings config.StoreConfig) {
	path := settings.Path
	folder := filepath.Dir(path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add("store", good, "%s is not there yet; the first use makes it", path)
		d.folder("store", folder)
		d.disk(folder)
		return
	case err != nil:
		d.add("store", bad, "%s: %s", path, err)
		return
	}
	found, readErr := sqlite.Inspect(ctx, path)
	useErr := use(ctx, settings)
	if readErr != nil && useErr == nil {
		d.add("store", bad, "it cannot be read: %s", readErr)
	}
	if readErr == nil {
		d.add("store", good, "%s, %s, schema version %d, %s with %s", path, term.Size(info.Size()+sizeOf(path+"-wal")),
			found.Schema, term.Count(found.Conversations, "conversation"), term.Count(found.Entries, "entry"))
		if len(found.Damage) == 0 {
			d.add("store", good, "the file is sound (PRAGMA integrity_check, checksums of entries); continuo store check looks at what is in it")
		}
	}
	for _, damage := range found.Damage {
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
func use(ctx context.Context, settings config.StoreConfig) error {
	opened, _, err := openStore(ctx, settings)
	if err != nil {
		return err
	}
	return opened.Close()
}

// folder checks whether a file can be made in a folder that may not exist yet.
func (d *diagnosis) folder(name, folder string) {
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
			d.add(name, bad, "it cannot be made: %s", err)
		}
		return
	}
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
		d.add("disk", bad, "only %s free in %s: free some space", term.Size(free), folder)
	case free < lowDisk:
		d.add("disk", warning, "only %s free in %s", term.Size(free), folder)
	default:
		d.add("disk", good, "%s free in %s", term.Size(free), folder)
	}
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
