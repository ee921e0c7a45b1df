package sqlite

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

const (
	insertLease = `INSERT INTO leases (name, owner, fence) VALUES (?, ?, 1) ON CONFLICT DO NOTHING`

	takeLease = `
UPDATE leases SET owner = ?2, fence = fence + (owner <> ?2), renewals = renewals + 1
WHERE name = ?1 AND (owner IN ('', ?2) OR fence = ?3)`

	selectLease = `SELECT owner, fence, renewals FROM leases WHERE name = ?`

	endLease = `UPDATE leases SET owner = '' WHERE name = ? AND owner = ?`
)

// TakeLease is part of continuo.LeaseStore.
func (s *Store) TakeLease(ctx context.Context, name, owner string, over int64) (held continuo.Lease, err error) {
	err = checkText(name, owner)
	if err == nil && owner == "" {
		err = fmt.Errorf("%w: no owner", continuo.ErrInvalid)
	}
	if err != nil {
		return held, fmt.Errorf("take a lease: %w", err)
	}
	err = s.write(ctx, func(conn *connection) error {
		added, err := conn.exec(insertLease, name, owner)
		if err == nil && added == 0 {
			_, err = conn.exec(takeLease, name, owner, over)
		}
		if err != nil {
			return err
		}
		return conn.row(selectLease, []any{name}, &held.Owner, &held.Fence, &held.Renewals)
	})
	return held, err
}

// EndLease is part of continuo.LeaseStore.
func (s *Store) EndLease(ctx context.Context, name, owner string) error {
	return s.write(ctx, func(conn *connection) error {
		_, err := conn.exec(endLease, name, owner)
		return err
	})
}
