package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// testNamedLeases has two processes ask for leases. None is waited for: one of no time has ended when it begins.
func testNamedLeases(t *testing.T, opener Opener) {
	one, two := open(t, opener), open(t, opener)
	take := func(store continuo.Store, name, owner string, over int64, length time.Duration, want continuo.Lease) {
		t.Helper()
		held, err := store.TakeLease(t.Context(), name, owner, over, length)
		noError(t, err)
		same(t, fmt.Sprintf("the lease %q for %s", name, owner), held, want)
	}
	first, second := continuo.Lease{Owner: "first", Fence: 1}, continuo.Lease{Owner: "second", Fence: 2}
	take(one, "chat", "first", 0, long, first)
	take(two, "chat", "second", 0, long, first)
	take(two, "chat", "second", 7, long, first)
	take(two, "Chat", "second", 0, long, continuo.Lease{Owner: "second", Fence: 1})
	take(one, "chat", "first", 0, long, first) // renewed
	noError(t, two.EndLease(t.Context(), "chat", "second"))
	take(two, "chat", "second", 0, long, first) // it was not its own
	take(two, "chat", "second", 1, long, second)
	noError(t, one.EndLease(t.Context(), "chat", "first")) // not its own any more
	take(one, "chat", "first", 0, long, second)
	take(two, "chat", "second", 0, 0, second) // ends at once
	take(one, "chat", "first", 0, long, continuo.Lease{Owner: "first", Fence: 3})
	noError(t, one.EndLease(t.Context(), "chat", "first"))
	take(two, "chat", "third", 0, long, continuo.Lease{Owner: "third", Fence: 4})
	noError(t, two.EndLease(t.Context(), "nothing", "third"))
	take(open(t, opener), "chat", "first", 0, long, continuo.Lease{Owner: "third", Fence: 4})
	for _, bad := range []string{"a\x00b", "a\xffb"} {
		_, err := one.TakeLease(t.Context(), bad, "first", 0, long)
		expectError(t, "a name", err, continuo.ErrInvalid)
		_, err = one.TakeLease(t.Context(), "other", bad, 0, long)
		expectError(t, "an owner", err, continuo.ErrInvalid)
	}
}

// testOneHoldsALease has many owners ask at once for a lease that nobody has.
func testOneHoldsALease(t *testing.T, opener Opener) {
	stores := []continuo.Store{open(t, opener), open(t, opener)}
	for round := range 5 {
		var got atomic.Int32
		var asking sync.WaitGroup
		for i := range 16 {
			asking.Go(func() {
				owner := fmt.Sprint(i)
				held, err := stores[i%2].TakeLease(t.Context(), fmt.Sprint("round ", round), owner, 0, long)
				if err != nil {
					t.Error(err)
				}
				if held.Owner == owner {
					got.Add(1)
				}
			})
		}
		if asking.Wait(); got.Load() != 1 {
			t.Errorf("%d of 16 have the lease, want one", got.Load())
		}
	}
}
