// Package indextest has what the tests of searches share: the stores that must give the same results, and how results are
// written down. A test binary that uses Everywhere calls pgtest.Main.
package indextest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
)

// Memory is the name of the store in memory.
const Memory = "memory"

var stores = []struct {
	name string
	open func(t testing.TB) (maintenance.Store, error)
}{
	{Memory, func(testing.TB) (maintenance.Store, error) { return storetest.NewMemory(), nil }},
	{"sqlite", func(t testing.TB) (maintenance.Store, error) {
		return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlite.Options{Synchronous: sqlite.Normal})
	}},
	{"postgres", func(t testing.TB) (maintenance.Store, error) {
		return postgres.Open(t.Context(), pgtest.Shared(t).Database(t), postgres.Options{})
	}},
}

// Everywhere runs a test with an empty store of each engine.
func Everywhere(t *testing.T, test func(t *testing.T, store maintenance.Store)) {
	for _, engine := range stores {
		t.Run(engine.name, func(t *testing.T) { test(t, opened(t, engine.open)) })
	}
}

// OnDisk runs a benchmark with an empty store of each engine that keeps what it has.
func OnDisk(b *testing.B, bench func(b *testing.B, store maintenance.Store)) {
	for _, engine := range stores {
		if engine.name != Memory {
			b.Run(engine.name, func(b *testing.B) { bench(b, opened(b, engine.open)) })
		}
	}
}

func opened(t testing.TB, open func(t testing.TB) (maintenance.Store, error)) maintenance.Store {
	t.Helper()
	store, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Kept opens a store of SQLite that is kept for the next run with CONTINUO_SCRATCH, by its name.
func Kept(b *testing.B, name string) maintenance.Store {
	b.Helper()
	folder := cmp.Or(os.Getenv("CONTINUO_SCRATCH"), b.TempDir())
	return opened(b, func(t testing.TB) (maintenance.Store, error) {
		return sqlite.Open(t.Context(), filepath.Join(folder, name+".db"), sqlite.Options{Synchronous: sqlite.Normal})
	})
}

// Names are items as "key#seq", with spaces between.
func Names(items []index.Item) string {
	var text []string
	for _, item := range items {
		text = append(text, fmt.Sprintf("%s#%d", item.Key, item.Seq))
	}
	return strings.Join(text, " ")
}

const maxPages = 10_000

// AllPages pages through a search.
func AllPages(t testing.TB, request index.Request, search func(index.Request) index.Result) (items []index.Item) {
	t.Helper()
	for range maxPages {
		result := search(request)
		items = append(items, result.Items...)
		if request.Cursor = result.NextCursor; request.Cursor == "" {
			return items
		}
	}
	t.Fatal("there is no last page")
	return nil
}
