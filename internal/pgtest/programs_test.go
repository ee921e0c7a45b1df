package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// witness is a test that remembers how it was ended.
type witness struct {
	testing.TB
	skipped, failed string
}

func (w *witness) Helper() {}

func (w *witness) Skipf(format string, args ...any) {
	w.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (w *witness) Fatal(args ...any) {
	w.failed = fmt.Sprint(args...)
	runtime.Goexit()
}

// watch runs a function as a test.
func watch(t *testing.T, run func(t testing.TB)) *witness {
	w := &witness{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(w)
	}()
	<-done
	return w
}

func TestWithoutPostgreSQLATestIsSkippedLoudly(t *testing.T) {
	empty := t.TempDir()
	t.Setenv(folderEnv, empty)
	t.Setenv(requiredEnv, "")
	w := watch(t, func(t testing.TB) { Start(t, Options{}) })
	if !strings.HasPrefix(w.skipped, "SKIPPED: ") || !strings.Contains(w.skipped, empty) {
		t.Errorf("skipped with %q, failed with %q", w.skipped, w.failed)
	}
}

func TestWithoutPostgreSQLATestFailsWhereItMustBe(t *testing.T) {
	t.Setenv(folderEnv, t.TempDir())
	t.Setenv(requiredEnv, "1")
	w := watch(t, func(t testing.TB) { Start(t, Options{}) })
	if w.skipped != "" || !strings.Contains(w.failed, errAbsent.Error()) {
		t.Errorf("skipped with %q, failed with %q", w.skipped, w.failed)
	}
}

func TestTheMessageNamesWhatToInstall(t *testing.T) {
	t.Setenv(folderEnv, "")
	t.Setenv("PATH", t.TempDir())
	_, err := findPrograms()
	if err == nil {
		t.Skip("SKIPPED: PostgreSQL is installed beside PATH here")
	}
	if supported && !strings.Contains(err.Error(), "Debian's package postgresql") {
		t.Errorf("the message does not: %v", err)
	}
}

func TestTheNamedFolderIsTaken(t *testing.T) {
	if !supported {
		t.Skip("SKIPPED: no servers are started on this system")
	}
	folder := t.TempDir()
	t.Setenv(folderEnv, folder)
	for _, name := range []string{"initdb", "postgres"} {
		if found, err := findPrograms(); err == nil {
			t.Errorf("%s is taken without %s", found, name)
		}
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	if found, err := findPrograms(); err != nil || string(found) != folder {
		t.Errorf("found %s, %v; want %s", found, err, folder)
	}
}

func TestTheNewestVersionComesFirst(t *testing.T) {
	folders := []string{"/usr/lib/postgresql/9.6/bin", "/usr/lib/postgresql/18/bin", "/opt/homebrew/opt/postgresql@17/bin", "/opt/homebrew/opt/postgresql/bin"}
	want := []float64{9.6, 18, 17, 0}
	var got []float64
	for _, folder := range folders {
		got = append(got, versionIn(folder))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the versions in %v: got %v, want %v", folders, got, want)
	}
}
