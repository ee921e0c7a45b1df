package postgres

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
)

const (
	takeLease = `
INSERT INTO continuo.leases AS lease (name, owner, fence, until) VALUES ($1, $2, 1, clock_timestamp() + $3::bigint * interval '1 microsecond')
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = lease.fence + (lease.owner <> excluded.owner)::int, until = excluded.until
WHERE lease.owner = excluded.owner OR lease.until <= clock_timestamp() OR lease.fence = $4`

	selectLease = `SELECT owner, fence FROM continuo.leases WHERE name = $1`

	endLease = `UPDATE continuo.leases SET until = clock_timestamp() WHERE name = $1 AND owner = $2`
)

// TakeLease is part of continuo.LeaseStore.
func (s *Store) TakeLease(ctx context.Context, name, owner string, over int64, length time.Duration) (held continuo.Lease, err error) {
	err = s.transact(ctx, "take a lease", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, takeLease, name, owner, microseconds(length), over); err != nil {
			return err
		}
		return tx.QueryRow(ctx, selectLease, name).Scan(&held.Owner, &held.Fence)
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
