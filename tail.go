package continuo

import (
	"context"
	"iter"
	"time"
)

// Tail yields the entries after seq and then waits for new ones, until ctx is done or the conversation is deleted.
// Entries of other processes arrive within LogOptions.Poll.
func (l *Log) Tail(ctx context.Context, id string, after int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		listener := l.Listen(id)
		defer listener.Close()
		for {
			changed := listener.Changed()
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
			if !listener.Wait(ctx, changed, l.options.Poll) {
				return
			}
		}
	}
}

// slowPoll is the poll interval for a store that reports its changes.
const slowPoll = time.Second

// Listener wakes a reader of a conversation when it may have changed.
type Listener struct {
	log       *Log
	id        string
	broadcast *broadcast
}

// broadcast notifies the listeners of one conversation that it may have changed.
type broadcast struct {
	changed   chan struct{} // closed and replaced at each change
	elsewhere chan struct{} // the same, but only for changes by other processes that the store reported
	listeners int
}

// Listen adds a listener for a conversation; the caller closes it.
func (l *Log) Listen(id string) *Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.broadcasts[id]
	if n == nil {
		n = &broadcast{changed: make(chan struct{}), elsewhere: make(chan struct{})}
		l.broadcasts[id] = n
	}
	n.listeners++
	return &Listener{l, id, n}
}

// Changed returns a channel that closes when the conversation may have changed: this process appended to it, or the
// store reports that another process changed it or its turns. A caller that takes the channel before it reads misses no
// report, but must also poll, because reports are hints and may be lost.
func (l *Listener) Changed() <-chan struct{} {
	l.log.mu.Lock()
	defer l.log.mu.Unlock()
	return l.broadcast.changed
}

// ChangedElsewhere is like Changed, but only for reported changes of this conversation by other processes.
func (l *Listener) ChangedElsewhere() <-chan struct{} {
	l.log.mu.Lock()
	defer l.log.mu.Unlock()
	return l.broadcast.elsewhere
}

// Wait returns when the conversation may have changed since the channel was taken, or after poll (at least a second
// where the store reports changes). It is false when ctx is done.
func (l *Listener) Wait(ctx context.Context, changed <-chan struct{}, poll time.Duration) bool {
	if l.log.notified.Load() {
		poll = max(poll, slowPoll)
	}
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// Close removes the listener.
func (l *Listener) Close() {
	l.log.mu.Lock()
	defer l.log.mu.Unlock()
	if l.broadcast.listeners--; l.broadcast.listeners == 0 {
		delete(l.log.broadcasts, l.id)
	}
}

// WatchChanges forwards the store's reports of other processes' changes to the listeners, until ctx is done. It returns
// at once for a store that reports none: then listeners poll.
func (l *Log) WatchChanges(ctx context.Context) {
	notifier, ok := l.store.(ChangeNotifier)
	if !ok {
		return
	}
	defer l.notified.Store(false)
	notifier.WatchChanges(ctx, func(ids []string) {
		if !l.notified.Swap(true) {
			l.back.Store(time.Now().UnixNano())
			l.lost.Store(false)
		}
		l.wake(ids, true)
	}, func() {
		l.lost.Store(true)
		l.notified.Store(false)
	})
}

// RecentlyReconnected reports whether, as far as WatchChanges knows, the store is unreachable or was until less than a
// moment ago: then leases may have expired that their owners are about to renew. The start of WatchChanges counts as a
// reconnection.
func (l *Log) RecentlyReconnected(moment time.Duration) bool {
	return l.lost.Load() || time.Since(time.Unix(0, l.back.Load())) < moment
}

// announce wakes the listeners of conversations that this process changed.
func (l *Log) announce(ids ...string) { l.wake(ids, false) }

// wake wakes the listeners of conversations; nil means all.
func (l *Log) wake(ids []string, elsewhere bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ids == nil {
		for _, n := range l.broadcasts {
			n.wake(false)
		}
	}
	for _, id := range ids {
		if n := l.broadcasts[id]; n != nil {
			n.wake(elsewhere)
		}
	}
}

// wake wakes every listener. The caller holds the log's lock.
func (n *broadcast) wake(elsewhere bool) {
	close(n.changed)
	n.changed = make(chan struct{})
	if elsewhere {
		close(n.elsewhere)
		n.elsewhere = make(chan struct{})
	}
}
