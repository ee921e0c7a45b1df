package turn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Why only one process at a time writes a turn, and when another one may close it.
//
// Safety rests on the fencing token alone. Each lease of a conversation has a higher number than those before, every
// write of a turn names its owner's number, and the store refuses a write with any but the newest
// (continuo.ErrLeaseLost). A process that closes a turn takes its lease first (TakeTurn), so that later writes of the
// former owner are refused. This needs no clock and no timeout: a wrong decision to take over costs the unfinished
// answer, never the log.
//
// The times below only prevent such wrong decisions:
//
//   - An owner renews its lease after every sixth of its length, and at each heartbeat while writes fail. An expired
//     lease is still the owner's: until another process takes it, the next write renews it.
//   - Another process closes a turn whose lease was released, whose process has certainly ended, or whose lease it has
//     seen unchanged for the length of a lease, by its own monotonic clock (sightings). The store's clock, which may be
//     set, counts only for a lease that this process has not seen before: if that has expired already, this process
//     does not wait. All processes must have the same KeeperOptions.Lease.
//   - While the store cannot be reached all leases expire, also those of live owners. A process that was disconnected
//     itself, or has only just started, does not take turns of others until it has been connected for a whole lease: by
//     then each live owner has renewed its own (Log.RecentlyReconnected).
//   - An owner that cannot reach the store continues for outageInLeases: the model's output waits in memory (maxHeld),
//     and readers receive it when it is durable. The results of tools and the next request wait too. Where only the
//     owner is disconnected, another process closes the turn after a lease, and the owner learns of it with its first
//     write.

// outageInLeases is how long a turn waits for its store, in lengths of a lease.
const outageInLeases = 20

// outage returns how long a turn waits for its store.
func (k *Keeper) outage() time.Duration { return outageInLeases * k.options.Lease }

// abandoned reports whether no process runs a running turn any more.
func (k *Keeper) abandoned(turn continuo.Turn) bool {
	if turn.Owner != k.options.Owner {
		silent := k.leaseObservations.unchanged(turn.ConversationID+"/"+turn.ID, leaseState{turn.Fence, turn.LeaseUntil.UnixNano()}, turn.LeaseExpired)
		return turn.LeaseUntil.IsZero() || k.gone(turn.Owner) || silent && !k.options.Log.RecentlyReconnected(k.options.Lease)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_, runs := k.journals[turn.ID]
	return !runs
}

// leaseState identifies one state of a lease: a renewal or a new owner changes it.
type leaseState struct{ fence, renewal int64 }

// leaseObservations records when this process has seen the leases of other processes. It is safe for concurrent use.
type leaseObservations struct {
	length time.Duration // of a lease

	mu     sync.Mutex
	leases map[string]*leaseObservation
}

type leaseObservation struct {
	state         leaseState
	since, newest time.Time // when the state was first seen, and when last
}

// unchanged reports whether a lease has been seen in one state for the length of a lease. Expired says that the lease
// has expired by the store's clock, which counts only for a lease that was not seen lately.
func (s *leaseObservations) unchanged(name string, state leaseState, expired bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	seen := s.leases[name]
	switch {
	case seen == nil:
		maps.DeleteFunc(s.leases, func(_ string, other *leaseObservation) bool { return now.Sub(other.newest) > outageInLeases*s.length })
		seen = &leaseObservation{state: state, since: now}
		if expired {
			seen.since = now.Add(-s.length)
		}
		s.leases[name] = seen
	case seen.state != state:
		seen.state, seen.since = state, now
	}
	seen.newest = now
	return now.Sub(seen.since) >= s.length
}

// retry repeats do while the store cannot be reached, for at most outage or until ctx ends.
func (j *Journal) retry(ctx context.Context, do func() error) error {
	until := time.Now().Add(j.keeper.outage())
	for {
		err := do()
		if !errors.Is(err, continuo.ErrUnavailable) || time.Now().After(until) || ctx.Err() != nil {
			return err
		}
		time.Sleep(j.keeper.options.Heartbeat)
	}
}

// lostIf stops the turn when another process has taken it over, or when the store could not be written for too long.
func (j *Journal) lostIf(err error) {
	if !errors.Is(err, continuo.ErrLeaseLost) && time.Since(j.renewed) <= j.keeper.outage() {
		return
	}
	if j.ctx.Err() == nil {
		j.keeper.options.Meter.LeaseLost()
	}
	j.stop(fmt.Errorf("%w: %w", continuo.ErrLeaseLost, err))
}
