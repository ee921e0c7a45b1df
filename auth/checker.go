package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Checker says which keys may be used. It remembers what it found, so that most checks ask nobody. It is
// safe for concurrent use.
type Checker struct {
	store   continuo.KeyStore
	options Options

	mu    sync.Mutex
	found map[string]finding // by id, of keys that there are

	exists   atomic.Bool   // there is a key
	asking   chan struct{} // holds one while the store is asked for any key
	askedAt  time.Time     // when there was none; under asking
	failure  error         // of the newest question that failed; under asking
	failures atomic.Int64  // how many failed
}

// finding is a key as the store had it.
type finding struct {
	key continuo.APIKey
	at  time.Time
}

// Options configures a Checker. The zero value works.
type Options struct {
	// Keep is how long what was found counts: a key that is revoked is refused at most so much later, by
	// every process. Default 5 s.
	Keep time.Duration
	// MaxKept bounds how many keys are remembered. Default 1024.
	MaxKept int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// NewChecker makes a checker of a store's keys.
func NewChecker(store continuo.KeyStore, options Options) *Checker {
	if options.Keep == 0 {
		options.Keep = 5 * time.Second
	}
	if options.MaxKept == 0 {
		options.MaxKept = 1024
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Checker{store: store, options: options, found: map[string]finding{}, asking: make(chan struct{}, 1)}
}

// unknownHash stands for the hash of a key that there is not. It is no secret's that anybody could find.
var unknownHash = strings.Repeat("0", 64)

// Check finds the key of which shown is the whole text. It fails with ErrRefused, or as the store failed.
// A key whose secret was right, and that is over, comes back beside the error: its holder may be named.
func (c *Checker) Check(ctx context.Context, shown string) (continuo.APIKey, error) {
	id, secret, err := parse(shown)
	if err != nil {
		return continuo.APIKey{}, err
	}
	key, err := c.find(ctx, id)
	known := err == nil
	if errors.Is(err, continuo.ErrNotFound) {
		key.Hash = unknownHash // the same work for ids that there are and that there are not
	} else if err != nil {
		return continuo.APIKey{}, fmt.Errorf("look up API key %s: %w", id, err)
	}
	same := subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(key.Hash)) == 1
	switch {
	case !same || !known:
		return continuo.APIKey{}, fmt.Errorf("%w: it is not known here", ErrRefused)
	case !key.RevokedAt.IsZero():
		return key, fmt.Errorf("%w: it was revoked", ErrRefused)
	case !key.Usable(c.options.Now()):
		return key, fmt.Errorf("%w: it expired at %s", ErrRefused, key.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return key, nil
}

// find looks a key up by its id. One that there is not is asked for each time: nobody fills the memory with
// ids of their own making, and a new key counts at once.
func (c *Checker) find(ctx context.Context, id string) (continuo.APIKey, error) {
	now := c.options.Now()
	c.mu.Lock()
	kept, ok := c.found[id]
	c.mu.Unlock()
	if ok && now.Sub(kept.at) < c.options.Keep {
		return kept.key, nil
	}
	key, err := c.store.Key(ctx, id)
	if err != nil {
		return continuo.APIKey{}, err
	}
	c.exists.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.found) >= c.options.MaxKept {
		clear(c.found)
	}
	c.found[id] = finding{key, now}
	return key, nil
}

// InUse reports whether the store has a key of any project, be it expired or revoked: the end of the last
// key must not open what keys have closed. While there is none, the store is asked once in Options.Keep. Those
// who come meanwhile wait, and share a failure: behind a store that takes long to fail they do not queue up.
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
		if ctx.Err() == nil { // the store failed, not this caller's patience
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
