package turn

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/backoff"
)

// RunExclusive runs do under a named lease, which only one process with this store can hold at a time. It waits for the
// lease, and returns the error of do when do ends by itself, or the error of ctx. When the lease is lost, RunExclusive
// cancels the context of do, waits for do to return, and then waits for the lease again. A panic of do is one of
// RunExclusive, with the stack of do in its text. OnTaken is called with the
// owner each time that this process finds the lease taken by another; it may be nil. A process must not run one name
// twice at the same time.
//
// A process that is paused for longer than KeeperOptions.Lease does not know at once that another has taken the lease.
func (k *Keeper) RunExclusive(ctx context.Context, name string, onTaken func(owner string), do func(ctx context.Context) error) error {
	var reportedFence, expiredFence int64 // fences
	for {
		asked := time.Now()
		held, err := k.options.Log.Leases().TakeLease(ctx, name, k.options.Owner, expiredFence)
		expiredFence = 0
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && held.Owner == k.options.Owner:
			if err := k.withLease(ctx, name, asked, do); !errors.Is(err, continuo.ErrLeaseLost) {
				return err
			}
			reportedFence = 0
			continue
		case err == nil && (k.gone(held.Owner) || k.leaseObservations.unchanged("lease "+name, leaseState{held.Fence, held.Renewals}, false)):
			expiredFence = held.Fence
			continue
		case err == nil && held.Fence != reportedFence && onTaken != nil:
			reportedFence = held.Fence
			onTaken(held.Owner)
		}
		if err := backoff.Wait(ctx, k.options.Heartbeat); err != nil {
			return err
		}
	}
}

// withLease runs do while it renews a lease that was taken at the time asked. It fails with continuo.ErrLeaseLost when
// another process has the lease, or may soon take it because the store cannot be reached: a third of the lease is left
// for do to return.
func (k *Keeper) withLease(ctx context.Context, name string, asked time.Time, do func(ctx context.Context) error) error {
	within, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	done := make(chan error, 1)
	var panicked any
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				panicked = fmt.Sprintf("%v\n\n%s", cause, debug.Stack())
				done <- nil
			}
		}()
		done <- do(within)
	}()
	enough := k.options.Lease - k.options.Lease/3
	beat := time.NewTicker(k.options.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case err := <-done:
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.options.Heartbeat)
			defer cancel()
			_ = k.options.Log.Leases().EndLease(end, name, k.options.Owner) // on failure the lease expires
			if panicked != nil {
				panic(panicked)
			}
			if ctx.Err() == nil && within.Err() != nil {
				return context.Cause(within)
			}
			return err
		case <-beat.C:
		}
		if within.Err() != nil {
			continue // do is about to return
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
