package turn

import (
	"context"
	"errors"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/backoff"
)

// RunExclusive does something that only one process with this store may do at a time, under a lease of a name: it waits for
// the lease, and does it until it ends by itself, which RunExclusive returns, or ctx is done. The context of what is done ends
// when the lease is lost; RunExclusive waits for it then, and for the lease again. Elsewhere is told who has the lease, each
// time that this process finds it taken by another; it may be nil. A process does a thing of one name once at a time.
//
// A process that is paused for longer than KeeperOptions.Lease does not know at once that another has taken over.
func (k *Keeper) RunExclusive(ctx context.Context, name string, elsewhere func(owner string), do func(ctx context.Context) error) error {
	var told, over int64 // fences
	for {
		asked := time.Now()
		held, err := k.options.Log.Leases().TakeLease(ctx, name, k.options.Owner, over)
		over = 0
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && held.Owner == k.options.Owner:
			if err := k.withLease(ctx, name, asked, do); !errors.Is(err, continuo.ErrLeaseLost) {
				return err
			}
			told = 0
			continue
		case err == nil && (k.gone(held.Owner) || k.sightings.unchanged("lease "+name, leaseState{held.Fence, held.Renewals}, false)):
			over = held.Fence
			continue
		case err == nil && held.Fence != told && elsewhere != nil:
			told = held.Fence
			elsewhere(held.Owner)
		}
		if err := backoff.Wait(ctx, k.options.Heartbeat); err != nil {
			return err
		}
	}
}

// withLease does something while the lease that was asked for at a time is renewed. It fails with continuo.ErrLeaseLost
// when another has it, or may soon because the store cannot be reached: a third of the lease is left for what is done to
// end.
func (k *Keeper) withLease(ctx context.Context, name string, asked time.Time, do func(ctx context.Context) error) error {
	within, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	done := make(chan error, 1)
	go func() { done <- do(within) }()
	enough := k.options.Lease - k.options.Lease/3
	beat := time.NewTicker(k.options.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case err := <-done:
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.options.Heartbeat)
			defer cancel()
			_ = k.options.Log.Leases().EndLease(end, name, k.options.Owner) // else it runs out
			if ctx.Err() == nil && within.Err() != nil {
				return context.Cause(within)
			}
			return err
		case <-beat.C:
		}
		if within.Err() != nil {
			continue // it is on its way out
		}
		renewing, cancel := context.WithDeadline(ctx, asked.Add(enough))
		began := time.Now()
		held, err := k.options.Log.Leases().TakeLease(renewing, name, k.options.Owner, 0)
		cancel()
		switch {
		case err == nil && held.Owner == k.options.Owner:
			asked = began
		case err == nil, time.Since(asked)+k.options.Heartbeat > enough:
			lose(continuo.ErrLeaseLost)
		}
	}
}
