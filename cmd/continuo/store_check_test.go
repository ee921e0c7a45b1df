package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/sqlite"
)

// A damaged page of the table of conversations is a finding like every other, and the rest is checked.
func TestCheckWithDamagedListOfConversations(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "continuo.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := continuo.NewLog(store, continuo.LogOptions{})
	for range 60 {
		_, err := log.Import(t.Context(), continuo.Conversation{Title: strings.Repeat("title ", 50), ProjectID: "default"}, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("Hello")}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	overwriteLeaf(t, path, "conversations")
	var report checkReport
	out := finishes(t, dir, 1, "store", "check", "--json")
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if report.Checked.Conversations == 0 || len(report.Findings) == 0 {
		t.Errorf("the check says %s", out)
	}
}

// overwriteLeaf overwrites the header of the last leaf page of a table.
func overwriteLeaf(t *testing.T, path, table string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var offset int64
	err = db.QueryRow(`SELECT pgoffset FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path DESC LIMIT 1`, table).Scan(&offset)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, offset); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
