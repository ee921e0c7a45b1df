package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/store/internal/form"
)

func TestInspectingAFileChangesNothing(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a %25 ?#.db")
	store := openAt(t, path, Options{})
	indexed(t, store, "a", 200, "some", "words")
	newConversation(t, store, "b", 3)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := form.Migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Inspect(t.Context(), path)
	if want := (Facts{Schema: int64(len(all)), Conversations: 2, Entries: 203}); err != nil || found.Damage != nil || found.Schema != want.Schema || found.Conversations != want.Conversations || found.Entries != want.Entries {
		t.Errorf("%+v (%v), want %+v", found, err, want)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed (%v)", err)
	}
	// Damage of the index of words is damage too.
	words := filepath.Join(folder, "words.db")
	if err := os.WriteFile(words, before, 0o600); err != nil {
		t.Fatal(err)
	}
	withRaw(t, words, `UPDATE words_data SET block = zeroblob(length(block)) WHERE id > 10`)
	if found, err := Inspect(t.Context(), words); err != nil || len(found.Damage) == 0 {
		t.Errorf("the index of words is not looked at: %+v (%v)", found, err)
	}
	damaged := filepath.Join(folder, "damaged.db")
	for at := len(before) / 2; at < len(before)/2+20_000; at++ {
		before[at] ^= 0x55
	}
	if err := os.WriteFile(damaged, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := Inspect(t.Context(), damaged); len(found.Damage) == 0 && err == nil {
		t.Errorf("no damage is found: %+v", found)
	}
	other := filepath.Join(folder, "other.txt")
	if err := os.WriteFile(other, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{other, filepath.Join(folder, "none.db")} {
		if found, err := Inspect(t.Context(), bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %+v (%v)", bad, found, err)
		}
		if _, err := os.Stat(filepath.Join(folder, "none.db")); err == nil {
			t.Error("a look makes a file")
		}
	}
}
