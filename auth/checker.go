package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Checker decides which keys, and which sessions of keys, are valid. It caches both, so that most checks do not read the store. It is safe for
// concurrent use.
type Checker struct {
	store   KeyStore
	options Options

	keys     *recent[Key]
	sessions *recent[Session]

	exists   atomic.Bool   // a key exists
	asking   chan struct{} // held while the store is asked whether it has any key
	askedAt  time.Time     // when there was none; guarded by asking
	failure  error         // of the newest query that failed; guarded by asking
	failures atomic.Int64  // how many failed
}

// Options configures a Checker. The zero value works.
type Options struct {
	// Keep is the lifetime of the cache: a revoked key is refused at most so much later, by every process. Default 5 s.
	Keep time.Duration
	// MaxKept bounds how many keys, and how many sessions, are cached. Default 1024.
	MaxKept int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// NewChecker makes a checker of a store's keys.
func NewChecker(store KeyStore, options Options) *Checker {
	if options.Keep == 0 {
		options.Keep = 5 * time.Second
	}
	if options.MaxKept == 0 {
		options.MaxKept = 1024
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Checker{
		store: store, options: options, asking: make(chan struct{}, 1),
		keys: newRecent(options, store.Key), sessions: newRecent(options, store.Session),
	}
}

// unknownHash replaces the hash of a key that does not exist. No secret that can be found has this hash.
var unknownHash = strings.Repeat("0", 64)

// Check looks up the key whose full text is shown. It fails with ErrRefused, or with the store's error. A revoked or
// expired key whose secret was right is returned beside the error: its holder may be named.
func (c *Checker) Check(ctx context.Context, shown string) (Key, error) {
	id, secret, err := parse(shown)
	if err != nil {
		return Key{}, err
	}
	key, err := c.find(ctx, id)
	known := err == nil
	if errors.Is(err, continuo.ErrNotFound) {
		key.Hash = unknownHash // the same work whether the id exists or not
	} else if err != nil {
		return Key{}, fmt.Errorf("look up API key %s: %w", id, err)
	}
	same := subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(key.Hash)) == 1
	switch {
	case !same || !known:
		return Key{}, fmt.Errorf("%w: it is not known here", ErrRefused)
	case !key.RevokedAt.IsZero():
		return key, fmt.Errorf("%w: it was revoked", ErrRefused)
	case !key.Usable(c.options.Now()):
		return key, fmt.Errorf("%w: it expired at %s", ErrRefused, key.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return key, nil
}

// find looks a key up by its id; ErrNotFound.
func (c *Checker) find(ctx context.Context, id string) (Key, error) {
	key, err := c.keys.get(ctx, id)
	if err == nil {
		c.exists.Store(true)
	}
	return key, err
}

// InUse reports whether the store has a key of any project, even an expired or revoked one: the end of the last key
// must not open what keys have closed. While there is none, the store is asked once per Options.Keep. Concurrent
// callers wait, and share a failure: they do not queue up behind a store that fails slowly.
func (c *Checker) InUse(ctx context.Context) (bool, error) {
	if c.exists.Load() {
		return true, nil
	}
	failures := c.failures.Load()
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return false, fmt.Errorf("look for API keys: %w", context.Cause(ctx))
	}
	now := c.options.Now()
	switch {
	case c.exists.Load() || now.Sub(c.askedAt) < c.options.Keep:
		return c.exists.Load(), nil
	case c.failures.Load() != failures:
		return false, c.failure
	}
	return c.ask(ctx, now)
}

// ask looks for any key in the store.
func (c *Checker) ask(ctx context.Context, now time.Time) (bool, error) {
	keys, err := c.store.Keys(ctx, "")
	if err != nil {
		err = fmt.Errorf("look for API keys: %w", err)
		if ctx.Err() == nil { // the store failed, and not this caller's context
			c.failure = err
			c.failures.Add(1)
		}
		return false, err
	}
	if c.askedAt = now; len(keys) > 0 {
		c.exists.Store(true)
	}
	return len(keys) > 0, nil
}

// Keys lists the keys of a project, the oldest first.
func (c *Checker) Keys(ctx context.Context, projectID string) ([]Key, error) {
	keys, err := c.store.Keys(ctx, projectID)
	if err != nil {
		return nil, fmt.Errorf("list API keys: %w", err)
	}
	return keys, nil
}

// Key finds a key by its id; ErrNotFound.
func (c *Checker) Key(ctx context.Context, id string) (Key, error) { return c.find(ctx, id) }

// CreateKey keeps a new key.
func (c *Checker) CreateKey(ctx context.Context, key Key) error {
	if err := c.store.CreateKey(ctx, key); err != nil {
		return fmt.Errorf("keep API key %s: %w", key.ID, err)
	}
	return nil
}

// RevokeKey revokes a key. This process refuses it from now on, others when their cache ends.
func (c *Checker) RevokeKey(ctx context.Context, id string) (Key, error) {
	key, err := c.store.RevokeKey(ctx, id, c.options.Now().UTC())
	if err != nil {
		return key, fmt.Errorf("revoke API key %s: %w", id, err)
	}
	c.keys.forget(id)
	return key, nil
}
