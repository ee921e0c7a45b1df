package object

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// TestAFullFileSystemKeepsWhatItHas fills a real, small file system.
func TestAFullFileSystemKeepsWhatItHas(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("SKIPPED: a small file system cannot be mounted here (it takes root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	b := openAt(t, dir)
	if err := b.PutObject(t.Context(), "a/old", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/old", "a/new", "b/new"} {
		if err := b.PutObject(t.Context(), name, io.LimitReader(zeroReader{}, 3<<20)); !errors.Is(err, continuo.ErrFull) {
			t.Errorf("%s: %v, want ErrFull", name, err)
		}
	}
	expectFiles(t, dir, ".", "a", "a/old", newFolder)
	if text, err := os.ReadFile(filepath.Join(dir, "a/old")); err != nil || string(text) != "old" {
		t.Errorf("what was there: %q (%v)", text, err)
	}
	if err := b.PutObject(t.Context(), "a/new", io.LimitReader(zeroReader{}, 1<<20)); err != nil {
		t.Errorf("a smaller one: %v", err)
	}
	if err := b.Close(); err != nil { // before the file system goes
		t.Error(err)
	}
}

func TestAReadOnlyFileSystemIsReadOnly(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("SKIPPED: a file system cannot be mounted here (it takes root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	b := openAt(t, dir)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.PutObject(t.Context(), "a", strings.NewReader("x")); !errors.Is(err, continuo.ErrReadOnly) {
		t.Errorf("put: %v, want ErrReadOnly", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	for _, location := range []string{dir, filepath.Join(dir, "below")} {
		if _, err := Open(t.Context(), location, Options{}); !errors.Is(err, continuo.ErrReadOnly) || !strings.Contains(err.Error(), location) {
			t.Errorf("open %s: %v, want ErrReadOnly", location, err)
		}
	}
}
