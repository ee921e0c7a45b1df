package postgres

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
)

const (
	selectDiscards = `SELECT name FROM continuo.discards ORDER BY number LIMIT $1`

	deleteDiscards = `DELETE FROM continuo.discards WHERE name = ANY ($1)`
)

// Discards is part of continuo.DiscardStore.
func (s *Store) Discards(ctx context.Context, limit int) (names []string, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("list discarded objects: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, selectDiscards, limit)
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}

// Discarded is part of continuo.DiscardStore.
func (s *Store) Discarded(ctx context.Context, names []string) error {
	return s.transact(ctx, "forget discarded objects", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, deleteDiscards, names)
		return err
	}, nil)
}
