package postgres

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
)

const (
	takeLease = `
INSERT INTO continuo.leases AS lease (name, owner, fence) VALUES ($1, $2, 1)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = lease.fence + (lease.owner <> excluded.owner)::int, renewals = lease.renewals + 1
WHERE lease.owner IN ('', excluded.owner) OR lease.fence = $3`

	selectLease = `SELECT owner, fence, renewals FROM continuo.leases WHERE name = $1`

	endLease = `UPDATE continuo.leases SET owner = '' WHERE name = $1 AND owner = $2`
)

// TakeLease is part of continuo.LeaseStore.
func (s *Store) TakeLease(ctx context.Context, name, owner string, over int64) (held continuo.Lease, err error) {
	if owner == "" {
		return held, fmt.Errorf("take the lease %s: %w: no owner", name, continuo.ErrInvalid)
	}
	err = s.transact(ctx, "take a lease", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, takeLease, name, owner, over); err != nil {
			return err
		}
		return tx.QueryRow(ctx, selectLease, name).Scan(&held.Owner, &held.Fence, &held.Renewals)
	}, nil)
	return held, err
}

// EndLease is part of continuo.LeaseStore.
func (s *Store) EndLease(ctx context.Context, name, owner string) error {
	return s.transact(ctx, "end a lease", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, endLease, name, owner)
		return err
	}, nil)
}
