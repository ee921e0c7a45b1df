package continuo

import (
	"context"
	"time"
)

// Lease says which process does what only one may do at a time and what is no turn, such as answering a chat. Turns
// have leases of their own: see [Turn].
type Lease struct {
	Owner string `json:"owner"`
	// Fence counts the owners that the lease has had; each has a higher one than those before.
	Fence int64 `json:"fence"`
}

// LeaseStore keeps leases by name, measured by the store's own clock.
type LeaseStore interface {
	// TakeLease gives a lease to an owner for so long from now, or renews the one that it has, and returns it. While it
	// is another's, nothing is changed and that one's is returned, unless its fence is over: whoever knows that an owner
	// is gone takes its lease so. Over is 0 otherwise.
	TakeLease(ctx context.Context, name, owner string, over int64, length time.Duration) (Lease, error)
	// EndLease gives back a lease that the owner has; any other stays as it is.
	EndLease(ctx context.Context, name, owner string) error
}
