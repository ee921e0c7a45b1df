package recallbench

import (
	"context"
	"os"
	"path/filepath"

	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/sqlite"
)

// Open opens an empty store, for one conversation. The zero value opens a temporary one of SQLite.
type Open func(ctx context.Context) (maintenance.Store, error)

// with opens a store, and closes it after its use.
func (o Open) with(ctx context.Context, use func(store maintenance.Store) error) error {
	if o == nil {
		folder, err := os.MkdirTemp("", "continuo-eval-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		o = func(ctx context.Context) (maintenance.Store, error) {
			return sqlite.Open(ctx, filepath.Join(folder, "log.db"), sqlite.Options{Synchronous: sqlite.Normal})
		}
	}
	store, err := o(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	return use(store)
}
