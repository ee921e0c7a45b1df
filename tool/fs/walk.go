package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// walkPage bounds how many names of a folder are held at a time. A larger folder is read again for each page,
// so that memory use is bounded.
const walkPage = 4096

// walker walks a folder of a project in the order of names, each folder before its content.
type walker struct {
	project project
	ctx     context.Context
	yield   func(item, error) bool
}

// folder yields a folder's content, from after on, and reports whether to continue.
func (w *walker) folder(name string, depth int, after []string) bool {
	from, again := "", true
	if len(after) > 0 {
		from = after[0]
	}
	for again {
		if err := w.ctx.Err(); err != nil {
			w.yield(item{}, err)
			return false
		}
		var page []iofs.DirEntry
		var err error
		page, again, err = w.page(name, from)
		if err != nil {
			return w.yield(item{name: name, folder: true, problem: reason(err)}, nil)
		}
		for _, entry := range page {
			if !w.entry(name, entry, depth, after) {
				return false
			}
			from = entry.Name() + "\x00" // the smallest name after it
		}
	}
	return true
}

func (w *walker) entry(folder string, entry iofs.DirEntry, depth int, after []string) bool {
	name := path.Join(folder, entry.Name())
	var below []string
	if len(after) > 0 && entry.Name() == after[0] {
		below = after[1:]
	} else if !w.yield(w.project.item(name, entry.Type()), nil) {
		return false
	}
	return !entry.IsDir() || depth <= 1 || w.project.secrets.Covers(name) || w.folder(name, depth-1, below)
}

// page returns the first names of a folder that are not less than from, sorted, and whether there are more.
func (w *walker) page(folder, from string) (page []iofs.DirEntry, more bool, err error) {
	local, err := localName(folder)
	if err != nil {
		return nil, false, err
	}
	dir, err := w.project.root.OpenFile(local, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, false, err
	}
	defer dir.Close() //nolint:errcheck // nothing was written
	for {
		entries, err := dir.ReadDir(512)
		for _, entry := range entries {
			if entry.Name() >= from && entry.Name() != ".git" {
				page = append(page, entry)
			}
		}
		if len(page) >= 2*walkPage {
			page, more = least(page), true
		}
		if errors.Is(err, io.EOF) || w.ctx.Err() != nil {
			more = more || len(page) > walkPage
			return least(page), more, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// least keeps the first walkPage names.
func least(entries []iofs.DirEntry) []iofs.DirEntry {
	slices.SortFunc(entries, func(a, b iofs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if len(entries) > walkPage {
		clear(entries[walkPage:])
		entries = entries[:walkPage]
	}
	return entries
}
