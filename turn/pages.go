package turn

import (
	"context"
	"slices"
	"sync"
)

// pages caches the pages of stored events that readers of this process are reading. Readers of one turn share them, so
// many slow readers hold each event once. A page is dropped when its last reader releases it.
type pages struct {
	mu   sync.Mutex
	held map[turnKey][]*page
}

// turnKey identifies a turn.
type turnKey struct{ conversationID, turnID string }

// page is a range of a turn's events. It does not change once it is loaded.
type page struct {
	key     turnKey
	after   int64 // the events have ids above it
	events  []Event
	free    func() // releases the memory that they take
	loaded  bool
	done    chan struct{} // closed when the load has ended
	readers int
}

// loader reads a page of events. Free releases the memory that they take from the context's budget.
type loader func() (events []Event, free func(), err error)

// covers reports whether the page has the event that follows an id, or is being loaded from there.
func (p *page) covers(after int64) bool {
	if !p.loaded {
		return p.after == after
	}
	return p.after <= after && after < p.events[len(p.events)-1].ID
}

// take returns a page with the event that follows an id; the caller releases it. It returns nil when there is no such
// event. Load reads the events after the id.
func (p *pages) take(ctx context.Context, key turnKey, after int64, load loader) (*page, error) {
	for {
		found, own := p.find(key, after)
		if own {
			return p.fill(found, load)
		}
		select {
		case <-ctx.Done():
			p.release(found)
			return nil, context.Cause(ctx)
		case <-found.done:
		}
		if found.loaded {
			return found, nil
		}
		// Another reader's load failed, or found nothing, perhaps before the event came.
		p.release(found)
	}
}

// find returns a page that covers the event after an id and counts the caller as a reader. Own says that the caller
// must load it.
func (p *pages) find(key turnKey, after int64) (found *page, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, held := range p.held[key] {
		if held.covers(after) {
			held.readers++
			return held, false
		}
	}
	found = &page{key: key, after: after, done: make(chan struct{}), readers: 1}
	if p.held == nil {
		p.held = map[turnKey][]*page{}
	}
	p.held[key] = append(p.held[key], found)
	return found, true
}

// fill loads a page. One without events is dropped.
func (p *pages) fill(own *page, load loader) (*page, error) {
	events, free, err := load()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(own.done)
	own.free = free
	if err != nil || len(events) == 0 {
		p.drop(own)
		return nil, err
	}
	own.events, own.loaded = events, true
	return own, nil
}

// release removes a reader from a page.
func (p *pages) release(read *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if read.readers--; read.readers == 0 {
		p.drop(read)
	}
}

// drop removes a page. The caller holds mu.
func (p *pages) drop(gone *page) {
	if gone.free != nil { // it was loaded, or the load failed
		gone.free()
	}
	rest := slices.DeleteFunc(p.held[gone.key], func(other *page) bool { return other == gone })
	if p.held[gone.key] = rest; len(rest) == 0 {
		delete(p.held, gone.key)
	}
}
