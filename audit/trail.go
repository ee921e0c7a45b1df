package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Options configures a Trail. The zero value works.
type Options struct {
	// Pause is how long events of reads and refusals wait for others, so that they are written together. Default 1 s.
	Pause time.Duration
	// Window is the time in which repeated reads and refusals are one event. Default 1 min.
	Window time.Duration
	// Patience is how long Commit waits for a store that fails. Default 2 s.
	Patience time.Duration
	// MaxWaiting bounds the events in memory; further ones are in the log of the program only. Default 10000.
	MaxWaiting int
	// MaxRepeated bounds how many different reads and refusals are counted at once; refusals beyond it are counted together.
	// Default 4096.
	MaxRepeated int
	// Logger receives the events that cannot be stored. Default: no logging.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Trail adds events to a store, those of all callers together. It is safe for concurrent use. A nil Trail records nothing.
type Trail struct {
	store   Store
	options Options
	wake    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	closing sync.Once

	mu       sync.Mutex
	waiting  []pending
	repeated map[repetition]*repeat
	failing  bool // the store refused the last write
}

// pending is an event that is to be written.
type pending struct {
	Event
	written chan struct{} // closed when it is durable; nil: nobody waits
}

// repetition is what events that are counted together have in common.
type repetition struct {
	projectID, keyID, sessionID, remote, operation, conversationID, target string
	status                                                                 int
	origin                                                                 Origin
}

// repeat counts events after the first one, which was recorded.
type repeat struct {
	began time.Time
	last  Event
	count int64
}

// NewTrail makes a trail. Close must be called.
func NewTrail(store Store, options Options) *Trail {
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&options.Pause, time.Second}, {&options.Window, time.Minute}, {&options.Patience, 2 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if options.MaxWaiting == 0 {
		options.MaxWaiting = 10000
	}
	if options.MaxRepeated == 0 {
		options.MaxRepeated = 4096
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	t := &Trail{
		store: store, options: options, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		repeated: map[repetition]*repeat{},
	}
	go t.write()
	return t
}

// ErrPending says that an event could not be stored in time. It is stored as soon as the store takes it.
var ErrPending = errors.New("the event is not yet in the audit log")

// Commit records an event and returns when it is durable, or with ErrPending.
func (t *Trail) Commit(ctx context.Context, event Event) error {
	if t == nil {
		return nil
	}
	written := t.enqueue(event, true)
	if written == nil {
		return ErrPending
	}
	t.prod()
	timer := time.NewTimer(t.options.Patience)
	defer timer.Stop()
	select {
	case <-written:
		return nil
	case <-ctx.Done(): // it is written all the same
		return fmt.Errorf("%w: %w", ErrPending, context.Cause(ctx))
	case <-timer.C:
		return ErrPending
	}
}

// Add records the event of a read or a refusal, and does not wait. One that repeats an event of the last minute is counted,
// and recorded with the others when the minute is over.
func (t *Trail) Add(event Event) {
	if t == nil {
		return
	}
	event, now := t.complete(event), t.options.Now()
	t.mu.Lock()
	key := repetitionOf(event)
	known := t.repeated[key]
	if known == nil && len(t.repeated) >= t.options.MaxRepeated && event.Status >= 400 {
		key = repetition{projectID: event.ProjectID, operation: "many", status: event.Status, origin: event.Origin}
		known = t.repeated[key]
		event = Event{At: event.At, Caller: Caller{Origin: event.Origin, ProjectID: event.ProjectID}, Operation: "many", Status: event.Status, Count: 1}
	}
	if known != nil && now.Sub(known.began) < t.options.Window {
		known.last = event
		known.count++
		t.mu.Unlock()
		return
	}
	if known != nil && known.count > 0 {
		t.keep(pending{Event: known.event()})
	}
	if known != nil || len(t.repeated) < t.options.MaxRepeated || key.operation == "many" {
		t.repeated[key] = &repeat{began: now}
	}
	t.keep(pending{Event: event})
	t.mu.Unlock()
}

func repetitionOf(e Event) repetition {
	r := repetition{
		projectID: e.ProjectID, keyID: e.KeyID, sessionID: e.SessionID, remote: e.Remote, operation: e.Operation,
		conversationID: e.ConversationID, target: e.Target, status: e.Status, origin: e.Origin,
	}
	if e.Status == 401 || e.Status == 403 || e.Status == 429 { // what a refused caller names is of its own making
		r.conversationID, r.target = "", ""
	}
	return r
}

// event is that of the repeated ones.
func (r *repeat) event() Event {
	event := r.last
	event.Count = r.count
	return event
}

// complete is an event with a time and without what cannot be stored.
func (t *Trail) complete(event Event) Event {
	if event.At.IsZero() {
		event.At = t.options.Now()
	}
	return event.cleaned()
}

// enqueue adds an event to those that are to be written. It returns nil if there are too many.
func (t *Trail) enqueue(event Event, waits bool) chan struct{} {
	p := pending{Event: t.complete(event)}
	if waits {
		p.written = make(chan struct{})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.keep(p) {
		return nil
	}
	return p.written
}

// keep adds an event, with mu held, or writes it to the log of the program if there are too many.
func (t *Trail) keep(p pending) bool {
	if len(t.waiting) < t.options.MaxWaiting {
		t.waiting = append(t.waiting, p)
		return true
	}
	t.options.Logger.Error("audit_event_lost", "at", p.At, "project", p.ProjectID, "origin", string(p.Origin), "key_id", p.KeyID,
		"session_id", p.SessionID, "user_id", p.UserID, "operation", p.Operation, "conversation_id", p.ConversationID,
		"target", p.Target, "status", p.Status, "remote", p.Remote, "request_id", p.RequestID, "count", p.Count)
	return false
}

// prod has what waits written now.
func (t *Trail) prod() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// atOnce bounds the events of one write.
const atOnce = 500

// write writes what waits, until Close.
func (t *Trail) write() {
	defer close(t.done)
	ticker := time.NewTicker(t.options.Pause)
	defer ticker.Stop()
	for {
		select {
		case <-t.stop:
			t.settle(true)
			t.flush()
			return
		case <-t.wake:
			if t.isFailing() { // the ticker tries again
				continue
			}
		case <-ticker.C:
			t.settle(false)
		}
		t.flush()
	}
}

func (t *Trail) isFailing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failing
}

// settle turns the counts whose minute is over into events.
func (t *Trail) settle(all bool) {
	now := t.options.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, known := range t.repeated {
		if !all && now.Sub(known.began) < t.options.Window {
			continue
		}
		delete(t.repeated, key)
		if known.count > 0 {
			t.keep(pending{Event: known.event()})
		}
	}
}

// flush writes what waits. What the store refuses stays.
func (t *Trail) flush() {
	for {
		t.mu.Lock()
		batch := t.waiting[:min(len(t.waiting), atOnce)]
		t.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		events := make([]Event, len(batch))
		for i := range batch {
			events[i] = batch[i].Event
		}
		err := t.store.AddAudit(context.Background(), events)
		t.mu.Lock()
		t.failing = err != nil
		if err == nil {
			t.waiting = append([]pending(nil), t.waiting[len(batch):]...)
		}
		t.mu.Unlock()
		if err != nil {
			t.options.Logger.Error("audit_failed", "waiting", len(events), "error", err.Error())
			return
		}
		for _, p := range batch {
			if p.written != nil {
				close(p.written)
			}
		}
	}
}

// Close writes what waits, and ends the trail. It may be called twice.
func (t *Trail) Close() {
	if t == nil {
		return
	}
	t.closing.Do(func() { close(t.stop) })
	<-t.done
}

// Events reads events of the store; see [Store]. Of a nil Trail there are none.
func (t *Trail) Events(ctx context.Context, query Query) ([]Event, error) {
	if t == nil {
		return nil, nil
	}
	events, err := t.store.AuditEvents(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return events, nil
}

// Last is the position of the newest event.
func (t *Trail) Last(ctx context.Context) (int64, error) {
	if t == nil {
		return 0, nil
	}
	last, err := t.store.LastAudit(ctx)
	if err != nil {
		return 0, fmt.Errorf("position of the newest event of the audit log: %w", err)
	}
	return last, nil
}
