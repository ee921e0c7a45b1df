package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "continuo.db")
		// No test can observe whether the disk was waited for, so that the suite need not wait.
		return func(t *testing.T) maintenance.Store { return openAt(t, path, Options{Synchronous: Normal}) }
	})
}

// openAt opens a store that the caller closes.
func openAt(t testing.TB, path string, options Options) *Store {
	t.Helper()
	store, err := Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

var sometime = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
