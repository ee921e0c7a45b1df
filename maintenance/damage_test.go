package maintenance_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// damaged makes a store of 60 conversations whose table has a damaged leaf page, and opens it.
func damaged(t *testing.T, table string) *fixture {
	path := filepath.Join(t.TempDir(), "a.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		t.Fatal(err)
	}
	p := newFixture(t, store)
	for range 60 {
		conversation := p.addConversation(1)
		p.turn(conversation, "turn_1", true)
		_, err := p.log.PutEnvelope(t.Context(), continuo.Envelope{Model: conversation.ID, System: []string{strings.Repeat(conversation.ID, 50)}})
		p.must(err)
	}
	p.must(store.Close())
	damageLeaf(t, path, table)
	store, err = sqlite.Open(t.Context(), path, sqlite.Options{Synchronous: sqlite.Normal, Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	p.store = store
	return p
}

// damageLeaf overwrites the header of the middle leaf page of a table's b-tree.
func damageLeaf(t *testing.T, path, table string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var size, number, count int64
	if err := db.QueryRow(`PRAGMA page_size`).Scan(&size); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow(`SELECT count(*) FROM dbstat WHERE name = ? AND pagetype = 'leaf'`, table).Scan(&count); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow(`SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET ?`, table, count/2).Scan(&number); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, (number-1)*size); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestADamagedPageIsAFinding: the check names it, and continues with everything else.
func TestADamagedPageIsAFinding(t *testing.T) {
	for _, table := range []string{"conversations", "entries", "turns", "receipts", "blobs"} {
		t.Run(table, func(t *testing.T) {
			p := damaged(t, table)
			var found []maintenance.Finding
			checker := &maintenance.Checker{Store: p.store}
			checked, err := checker.Check(t.Context(), func(f maintenance.Finding) { found = append(found, f) })
			if err != nil {
				t.Fatalf("the check ended: %v", err)
			}
			if len(found) == 0 || found[0].Kind != maintenance.Damaged || !strings.Contains(found[0].Fix, "backup") {
				t.Errorf("findings %+v", found)
			}
			if checked.Conversations != 60 {
				t.Errorf("%d of 60 conversations were checked", checked.Conversations)
			}
			if table != "entries" && checked.Entries != 4*60 {
				t.Errorf("%d of 240 entries were checked", checked.Entries)
			}
		})
	}
}

// TestAFlippedLetterIsAFinding: the engines see nothing wrong with a letter that changed in a body, its checksum does.
func TestAFlippedLetterIsAFinding(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	path := filepath.Join(t.TempDir(), "a.db")
	for name, engine := range map[string]struct {
		driver, source, table string
		open                  func() (maintenance.Store, error)
	}{
		"sqlite": {"sqlite", path, "entries", func() (maintenance.Store, error) {
			return sqlite.Open(t.Context(), path, sqlite.Options{Synchronous: sqlite.Normal})
		}},
		"postgres": {"pgx", url, "continuo.entries", func() (maintenance.Store, error) {
			return postgres.Open(t.Context(), url, postgres.Options{Partitions: 4})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := engine.open()
			if err != nil {
				t.Fatal(err)
			}
			p := newFixture(t, store)
			conversation := p.addConversation(1)
			p.must(store.Close())
			flipLetter(t, engine.driver, engine.source, engine.table)
			if p.store, err = engine.open(); err != nil {
				t.Fatal(err)
			}
			defer p.store.Close()
			_, found := p.checks()
			if len(found) != 1 || found[0].Kind != maintenance.Damaged || found[0].ConversationID != conversation.ID || found[0].Seq != 1 {
				t.Errorf("findings %+v", found)
			}
		})
	}
	facts, err := sqlite.Inspect(t.Context(), path)
	if err != nil || len(facts.Damage) != 1 || !strings.Contains(facts.Damage[0], "entry 1 of conversation") {
		t.Errorf("doctor's look at the file: %+v, %v", facts, err)
	}
}

// flipLetter turns the "look" of entry 1 into "lock", of the same length.
func flipLetter(t *testing.T, driver, source, table string) {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	changed, err := db.ExecContext(t.Context(), `UPDATE `+table+` SET body = replace(body, 'look', 'lock') WHERE seq = 1`)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := changed.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%d rows, %v", n, err)
	}
}
