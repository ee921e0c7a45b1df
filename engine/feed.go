package engine

import (
	"iter"
	"sync"
)

// feed hands a turn's events to one reader without ever holding up the turn: what the reader has not
// taken waits in order, bounded by the turn itself, and is dropped when the reader has left.
type feed struct {
	mu     sync.Mutex
	queue  []eventOrError
	left   bool
	closed bool
	more   chan struct{} // has room for one signal
}

func newFeed() *feed { return &feed{more: make(chan struct{}, 1)} }

func (f *feed) put(event eventOrError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left {
		return
	}
	f.queue = append(f.queue, event)
	f.signal()
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.signal()
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.queue = true, nil
}

func (f *feed) signal() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// all yields the events as they come, until the feed is closed.
func (f *feed) all() iter.Seq[eventOrError] {
	return func(yield func(eventOrError) bool) {
		for {
			f.mu.Lock()
			queue, closed := f.queue, f.closed
			f.queue = nil
			f.mu.Unlock()
			for _, event := range queue {
				if !yield(event) {
					return
				}
			}
			if len(queue) > 0 {
				continue
			}
			if closed {
				return
			}
			<-f.more
		}
	}
}
