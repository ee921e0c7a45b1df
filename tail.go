package continuo

import (
	"context"
	"iter"
	"time"
)

// Tail yields the entries after seq and then waits for new ones, until ctx is done or the conversation
// is deleted. Entries that another process appends are seen within LogOptions.Poll.
func (l *Log) Tail(ctx context.Context, id string, after int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		n := l.listen(id)
		defer l.leave(id, n)
		for {
			grown := l.growth(n)
			conversation, err := l.Conversation(ctx, id)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for entry, err := range l.Read(ctx, conversation, Range{From: after + 1}) {
				if !yield(entry, err) || err != nil {
					return
				}
				after = entry.Seq
			}
			timer := time.NewTimer(l.options.Poll)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-grown:
				timer.Stop()
			case <-timer.C:
			}
		}
	}
}

// news tells the tails of one conversation that it has grown.
type news struct {
	grown     chan struct{} // closed, and replaced, at each growth
	listeners int
}

func (l *Log) listen(id string) *news {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.news[id]
	if n == nil {
		n = &news{grown: make(chan struct{})}
		l.news[id] = n
	}
	n.listeners++
	return n
}

func (l *Log) leave(id string, n *news) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.listeners--; n.listeners == 0 {
		delete(l.news, id)
	}
}

// growth returns a channel that closes when this process next appends to the conversation.
func (l *Log) growth(n *news) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return n.grown
}

func (l *Log) announce(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.news[id]; n != nil {
		close(n.grown)
		n.grown = make(chan struct{})
	}
}
