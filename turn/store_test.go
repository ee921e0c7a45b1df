package turn_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/sqlite"
)

// onDisk puts a house on SQLite.
func onDisk(t *testing.T, h *house) *house {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	h.over(store)
	return h
}

// steppedStore is a store in which a test steps between two writes.
type steppedStore struct {
	continuo.Store
	append     func(continuo.Batch) error // before an append; an error takes its place
	update     func(continuo.TurnUpdate) error
	taken      func(continuo.Turn) // after a lease was taken
	readEvents func()              // before events are read
}

func (s *steppedStore) Append(ctx context.Context, batch continuo.Batch) error {
	if s.append != nil {
		if err := s.append(batch); err != nil {
			return err
		}
	}
	return s.Store.Append(ctx, batch)
}

func (s *steppedStore) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	if s.update != nil {
		if err := s.update(update); err != nil {
			return nil, err
		}
	}
	return s.Store.UpdateTurn(ctx, update)
}

func (s *steppedStore) TakeTurn(ctx context.Context, seen continuo.Turn, owner string, lease time.Duration) (continuo.Turn, error) {
	taken, err := s.Store.TakeTurn(ctx, seen, owner, lease)
	if err == nil && s.taken != nil {
		s.taken(taken)
	}
	return taken, err
}

func (s *steppedStore) TurnEvents(ctx context.Context, conversationID, turnID string, after int64, limit int) ([]continuo.TurnEvent, error) {
	if s.readEvents != nil {
		s.readEvents()
	}
	return s.Store.TurnEvents(ctx, conversationID, turnID, after, limit)
}
