package audit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
)

// kept is a store in memory that can fail.
type kept struct {
	audit.Store
	mu     sync.Mutex
	events []audit.Event
	writes int
	fails  error
}

func (k *kept) AddAudit(_ context.Context, events []audit.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails == nil {
		k.events = append(k.events, events...)
		k.writes++
	}
	return k.fails
}

func (k *kept) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fails = err
}

func (k *kept) operations() (all []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.events {
		all = append(all, fmt.Sprintf("%s*%d", e.Operation, e.Count))
	}
	return all
}

func event(operation, conversation string, status int) audit.Event {
	return audit.Event{
		Operation: operation, ConversationID: conversation, Status: status,
		Caller: audit.Caller{Origin: audit.OriginHTTP, ProjectID: "p", KeyID: "k", Remote: "192.0.2.1"},
	}
}

func (k *kept) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := k.operations(); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A change is durable when Commit returns; a read is when the pause is over; and all of it is when the trail is closed.
func TestChangesAreDurableAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &kept{}
		trail := audit.NewTrail(store, audit.Options{})
		defer trail.Close()
		trail.Add(event("read", "a", 200))
		synctest.Wait()
		store.expect(t)
		if err := trail.Commit(t.Context(), event("change", "a", 200)); err != nil {
			t.Fatal(err)
		}
		store.expect(t, "read*1", "change*1")
		trail.Add(event("read", "b", 200))
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		store.expect(t, "read*1", "change*1", "read*1")
		trail.Add(event("read", "c", 200))
		trail.Close()
		trail.Close()
		store.expect(t, "read*1", "change*1", "read*1", "read*1")
	})
}

// What a caller repeats, and what it makes up in order to fill the store, is counted.
func TestRepeatsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &kept{}
		trail := audit.NewTrail(store, audit.Options{MaxRepeated: 3})
		defer trail.Close()
		for n := range 1000 {
			trail.Add(event("read", "a", 200))
			refused := event("delete", fmt.Sprint(n), 401) // the same address, other conversations
			refused.KeyID = ""
			trail.Add(refused)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		store.expect(t, "read*1", "delete*1")
		for n := range 1000 {
			refused := event("delete", "a", 401)
			refused.Remote = fmt.Sprint("192.0.2.", n)
			trail.Add(refused)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		got, all := store.operations(), map[string]int{}
		total := 0
		for _, e := range store.events {
			all[e.Operation] += int(e.Count)
			total += int(e.Count)
		}
		if len(got) > 10 || total != 3000 || all["read"] != 1000 {
			t.Errorf("%d events for 3000 requests, %v: %q", len(got), all, got)
		}
	})
}

// A store that fails holds a change up for a bounded time, and gets the event when it is back.
func TestAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &kept{fails: continuo.ErrUnavailable}
		trail := audit.NewTrail(store, audit.Options{MaxWaiting: 2})
		defer trail.Close()
		begin := time.Now()
		if err := trail.Commit(t.Context(), event("change", "a", 200)); !errors.Is(err, audit.ErrPending) || time.Since(begin) != 2*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		trail.Add(event("read", "a", 200))
		if err := trail.Commit(t.Context(), event("too many", "a", 200)); !errors.Is(err, audit.ErrPending) {
			t.Errorf("got %v", err)
		}
		store.fail(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		store.expect(t, "change*1", "read*1")
	})
}

// No key gets into the store, and nothing that it refuses.
func TestWhatCallersSendIsCleaned(t *testing.T) {
	store := &kept{}
	trail := audit.NewTrail(store, audit.Options{})
	defer trail.Close()
	secret := "7k3mqv0z2x9a_" + strings.Repeat("x", 59)
	for _, field := range []string{"ctn_" + secret, "a/ctns_" + secret, "a\x00b\xff", strings.Repeat("é", 10000)} {
		if err := trail.Commit(t.Context(), event("x", field, 404)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range store.events {
		if id := e.ConversationID; strings.Contains(id, "xxx") || strings.ContainsAny(id, "\x00") || strings.ToValidUTF8(id, "") != id || len(id) > 200 {
			t.Errorf("kept %q", id)
		}
	}
}

func TestNothingIsRecordedWithoutATrail(t *testing.T) {
	var trail *audit.Trail
	trail.Add(event("x", "", 200))
	if err := trail.Commit(t.Context(), event("x", "", 200)); err != nil {
		t.Error(err)
	}
	if events, err := trail.Events(t.Context(), audit.Query{}); len(events) > 0 || err != nil {
		t.Errorf("%v, %v", events, err)
	}
	audit.About(t.Context(), "a")
	trail.Close()
}
