package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// testNamedLeases has two processes take leases. No time passes: a lease lasts until it is released or taken
// over.
func testNamedLeases(t *testing.T, opener Opener) {
	one, two := open(t, opener), open(t, opener)
	take := func(store maintenance.Store, name, owner string, over int64, want continuo.Lease) {
		t.Helper()
		held, err := store.TakeLease(t.Context(), name, owner, over)
		noError(t, err)
		same(t, fmt.Sprintf("the lease %q for %s", name, owner), held, want)
	}
	end := func(store maintenance.Store, name, owner string) {
		t.Helper()
		noError(t, store.EndLease(t.Context(), name, owner))
	}
	lease := func(owner string, fence, renewals int64) continuo.Lease {
		return continuo.Lease{Owner: owner, Fence: fence, Renewals: renewals}
	}
	take(one, "chat", "first", 0, lease("first", 1, 0))
	take(two, "chat", "second", 0, lease("first", 1, 0))
	take(two, "chat", "second", 7, lease("first", 1, 0))
	take(two, "Chat", "second", 0, lease("second", 1, 0))
	take(one, "chat", "first", 0, lease("first", 1, 1)) // renewed
	take(two, "chat", "second", 0, lease("first", 1, 1))
	end(two, "chat", "second")
	take(two, "chat", "second", 0, lease("first", 1, 1)) // it was held by another owner
	take(two, "chat", "second", 1, lease("second", 2, 2))
	end(one, "chat", "first") // no longer its own
	take(one, "chat", "first", 0, lease("second", 2, 2))
	take(one, "chat", "first", 1, lease("second", 2, 2)) // another owner has taken it meanwhile
	end(two, "chat", "second")
	take(one, "chat", "first", 0, lease("first", 3, 3))
	end(one, "chat", "first")
	take(one, "chat", "first", 0, lease("first", 4, 4)) // every acquisition has a new fencing token
	end(two, "nothing", "third")
	take(open(t, opener), "chat", "third", 0, lease("first", 4, 4))
	for what, bad := range map[string][2]string{
		"a name with a zero": {"a\x00b", "first"}, "a name that is no text": {"a\xffb", "first"},
		"an owner with a zero": {"other", "a\x00b"}, "an owner that is no text": {"other", "a\xffb"}, "no owner": {"other", ""},
	} {
		_, err := one.TakeLease(t.Context(), bad[0], bad[1], 0)
		expectError(t, what, err, continuo.ErrInvalid)
	}
}

// testOneHoldsALease has many owners take a free lease at once.
func testOneHoldsALease(t *testing.T, opener Opener) {
	stores := []maintenance.Store{open(t, opener), open(t, opener)}
	for round := range 5 {
		var got atomic.Int32
		var asking sync.WaitGroup
		for i := range 16 {
			asking.Go(func() {
				owner := fmt.Sprint(i)
				held, err := stores[i%2].TakeLease(t.Context(), fmt.Sprint("round ", round), owner, 0)
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
