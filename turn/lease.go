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

// Why one process at a time writes a turn, and when another one may close it.
//
// Safety rests on the fencing token alone. Each lease of a conversation has a higher number than those before, every
// write of a turn names the number that its owner has, and the store refuses a write with any but the newest
// (continuo.ErrLeaseLost). Whoever closes a turn takes its lease first (TakeTurn), so that nothing that the former owner
// still writes gets in. No clock and no timeout is needed for that: a decision to take over that is wrong costs the
// answer under way, never the log.
//
// The times below only keep such decisions from being wrong:
//
//   - An owner renews its lease every sixth of it, and at each heartbeat where writes fail. A lease that has expired is
//     still the owner's: while nobody has taken it, the next write renews it.
//   - Another process closes a turn whose lease was given back, whose process has certainly ended, or whose lease it has
//     seen unchanged for the length of a lease, by its own monotonic clock (sightings). The store's clock, which may be
//     set, counts only for a lease that this process has not seen before: one that has expired by then is not waited for.
//     All processes must have the same KeeperOptions.Lease.
//   - A store that cannot be reached makes all leases expire, of owners that are alive as well. A process that was out of
//     touch itself, or has only just started, leaves others' turns alone until it has been in touch for a whole lease:
//     by then each owner that is alive has renewed its own (Log.RecentlyReconnected).
//   - An owner that cannot reach the store goes on, for outageLeases: what its model says waits in memory (maxHeld), and
//     readers are shown it when it is durable. The results of its tools and its next request wait too. Where the store is
//     cut off from the owner only, another process closes the turn after a lease, and the owner learns of it with its
//     first write.

// outageLeases is for how many leases a turn waits for its store.
const outageLeases = 20

// outage is how long a turn waits for its store.
func (k *Keeper) outage() time.Duration { return outageLeases * k.options.Lease }

// abandoned reports whether nobody carries on a running turn any more.
func (k *Keeper) abandoned(turn continuo.Turn) bool {
	if turn.Owner != k.options.Owner {
		silent := k.sightings.unchanged(turn.ConversationID+"/"+turn.ID, leaseState{turn.Fence, turn.LeaseUntil.UnixNano()}, turn.LeaseExpired)
		return turn.LeaseUntil.IsZero() || k.gone(turn.Owner) || silent && !k.options.Log.RecentlyReconnected(k.options.Lease)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_, runs := k.journals[turn.ID]
	return !runs
}

// leaseState is what changes when a lease is renewed or taken.
type leaseState struct{ fence, renewal int64 }

// sightings are the leases of other processes as this one has seen them. It is safe for concurrent use.
type sightings struct {
	length time.Duration // of a lease

	mu     sync.Mutex
	leases map[string]*sighting
}

type sighting struct {
	state         leaseState
	since, newest time.Time // since when it has been seen so, and when last
}

// unchanged reports whether a lease has been seen in one state for its length. Expired says that it has run out by the
// store's clock, which is believed of a lease that was not seen lately.
func (s *sightings) unchanged(name string, state leaseState, expired bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	seen := s.leases[name]
	switch {
	case seen == nil:
		maps.DeleteFunc(s.leases, func(_ string, other *sighting) bool { return now.Sub(other.newest) > outageLeases*s.length })
		seen = &sighting{state: state, since: now}
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

// retry does something again while the store cannot be reached, for as long as a turn waits for it or until ctx ends.
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

// lostIf stops the turn when another process has taken its place, or when the store could not be written for too long.
func (j *Journal) lostIf(err error) {
	if !errors.Is(err, continuo.ErrLeaseLost) && time.Since(j.renewed) <= j.keeper.outage() {
		return
	}
	if j.ctx.Err() == nil {
		j.keeper.options.Meter.LeaseLost()
	}
	j.stop(fmt.Errorf("%w: %w", continuo.ErrLeaseLost, err))
}
