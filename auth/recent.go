package auth

import (
	"context"
	"sync"
	"time"
)

// recent caches what a store has under an id, for a bounded time. Failures are not cached: invented ids cannot fill the
// memory, and what is new is valid at once. It is safe for concurrent use.
type recent[T any] struct {
	options Options
	load    func(context.Context, string) (T, error)

	mu        sync.Mutex
	byID      map[string]loaded[T]
	forgotten int // how often forget was called
}

// loaded is a value as it was in the store.
type loaded[T any] struct {
	value T
	at    time.Time
}

func newRecent[T any](options Options, load func(context.Context, string) (T, error)) *recent[T] {
	return &recent[T]{options: options, load: load, byID: map[string]loaded[T]{}}
}

// get returns the cached value, or loads it; it fails with the store's error.
func (r *recent[T]) get(ctx context.Context, id string) (T, error) {
	now := r.options.Now()
	r.mu.Lock()
	kept, ok := r.byID[id]
	forgotten := r.forgotten
	r.mu.Unlock()
	if ok && now.Sub(kept.at) < r.options.Keep {
		return kept.value, nil
	}
	value, err := r.load(ctx, id)
	if err != nil {
		return value, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forgotten != forgotten { // the value may be of before that
		return value, nil
	}
	if len(r.byID) >= r.options.MaxKept {
		clear(r.byID)
	}
	r.byID[id] = loaded[T]{value, now}
	return value, nil
}

// forget removes what is cached under the id. What is being loaded meanwhile is not cached.
func (r *recent[T]) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten++
	delete(r.byID, id)
}
