package auth_test

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
	"github.com/continuo-log/continuo/auth"
)

// keys is a store of keys that counts what it is asked.
type keys struct {
	auth.KeyStore

	mu    sync.Mutex
	all   map[string]auth.Key
	asked int
	fails error
	held  func() // called when a key was read, before it is returned
}

func (k *keys) RevokeKey(_ context.Context, id string, at time.Time) (auth.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.all[id]
	key.RevokedAt = at
	k.all[id] = key
	return key, nil
}

func (k *keys) Key(_ context.Context, id string) (auth.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	key, ok := k.all[id]
	if held := k.held; held != nil {
		k.held = nil
		k.mu.Unlock()
		held()
		k.mu.Lock()
	}
	if !ok && k.fails == nil {
		return key, continuo.ErrNotFound
	}
	return key, k.fails
}

func (k *keys) Keys(context.Context, string) (all []auth.Key, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	for _, key := range k.all {
		all = append(all, key)
	}
	return all, k.fails
}

func (k *keys) put(key auth.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[key.ID] = key
}

// house is a checker over a store of keys, with a clock that a test moves.
type house struct {
	*auth.Checker
	t    *testing.T
	keys *keys
	now  time.Time
}

func newHouse(t *testing.T, options auth.Options) *house {
	h := &house{t: t, keys: &keys{all: map[string]auth.Key{}}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	options.Now = func() time.Time { return h.now }
	h.Checker = auth.NewChecker(h.keys, options)
	return h
}

// key makes a key and keeps it.
func (h *house) key(project string) (auth.Key, string) {
	key, shown := auth.New(h.now)
	key.ProjectID = project
	h.keys.put(key)
	return key, shown
}

// refused checks that a key is, for a reason.
func (h *house) refused(shown, reason string) auth.Key {
	h.t.Helper()
	key, err := h.Check(h.t.Context(), shown)
	if !errors.Is(err, auth.ErrRefused) || !strings.Contains(fmt.Sprint(err), reason) {
		h.t.Errorf("%v, want %q", err, reason)
	}
	if err != nil && strings.Contains(err.Error(), shown) {
		h.t.Errorf("the error has the key: %v", err)
	}
	return key
}

func (h *house) accepted(shown string) auth.Key {
	h.t.Helper()
	key, err := h.Check(h.t.Context(), shown)
	if err != nil {
		h.t.Fatal(err)
	}
	return key
}

func TestAKeyIsItsProjects(t *testing.T) {
	h := newHouse(t, auth.Options{})
	ours, oursShown := h.key("ours")
	_, theirsShown := h.key("theirs")
	if key := h.accepted(oursShown); key != ours {
		t.Errorf("got %+v, want %+v", key, ours)
	}
	if key := h.accepted(theirsShown); key.ProjectID != "theirs" {
		t.Errorf("got %+v", key)
	}
}

// A right id does not make a wrong secret right, nor the other way round.
func TestMixedKeysAreRefused(t *testing.T) {
	h := newHouse(t, auth.Options{})
	known, knownShown := h.key("p")
	_, unknownShown := auth.New(h.now)
	other, otherShown := auth.New(h.now)
	h.refused(unknownShown, "not known")
	other.ID = known.ID // the id of one, the hash of another
	h.keys.put(other)
	h.refused(knownShown, "not known")
	h.refused(otherShown, "not known")
	empty, emptyShown := h.key("p")
	empty.Hash = ""
	h.keys.put(empty)
	h.refused(emptyShown, "not known")
}

// An expired key admits nobody, but the error names its owner; a caller who only knows its id learns nothing.
func TestKeysEnd(t *testing.T) {
	h := newHouse(t, auth.Options{})
	key, shown := h.key("p")
	key.ExpiresAt = h.now.Add(time.Second)
	h.keys.put(key)
	h.accepted(shown)
	h.now = h.now.Add(time.Second) // it is remembered, and over all the same
	if over := h.refused(shown, "expired at 2026-03-01T12:00:01Z"); over.ID != key.ID {
		t.Errorf("got %+v", over)
	}
	key.Hash = strings.Repeat("f", 64)
	key.RevokedAt = h.now
	h.now = h.now.Add(time.Hour)
	h.keys.put(key)
	if stranger := h.refused(shown, "not known"); stranger.ID != "" {
		t.Errorf("a stranger learned of %+v", stranger)
	}
}

// A revoked key is refused once what was found has had its time, and not before anybody could know.
func TestRevokedKeysAreRefusedInTime(t *testing.T) {
	h := newHouse(t, auth.Options{})
	key, shown := h.key("p")
	for range 100 {
		h.accepted(shown)
	}
	if h.keys.asked != 1 {
		t.Errorf("100 checks asked the store %d times", h.keys.asked)
	}
	key.RevokedAt = h.now
	h.keys.put(key)
	h.now = h.now.Add(5 * time.Second)
	if over := h.refused(shown, "revoked"); over.ID != key.ID {
		t.Errorf("got %+v", over)
	}
}

// A key that was revoked while a check was reading it is not cached as it was before.
func TestAKeyIsRevokedWhileItIsRead(t *testing.T) {
	h := newHouse(t, auth.Options{})
	key, shown := h.key("p")
	h.keys.held = func() {
		if _, err := h.RevokeKey(t.Context(), key.ID); err != nil {
			t.Error(err)
		}
	}
	h.accepted(shown) // the check began before
	h.refused(shown, "revoked")
}

// Invented ids take no memory, and a new key is valid at once.
func TestUnknownKeysAreNotRemembered(t *testing.T) {
	h := newHouse(t, auth.Options{})
	key, shown := auth.New(h.now)
	h.refused(shown, "not known")
	h.keys.put(key)
	h.accepted(shown)
}

func TestFewKeysAreRemembered(t *testing.T) {
	h := newHouse(t, auth.Options{MaxKept: 2})
	var all []string
	for range 5 {
		_, shown := h.key("p")
		all = append(all, shown)
	}
	for range 3 {
		for _, shown := range all {
			h.accepted(shown)
		}
	}
	if h.keys.asked < 10 {
		t.Errorf("15 checks of 5 keys in turn asked the store %d times: more than 2 are remembered", h.keys.asked)
	}
}

// A store that fails opens nothing: its error is no refusal, and no word of what was found before.
func TestFailingStores(t *testing.T) {
	h := newHouse(t, auth.Options{})
	_, shown := h.key("p")
	h.accepted(shown)
	h.keys.fails = continuo.ErrUnavailable
	h.accepted(shown)
	h.now = h.now.Add(5 * time.Second)
	if _, err := h.Check(t.Context(), shown); !errors.Is(err, continuo.ErrUnavailable) || errors.Is(err, auth.ErrRefused) {
		t.Errorf("got %v", err)
	}
	empty := newHouse(t, auth.Options{})
	empty.keys.fails = continuo.ErrUnavailable
	if _, err := empty.InUse(t.Context()); !errors.Is(err, continuo.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// Keys are in use soon after the first one was made, and for good.
func TestInUse(t *testing.T) {
	h := newHouse(t, auth.Options{})
	inUse := func(want bool) {
		t.Helper()
		if got, err := h.InUse(t.Context()); err != nil || got != want {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	for range 100 {
		inUse(false)
	}
	if h.keys.asked != 1 {
		t.Errorf("the store was asked %d times", h.keys.asked)
	}
	key, shown := h.key("p")
	inUse(false) // it was looked up a moment ago
	h.accepted(shown)
	inUse(true) // a used key proves that there is one
	h = newHouse(t, auth.Options{})
	inUse(false)
	key.RevokedAt = h.now
	h.keys.put(key)
	h.now = h.now.Add(5 * time.Second)
	inUse(true) // revoked, and in use
	delete(h.keys.all, key.ID)
	h.now = h.now.Add(time.Hour)
	inUse(true)
}

// Many may ask at once.
func TestAtOnce(t *testing.T) {
	h := newHouse(t, auth.Options{MaxKept: 3})
	var all sync.WaitGroup
	for range 8 {
		_, shown := h.key("p")
		all.Go(func() {
			for range 50 {
				if _, err := h.Check(t.Context(), shown); err != nil {
					t.Error(err)
				}
				if _, err := h.InUse(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// slow is a store of keys that answers when it is told to.
type slow struct {
	auth.KeyStore
	asked  chan struct{}
	answer chan error
}

func (s *slow) Keys(context.Context, string) ([]auth.Key, error) {
	s.asked <- struct{}{}
	return nil, <-s.answer
}

// Who waits while another asks a store that hangs can give up, and is told its failure without asking again.
func TestWaitingForASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{asked: make(chan struct{}), answer: make(chan error)}
		checker := auth.NewChecker(store, auth.Options{})
		var all sync.WaitGroup
		asks := func() {
			if _, err := checker.InUse(t.Context()); !errors.Is(err, continuo.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		}
		all.Go(asks)
		<-store.asked
		for range 5 {
			all.Go(asks)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := checker.InUse(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		store.answer <- continuo.ErrUnavailable
		all.Wait()
	})
}
