package object

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// TestAnObjectIsOnTheDiskBeforeItHasItsName looks at each step in which something is made durable.
func TestAnObjectIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	dir := t.TempDir()
	b := openAt(t, dir)
	var steps []string
	name := filepath.Join(dir, "a", "b", "c")
	b.engine.(*folder).sync = func(file *os.File) error {
		_, err := os.Stat(name)
		where, _ := filepath.Rel(dir, file.Name())
		if filepath.Dir(where) == newFolder {
			where = "the new file"
		}
		steps = append(steps, fmt.Sprint(filepath.ToSlash(where), " ", err == nil))
		return syncFile(file)
	}
	if err := b.PutObject(t.Context(), "a/b/c", strings.NewReader("text")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"the new file false", "a/b true", "a true", ". true"}; !slices.Equal(steps, want) {
		t.Errorf("made durable, and whether the name was there:\n\t%q\nwant\n\t%q", steps, want)
	}
	steps = nil
	if err := b.DeleteObject(t.Context(), "a/b/c"); err != nil {
		t.Fatal(err)
	}
	if len(steps) == 0 || slices.Contains(steps, ". true") || steps[len(steps)-1] != ". false" {
		t.Errorf("the removal was made durable as %q", steps)
	}
}

func TestWhatCannotBeMadeDurableIsNotAcknowledged(t *testing.T) {
	dir := t.TempDir()
	b := openAt(t, dir)
	put := func() error { return b.PutObject(t.Context(), "a/b", strings.NewReader("new")) }
	if err := b.PutObject(t.Context(), "a/b", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is broken")
	for _, which := range []string{newFolder, "a"} {
		b.engine.(*folder).sync = func(file *os.File) error {
			if strings.HasPrefix(file.Name(), filepath.Join(dir, which)) {
				return broken
			}
			return nil
		}
		if err := put(); !errors.Is(err, broken) {
			t.Errorf("sync fails in %s: %v", which, err)
		}
	}
	expectFiles(t, filepath.Join(dir, newFolder))
}

func TestAFolderHoldsObjectsAndNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "objects")
	b := openAt(t, dir)
	for _, name := range []string{"a/b", "a/c", "d"} {
		if err := b.PutObject(t.Context(), name, strings.NewReader(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.PutObject(t.Context(), "a/e", iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
	expectFiles(t, dir, ".", "a", "a/b", "a/c", "d", newFolder)
	for name, want := range map[string]fs.FileMode{".": 0o700, "a": 0o700, newFolder: 0o700, "a/b": 0o600, "d": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v (%v), want %v", name, info.Mode().Perm(), err, want)
		}
	}
	for _, name := range []string{"a/b", "a/c", "d"} {
		if err := b.DeleteObject(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	expectFiles(t, dir, ".", newFolder)
}

// expectFiles compares what is below a folder.
func expectFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		found = append(found, filepath.ToSlash(name))
		return err
	})
	if len(want) == 0 {
		want = []string{"."}
	}
	slices.Sort(found)
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%s holds %q (%v), want %q", dir, found, err, want)
	}
}

func TestWhatACrashLeftIsRemovedAfterADay(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, newFolder, "LEFT")
	if err := openAt(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("half of an obj"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		age   time.Duration
		there bool
	}{{time.Hour, true}, {23 * time.Hour, true}, {25 * time.Hour, false}} {
		now := time.Now().Add(test.age)
		openWith(t, t.Context(), dir, Options{Now: func() time.Time { return now }})
		if _, err := os.Stat(left); (err == nil) != test.there {
			t.Errorf("after %s: %v, want it there: %t", test.age, err, test.there)
		}
	}
}

func TestAFolderCannotHoldAnObjectBelowAnother(t *testing.T) {
	dir := t.TempDir()
	b := openAt(t, dir)
	for _, name := range []string{"a/b", "c"} {
		if err := b.PutObject(t.Context(), name, strings.NewReader(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "a/b/c", "c/d/e"} {
		if err := b.PutObject(t.Context(), name, strings.NewReader(name)); !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	expectFiles(t, dir, ".", "a", "a/b", "c", newFolder)
}

// TestNoLinkLeadsOutOfTheFolder puts links where names lead.
func TestNoLinkLeadsOutOfTheFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := openAt(t, dir)
	for name, target := range map[string]string{"file": secret, "folder": outside} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skipf("SKIPPED: no links here: %v", err)
		}
	}
	for _, name := range []string{"file", "folder/secret"} {
		if body, err := b.ReadObject(t.Context(), name, 0, -1); err == nil {
			t.Errorf("%s was read", name)
			_ = body.Close()
		}
	}
	if err := b.PutObject(t.Context(), "folder/new", strings.NewReader("x")); err == nil {
		t.Error("folder/new was put")
	}
	_ = b.DeleteObject(t.Context(), "folder/secret")
	if err := b.PutObject(t.Context(), "file", strings.NewReader("x")); err != nil {
		t.Errorf("a link is replaced like a file: %v", err)
	}
	for info, err := range b.Objects(t.Context(), "") {
		if err != nil || info.Name != "file" {
			t.Errorf("%s is listed (%v)", info.Name, err)
		}
	}
	expectFiles(t, outside, ".", "secret")
	if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
		t.Errorf("outside: %q (%v)", text, err)
	}
}

func TestAFolderThatIsAFileIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{file, filepath.Join(file, "below")} {
		if _, err := Open(t.Context(), location, Options{}); !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), location) {
			t.Errorf("%s: %v", location, err)
		}
	}
}
