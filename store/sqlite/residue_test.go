package sqlite

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// holding reports which files of a database hold a text.
func holding(t *testing.T, path, text string) (names []string) {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			names = append(names, filepath.Base(name))
		}
	}
	return names
}

// redactOne writes an entry with a secret and redacts it.
func redactOne(t *testing.T, store *Store, id, secret string) {
	t.Helper()
	entries := someEntries(id, 1, 1, strings.Repeat(secret+" ", 200))
	c := continuo.Conversation{ID: id, ProjectID: "p", ActiveMode: continuo.ModeChat, LastSeq: 1}
	if err := store.Create(t.Context(), c, entries); err != nil {
		t.Fatal(err)
	}
	entries[0].Content, entries[0].Redacted = continuo.Text("[redacted]"), &continuo.Redaction{At: sometime}
	if err := store.Redact(t.Context(), id, entries); err != nil {
		t.Fatal(err)
	}
}

// TestNoFileHoldsWhatWasRemoved looks into the files of a store that stays open.
func TestNoFileHoldsWhatWasRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	store := openAt(t, path, Options{})
	defer store.Close()
	redactOne(t, store, "a", "hunter2")
	if names := holding(t, path, "hunter2"); len(names) > 0 || store.HasResidue() {
		t.Errorf("after a redaction %v hold it (residue %v)", names, store.HasResidue())
	}
	c := continuo.Conversation{ID: "b", ProjectID: "p", ActiveMode: continuo.ModeChat, LastSeq: 3}
	if err := store.Create(t.Context(), c, someEntries("b", 1, 3, strings.Repeat("hunter3 ", 2000))); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if names := holding(t, path, "hunter3"); len(names) > 0 {
		t.Errorf("after a deletion %v hold it", names)
	}
}

// TestAReaderDelaysTheRemovalOnly: another program's snapshot needs the log; it is emptied soon after that has ended.
func TestAReaderDelaysTheRemovalOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.db")
		store := openAt(t, path, Options{})
		defer store.Close()
		newConversation(t, store, "other", 1)
		other, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		snapshot, err := other.Begin()
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := snapshot.QueryRow(`SELECT count(*) FROM entries`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		redactOne(t, store, "a", "hunter2")
		time.Sleep(3 * truncateRetry) // it is tried in vain
		if !store.HasResidue() {
			t.Error("nothing says that the log was held")
		}
		if err := snapshot.Rollback(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * truncateRetry)
		synctest.Wait()
		if names := holding(t, path, "hunter2"); len(names) > 0 || store.HasResidue() {
			t.Errorf("%v hold it for good (residue %v)", names, store.HasResidue())
		}
	})
}
