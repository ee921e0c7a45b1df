package brief

import (
	"sync"
)

// Cache caches parsed texts of the log by ids and hashes. It is safe for concurrent use.
type Cache[T any] struct {
	mu   sync.Mutex
	read map[string]T
}

// maxTexts bounds the number of cached texts.
const maxTexts = 256

// Get returns a cached text, or reads and caches it.
func (t *Cache[T]) Get(key string, read func() (T, error)) (T, error) {
	t.mu.Lock()
	found, ok := t.read[key]
	t.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := read()
	if err != nil {
		return found, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read == nil || len(t.read) >= maxTexts {
		t.read = map[string]T{}
	}
	t.read[key] = found
	return found, nil
}
