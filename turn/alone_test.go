package turn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// exclusive counts who does what only one may do at a time.
type exclusive struct {
	t    *testing.T
	at   atomic.Int32 // how many do it now
	mu   sync.Mutex
	done []string // who began, in order
}

// begin runs it until its context ends.
func (a *exclusive) begin(ctx context.Context, keeper *turn.Keeper, who string) (ended <-chan error) {
	end := make(chan error, 1)
	go func() {
		end <- keeper.RunExclusive(ctx, "chat", nil, func(ctx context.Context) error {
			if a.at.Add(1) > 1 {
				a.t.Errorf("%s does what another one does", who)
			}
			a.mu.Lock()
			a.done = append(a.done, who)
			a.mu.Unlock()
			<-ctx.Done()
			a.at.Add(-1)
			return ctx.Err()
		})
	}()
	return end
}

func (a *exclusive) check(want ...string) {
	a.t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.done) != len(want) {
		a.t.Fatalf("it was done by %v, want %v", a.done, want)
	}
	for i := range want {
		if a.done[i] != want[i] {
			a.t.Fatalf("it was done by %v, want %v", a.done, want)
		}
	}
}

// cutOff is a store that a process cannot reach for a while.
type cutOff struct {
	continuo.Store
	off atomic.Bool
}

func (c *cutOff) TakeLease(ctx context.Context, name, owner string, over int64) (continuo.Lease, error) {
	if c.off.Load() {
		return continuo.Lease{}, continuo.ErrUnavailable
	}
	return c.Store.TakeLease(ctx, name, owner, over)
}

func (c *cutOff) EndLease(ctx context.Context, name, owner string) error {
	if c.off.Load() {
		return continuo.ErrUnavailable
	}
	return c.Store.EndLease(ctx, name, owner)
}

// TestOneProcessRunsExclusively has two processes ask to do the same thing.
func TestOneProcessRunsExclusively(t *testing.T) {
	const lease = 15 * time.Second
	keeper := func(store continuo.Store, owner string, gone func(string) bool) *turn.Keeper {
		return turn.NewKeeper(turn.KeeperOptions{Log: continuo.NewLog(store, continuo.LogOptions{}), Owner: owner, Gone: gone, Lease: lease})
	}
	run := func(name string, test func(t *testing.T, a *exclusive, store continuo.Store)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, &exclusive{t: t}, storetest.NewMemory()) })
		})
	}
	run("who ends gives way soon", func(t *testing.T, a *exclusive, store continuo.Store) {
		first, stop := context.WithCancel(t.Context())
		ended := a.begin(first, keeper(store, "first", nil), "first")
		a.check("first")
		second, stopSecond := context.WithCancel(t.Context())
		endedSecond := a.begin(second, keeper(store, "second", nil), "second")
		time.Sleep(10 * lease)
		a.check("first")
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the first one ended with %v", err)
		}
		time.Sleep(2 * time.Second)
		a.check("first", "second")
		stopSecond()
		<-endedSecond
	})
	run("who cannot reach the store stops before another begins", func(t *testing.T, a *exclusive, store continuo.Store) {
		ctx, stop := context.WithCancel(t.Context())
		cut := &cutOff{Store: store}
		ended := a.begin(ctx, keeper(cut, "first", nil), "first")
		a.check("first")
		endedSecond := a.begin(ctx, keeper(store, "second", nil), "second")
		cut.off.Store(true)
		time.Sleep(lease + 2*time.Second)
		a.check("first", "second")
		cut.off.Store(false)
		time.Sleep(10 * lease)
		a.check("first", "second")
		stop()
		<-ended
		<-endedSecond
	})
	run("a short failure changes nothing", func(t *testing.T, a *exclusive, store continuo.Store) {
		ctx, stop := context.WithCancel(t.Context())
		cut := &cutOff{Store: store}
		ended := a.begin(ctx, keeper(cut, "first", nil), "first")
		endedSecond := (<-chan error)(nil)
		a.check("first")
		endedSecond = a.begin(ctx, keeper(store, "second", nil), "second")
		for range 5 {
			cut.off.Store(true)
			time.Sleep(lease / 2)
			cut.off.Store(false)
			time.Sleep(lease / 2)
		}
		a.check("first")
		stop()
		<-ended
		<-endedSecond
	})
	run("the lease of a process that is gone is not waited for", func(t *testing.T, a *exclusive, store continuo.Store) {
		ctx, stop := context.WithCancel(t.Context())
		if _, err := store.TakeLease(ctx, "chat", "dead#1", 0); err != nil {
			t.Fatal(err)
		}
		ended := a.begin(ctx, keeper(store, "first", func(owner string) bool { return owner == "dead" }), "first")
		a.check("first")
		stop()
		<-ended
	})
	run("a panic is the caller's", func(t *testing.T, _ *exclusive, store continuo.Store) {
		defer func() {
			if cause := recover(); !strings.Contains(fmt.Sprint(cause), "a bug") {
				t.Errorf("recovered %v", cause)
			}
			if held, err := store.TakeLease(t.Context(), "chat", "another", 0); err != nil || held.Owner != "another" {
				t.Errorf("the lease was not given back: %v, %v", held, err)
			}
		}()
		_ = keeper(store, "first", nil).RunExclusive(t.Context(), "chat", nil, func(context.Context) error { panic("a bug") })
	})
	run("an end by itself is the end", func(t *testing.T, _ *exclusive, store continuo.Store) {
		failure := errors.New("it failed")
		var reported []string
		if _, err := store.TakeLease(t.Context(), "chat", "another", 0); err != nil {
			t.Fatal(err)
		}
		err := keeper(store, "first", nil).RunExclusive(t.Context(), "chat", func(owner string) { reported = append(reported, owner) }, func(context.Context) error { return failure })
		if !errors.Is(err, failure) {
			t.Errorf("it ended with %v", err)
		}
		if len(reported) != 1 || reported[0] != "another" {
			t.Errorf("it reported %v", reported)
		}
		if held, err := store.TakeLease(t.Context(), "chat", "another", 0); err != nil || held.Owner != "another" {
			t.Errorf("the lease was not given back: %v, %v", held, err)
		}
	})
}
