package sqlite

import (
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
)

const (
	insertLease = `INSERT INTO leases (name, owner, fence, until) VALUES (?, ?, 1, '') ON CONFLICT DO NOTHING`

	takeLease = `
UPDATE leases SET owner = ?2, fence = fence + (owner <> ?2), until = ?3
WHERE name = ?1 AND (owner = ?2 OR until <= ?4 OR fence = ?5)`

	selectLease = `SELECT owner, fence FROM leases WHERE name = ?`

	endLease = `UPDATE leases SET until = ? WHERE name = ? AND owner = ?`
)

// TakeLease is part of continuo.LeaseStore.
func (s *Store) TakeLease(ctx context.Context, name, owner string, over int64, length time.Duration) (held continuo.Lease, err error) {
	if err := checkText(name, owner); err != nil {
		return held, fmt.Errorf("take a lease: %w", err)
	}
	err = s.write(ctx, func(conn *connection) error {
		now := s.now()
		if _, err := conn.exec(insertLease, name, owner); err != nil {
			return err
		}
		if _, err := conn.exec(takeLease, name, owner, stamp(now.Add(length)), stamp(now), over); err != nil {
			return err
		}
		return conn.row(selectLease, []any{name}, &held.Owner, &held.Fence)
	})
	return held, err
}

// EndLease is part of continuo.LeaseStore.
func (s *Store) EndLease(ctx context.Context, name, owner string) error {
	return s.write(ctx, func(conn *connection) error {
		_, err := conn.exec(endLease, stamp(s.now()), name, owner)
		return err
	})
}
