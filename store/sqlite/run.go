package sqlite

import (
	"context"
	"errors"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Run is part of continuo.RunStore.
func (s *Store) Run(ctx context.Context, projectID, runID string) (continuo.Run, error) {
	return continuo.Run{}, errors.ErrUnsupported
}

// Runs is part of continuo.RunStore.
func (s *Store) Runs(ctx context.Context, query continuo.RunQuery) ([]continuo.Run, error) {
	return nil, errors.ErrUnsupported
}

// RunningRuns is part of continuo.RunStore.
func (s *Store) RunningRuns(ctx context.Context, updatedBefore time.Time, limit int) ([]continuo.Run, error) {
	return nil, errors.ErrUnsupported
}
