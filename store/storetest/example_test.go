package storetest_test

import (
	"path/filepath"
	"testing"

	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
)

// testStore is the whole test of an engine: in the file store_test.go of its package it is named TestStore.
func testStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "test.db") // one empty database
		return func(t *testing.T) maintenance.Store { // opened once or more, also beside itself
			store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return store
		}
	})
}

// Another engine is an maintenance.Store that passes the suite. Here the engine is package sqlite.
func ExampleRun() {
	_ = testStore
}
