package continuo

import "context"

// Lease says which process does what only one may do at a time and what is no turn, such as answering a chat. Turns
// have leases of their own: see [Turn].
type Lease struct {
	Owner string `json:"owner"`
	// Fence counts the owners that the lease has had; each has a higher one than those before.
	Fence int64 `json:"fence"`
	// Renewals counts how often owners renewed it: while it rises, the owner is alive.
	Renewals int64 `json:"renewals"`
}

// LeaseStore keeps leases by name. It measures no time: whoever sees for long enough that an owner does not renew its
// lease takes that.
type LeaseStore interface {
	// TakeLease gives a lease that nobody has to an owner, or renews the one that it has, and returns it. While it is
	// another's, nothing is changed and that one's is returned, unless its fence is over: whoever knows that an owner
	// is gone takes its lease so. Over is 0 otherwise. An owner without a name is ErrInvalid.
	TakeLease(ctx context.Context, name, owner string, over int64) (Lease, error)
	// EndLease gives back a lease that the owner has; any other stays as it is.
	EndLease(ctx context.Context, name, owner string) error
}
