package continuo

import "context"

// Lease says which process holds an exclusive job other than a turn, such as answering a chat. Turns have leases of
// their own: see [Turn].
type Lease struct {
	Owner string `json:"owner"`
	// Fence is the fencing token: it counts the owners of the lease, so each owner's is higher than those before.
	Fence int64 `json:"fence"`
	// Renewals counts the owners' renewals: while it rises, the owner is alive.
	Renewals int64 `json:"renewals"`
}

// LeaseStore keeps leases by name. It does not expire them: a process that sees a lease without renewals for long
// enough takes it over.
type LeaseStore interface {
	// TakeLease gives a free lease to an owner, or renews the owner's own, and returns it. When another owner has the
	// lease, TakeLease changes nothing and returns that owner's lease, except when over is that lease's fence: then the
	// lease is taken from its owner, whom the caller knows to be gone. Over is 0 otherwise. An owner without a name is
	// ErrInvalid.
	TakeLease(ctx context.Context, name, owner string, over int64) (Lease, error)
	// EndLease releases a lease that the owner holds; it does not change another owner's.
	EndLease(ctx context.Context, name, owner string) error
}
