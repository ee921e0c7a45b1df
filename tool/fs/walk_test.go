package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestNoMoreThanAPageOfNamesIsHeld reads the pages of a folder of three and wants every name once, in order.
func TestNoMoreThanAPageOfNamesIsHeld(t *testing.T) {
	folder := t.TempDir()
	const count = 2*walkPage + 700
	for i := range count {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%06d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w := walker{project: project{root: root}, ctx: t.Context()}
	next, from := 0, ""
	for more := true; more; {
		var page []os.DirEntry
		if page, more, err = w.page("", from); err != nil || len(page) > walkPage || cap(page) > 4*walkPage {
			t.Fatalf("%d names, room for %d: %v", len(page), cap(page), err)
		}
		for _, entry := range page {
			if want := fmt.Sprintf("%06d", next); entry.Name() != want {
				t.Fatalf("name %q, want %q", entry.Name(), want)
			}
			next++
			from = entry.Name() + "\x00"
		}
	}
	if next != count {
		t.Errorf("%d names, want %d", next, count)
	}
}
