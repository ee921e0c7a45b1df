package eino

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// storeOfTheirTests replaces the in-memory checkpoint store that Eino's tests of checkpoints use.
const storeOfTheirTests = `package compose

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/eino"
	"github.com/continuo-log/continuo/store/sqlite"
)

type inMemoryStore struct {
	m    map[string][]byte
	once sync.Once
	kept *eino.CheckPoints
}

func newInMemoryStore() *inMemoryStore { return &inMemoryStore{} }

func (i *inMemoryStore) store() *eino.CheckPoints {
	i.once.Do(func() {
		folder, err := os.MkdirTemp(os.Getenv("CONTINUO_UPSTREAM_STORES"), "")
		if err != nil {
			panic(err)
		}
		store, err := sqlite.Open(context.Background(), filepath.Join(folder, "checkpoints.db"), sqlite.Options{})
		if err != nil {
			panic(err)
		}
		i.kept = eino.NewCheckPoints(continuo.NewLog(store, continuo.LogOptions{}), eino.Options{})
	})
	return i.kept
}

func (i *inMemoryStore) Get(ctx context.Context, id string) ([]byte, bool, error) {
	return i.store().Get(ctx, id)
}

func (i *inMemoryStore) Set(ctx context.Context, id string, data []byte) error {
	return i.store().Set(ctx, id, data)
}
`

// tries is how often their tests may fail: some wait by the clock, for less than a busy machine may take. What a store does wrong
// fails each time.
const tries = 3

// Eino has no suite for stores. Its own tests of checkpoints and resumption run here in a copy of its module, with Continuo's
// store in the place of the one that they have. Left out are those that sleep to interrupt a node while it works.
func TestEinosOwnTests(t *testing.T) {
	const module = "github.com/cloudwego/eino"
	found, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	temporary, stores := t.TempDir(), t.TempDir()
	eino := filepath.Join(temporary, "eino")
	if err := os.CopyFS(eino, os.DirFS(strings.TrimSpace(string(found)))); err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(eino, "compose", "checkpoint_test.go"), func(text string) string {
		theirs := regexp.MustCompile(`(?s)\ntype inMemoryStore struct.*?\nfunc newInMemoryStore\(\).*?\n}\n`)
		if len(theirs.FindAllString(text, -1)) != 1 {
			t.Fatal("Eino's tests no longer have their store where it was")
		}
		return theirs.ReplaceAllString(text, "\n")
	})
	write(t, filepath.Join(eino, "compose", "continuo_store_test.go"), storeOfTheirTests)
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(temporary, name), string(text))
	}
	rewrite(t, filepath.Join(temporary, "go.mod"), func(text string) string { return text + "\nreplace " + module + " => " + eino + "\n" })
	// Without paths, the copy is built once: its folder has another name each time.
	var report []byte
	for range tries {
		run := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-mod=mod", "-modfile", filepath.Join(temporary, "go.mod"), "-vet=off", "-v", "-skip", "TestCancelInterrupt|TestDAGInterrupt|TestPersistRerunInput(NonStream|Stream|WithPreHandler|SubGraph)", module+"/compose")
		run.Env = append(os.Environ(), "CONTINUO_UPSTREAM_STORES="+stores)
		if report, err = run.CombinedOutput(); err == nil {
			break
		}
	}
	used, _ := filepath.Glob(filepath.Join(stores, "*"))
	if err != nil || len(used) < 20 {
		t.Errorf("%v, %d stores were used\n%s", err, len(used), report)
	}
	t.Logf("%d of Eino's tests passed, with %d stores of Continuo's", strings.Count(string(report), "\n--- PASS"), len(used))
}

func rewrite(t *testing.T, path string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, change(string(text)))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
