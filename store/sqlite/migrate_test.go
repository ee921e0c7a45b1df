package sqlite

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/store/internal/form"
)

// TestMigrationsAreAllOrNothing runs made-up migrations after today's.
func TestMigrationsAreAllOrNothing(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{})
	defer store.Close()
	newConversation(t, store, "a", 2)
	conn, err := newConnection(t.Context(), store.db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.close() }()
	state := func() (version, tables int) {
		if err := conn.row(`PRAGMA user_version`, nil, &version); err != nil {
			t.Fatal(err)
		}
		if err := conn.row(`SELECT count(*) FROM sqlite_schema WHERE name LIKE 'new%'`, nil, &tables); err != nil {
			t.Fatal(err)
		}
		return version, tables
	}
	today, err := form.Migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	known := len(today)
	good := "CREATE TABLE new1 (a); INSERT INTO new1 VALUES (1)"
	if err := migrate(conn, append(today, good, "CREATE TABLE new2 (a); no SQL")); err == nil || !strings.Contains(err.Error(), "migration 3") {
		t.Errorf("a broken migration: %v", err)
	}
	if version, tables := state(); version != known || tables != 0 {
		t.Errorf("after a broken migration the version is %d, and %d of its tables are there", version, tables)
	}
	for range 2 { // the second time there is nothing to do
		if err := migrate(conn, append(today, good)); err != nil {
			t.Error(err)
		}
		if version, tables := state(); version != known+1 || tables != 1 {
			t.Errorf("the version is %d and %d new tables are there", version, tables)
		}
	}
	expectLast(t, store, "a", 2)
}

// TestTheDriverHasTheLibraryItWasMadeFor: the driver is translated C and works with exactly one version
// of its C library, but Go's module system knows only "at least".
func TestTheDriverHasTheLibraryItWasMadeFor(t *testing.T) {
	ask := func(arguments ...string) string {
		output, err := exec.CommandContext(t.Context(), "go", arguments...).Output()
		if err != nil {
			t.Skipf("SKIPPED: go %v: %v", arguments, err)
		}
		return strings.TrimSpace(string(output))
	}
	file := ask("list", "-m", "-f", "{{.GoMod}}", "modernc.org/sqlite")
	want := ask("mod", "edit", "-json", file)
	if got := ask("list", "-m", "-f", `"Path": "modernc.org/libc",{{"\n\t\t\t"}}"Version": "{{.Version}}"`, "modernc.org/libc"); !strings.Contains(want, got) {
		t.Errorf("this module uses\n\t%s\nbut the driver wants another version (see %s): require exactly that one in go.mod", got, file)
	}
}
