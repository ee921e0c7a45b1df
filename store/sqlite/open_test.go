package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

func TestOpenMakesAPrivateFolderAndFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: Windows has no such modes")
	}
	path := filepath.Join(t.TempDir(), "new", "folders", "a %25 ?#&=;'ö.db")
	store := openAt(t, path, Options{})
	newConversation(t, store, "a", 1)
	for name, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has the mode %o, want %o", name, got, want)
		}
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("after Close the folder holds %v, %v; want the one file", left, err)
	}
}

// withRaw runs statements on a file without this package.
func withRaw(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesForeignFiles(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	if err := os.WriteFile(path("text"), []byte(strings.Repeat("This is not a database. ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	withRaw(t, path("other"), "CREATE TABLE cookies (a)")
	withRaw(t, path("marked"), "PRAGMA application_id = 77", "PRAGMA user_version = 1")
	store := openAt(t, path("newer"), Options{})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	withRaw(t, path("newer"), "PRAGMA user_version = 99", "PRAGMA journal_mode = delete")

	for name, words := range map[string][]string{
		"text":   {"not an SQLite database"},
		"other":  {"another program"},
		"marked": {"another program"},
		"newer":  {"99", "version", "up to 1"},
		".":      {"not a regular file"},
	} {
		before, _ := os.ReadFile(path(name))
		store, err := Open(t.Context(), path(name), Options{})
		if err == nil {
			t.Errorf("%s: it was opened", name)
			_ = store.Close()
			continue
		}
		for _, word := range append(words, path(name)) {
			if !strings.Contains(err.Error(), filepath.Clean(word)) {
				t.Errorf("%s: the error does not say %q: %v", name, word, err)
			}
		}
		if got, want := errors.Is(err, continuo.ErrNewerSchema), name == "newer"; got != want {
			t.Errorf("%s: is ErrNewerSchema: %v: %v", name, got, err)
		}
		if after, _ := os.ReadFile(path(name)); string(after) != string(before) {
			t.Errorf("%s: a file that was refused was changed", name)
		}
	}
	if _, err := Open(t.Context(), "", Options{}); err == nil {
		t.Error("an empty path was opened")
	}
}

func TestManyMayOpenANewFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	var openers sync.WaitGroup
	for range 8 {
		openers.Go(func() {
			store, err := Open(t.Context(), path, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := store.PutBlob(t.Context(), "h", []byte("x")); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	openers.Wait()
}

// newConversation adds a conversation with entries 1 to last.
func newConversation(t testing.TB, store maintenance.Store, id string, last int64) {
	t.Helper()
	c := continuo.Conversation{ID: id, ProjectID: "p", ActiveMode: continuo.ModeChat, LastSeq: last}
	if err := store.Create(context.Background(), c, someEntries(id, 1, last, "text")); err != nil {
		t.Fatal(err)
	}
}

func someEntries(id string, first, last int64, text string) []continuo.Entry {
	var entries []continuo.Entry
	for seq := first; seq <= last; seq++ {
		role := continuo.User
		if seq%2 == 0 {
			role = continuo.Assistant
		}
		entries = append(entries, continuo.Entry{
			ID: "ent_0199c5f0d1a27000b8f7c2a94f1e6d3a", ConversationID: id, Seq: seq, CreatedAt: sometime, Role: role, Content: continuo.Text(text),
		})
	}
	return entries
}
