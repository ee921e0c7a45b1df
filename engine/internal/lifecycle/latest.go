package lifecycle

import "sync"

// Latest lets one goroutine work for each key, on the newest value that was given for it. The zero value is ready. It is
// safe for concurrent use.
type Latest[K comparable, V any] struct {
	mu   sync.Mutex
	next map[K]*V // nil: nothing was given since the work began
}

// Begin reports whether the caller is to work on the value. Otherwise another goroutine works for the key, and gets the
// value from Next.
func (l *Latest[K, V]) Begin(key K, value V) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, works := l.next[key]; works {
		l.next[key] = &value
		return false
	}
	if l.next == nil {
		l.next = map[K]*V{}
	}
	l.next[key] = nil
	return true
}

// Next returns the value that was given since Begin or Next returned last. Where there is none, the work has ended.
func (l *Latest[K, V]) Next(key K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.next[key]
	if next == nil {
		delete(l.next, key)
		return value, false
	}
	l.next[key] = nil
	return *next, true
}
