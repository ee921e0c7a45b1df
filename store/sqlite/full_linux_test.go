package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// TestAFullFileSystemLosesNothing fills a real, small file system.
func TestAFullFileSystemLosesNothing(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("SKIPPED: a small file system cannot be mounted here (it takes root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(folder, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "a.db")
	store := openAt(t, path, Options{})
	newConversation(t, store, "a", 0)
	last := fill(t, store, "a", 0)
	expectLast(t, store, "a", last)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if more := fill(t, store, "a", last); more == last {
		t.Error("space was freed, but nothing more can be appended")
	} else {
		last = more
	}
	expectLast(t, store, "a", last)
	if err := store.Close(); err != nil {
		t.Errorf("close on a full disk: %v", err)
	}

	// No room for a new database.
	rest, err := os.Create(filepath.Join(folder, "rest"))
	if err != nil {
		t.Fatal(err)
	}
	for chunk := bytes.Repeat([]byte("x"), 4096); err == nil; {
		_, err = rest.Write(chunk)
	}
	if err := rest.Close(); err != nil {
		t.Fatal(err)
	}
	if store, err := Open(t.Context(), filepath.Join(folder, "b.db"), Options{}); !errors.Is(err, continuo.ErrFull) {
		t.Errorf("a new database on a full disk: %v, want ErrFull", err)
		if err == nil {
			_ = store.Close()
		}
	}
	if err := os.Remove(filepath.Join(folder, "rest")); err != nil {
		t.Fatal(err)
	}
	store = openAt(t, path, Options{})
	expectLast(t, store, "a", last)
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
