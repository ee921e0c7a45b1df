package durable

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// State is what the entries of a run come to: a pure state machine.
type State interface {
	// Apply changes the state by an entry of the conversation, the run's first and then each. An event of the run that
	// makes no sense is an error.
	Apply(entry *continuo.Entry) error
	// RunState is how far the run is.
	RunState() continuo.RunState
	// BreakOff makes the entry of a run that cannot go on.
	BreakOff(reason string) continuo.Entry
}

// Source says how a history is read.
type Source[S State] interface {
	// Open makes the state of a run of which nothing is known yet, by the hash of the text that its first event names.
	Open(ctx context.Context, text string) (S, error)
	// Observe is given each entry before the state.
	Observe(ctx context.Context, entry *continuo.Entry) error
}

// History is a run as far as its log was read. It is for one goroutine.
type History[S State] struct {
	Run continuo.Run
	// State is that after the newest entry that was read; the zero value before the first.
	State  S
	driver *Driver
	source Source[S]
	opened bool
	next   int64 // the seq to read on from
}

// NewHistory makes the history of a run, of which nothing is read yet.
func NewHistory[S State](d *Driver, run continuo.Run, source Source[S]) *History[S] {
	return &History[S]{Run: run, driver: d, source: source, next: run.FirstSeq}
}

// Clone makes a history for another goroutine; state is a copy of h.State.
func (h *History[S]) Clone(state S, source Source[S]) *History[S] {
	c := *h
	c.State, c.source = state, source
	return &c
}

// RunState is how far the run is by what was read.
func (h *History[S]) RunState() continuo.RunState { return h.State.RunState() }

// Next is the seq that the state is right for: the first that was not read.
func (h *History[S]) Next() int64 { return h.next }

// CatchUp reads on to the end of the log.
func (h *History[S]) CatchUp(ctx context.Context) error { return h.Read(ctx, 0, nil) }

// Read reads on through an entry (0: the end of the log), and gives each entry, once it was applied, to a function, which
// returns false to stop; nil for none. It fails with ErrCorrupt where the run cannot be read.
func (h *History[S]) Read(ctx context.Context, through int64, each func(*continuo.Entry) bool) error {
	conversation, err := h.driver.options.Log.Conversation(ctx, h.Run.ConversationID)
	if err != nil {
		return err
	}
	if through == 0 || through > conversation.LastSeq {
		through = conversation.LastSeq
	}
	if h.next <= through {
		for entry, err := range h.driver.options.Log.Read(ctx, conversation, continuo.Range{From: h.next, To: through}) {
			if err == nil {
				err = h.apply(ctx, &entry)
			}
			if err != nil {
				return err
			}
			h.next = entry.Seq + 1
			if each != nil && !each(&entry) {
				break
			}
		}
	}
	if !h.opened {
		return fmt.Errorf("run %s: %w: its entries are gone", h.Run.ID, ErrCorrupt)
	}
	return nil
}

func (h *History[S]) apply(ctx context.Context, entry *continuo.Entry) error {
	if !h.opened {
		event := entry.RunEvent
		if event == nil || entry.RunID != h.Run.ID || event.Kind != continuo.RunBegan {
			return fmt.Errorf("run %s: %w: entry %d does not begin it", h.Run.ID, ErrCorrupt, entry.Seq)
		}
		opened, err := h.source.Open(ctx, event.Workflow)
		if err != nil {
			return h.Unreadable(err)
		}
		h.State, h.opened = opened, true
	}
	if err := h.source.Observe(ctx, entry); err != nil {
		return err
	}
	if err := h.State.Apply(entry); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// Unreadable makes the error of a text of the run that could not be read: ErrCorrupt where it is gone or makes no sense.
func (h *History[S]) Unreadable(err error) error {
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrInvalid) {
		return fmt.Errorf("run %s: %w: %w", h.Run.ID, ErrCorrupt, err)
	}
	return fmt.Errorf("run %s: %w", h.Run.ID, err)
}

// Append appends entries that follow from the state, on the condition that the log still ends where it was read. It
// reports false where that is not so: the caller reads on and decides again.
func (h *History[S]) Append(ctx context.Context, entries ...continuo.Entry) (appended bool, err error) {
	return h.appendOnce(ctx, entries, Once{})
}

func (h *History[S]) appendOnce(ctx context.Context, entries []continuo.Entry, once Once) (appended bool, err error) {
	options := continuo.AppendOptions{ExpectSeq: h.next, Key: once.Key, Identity: once.Identity}
	_, err = h.driver.Append(ctx, h.Run.ConversationID, entries, options)
	if conflict := new(continuo.ConflictError); errors.As(err, &conflict) {
		return false, nil
	}
	return err == nil, err
}

// Once is an idempotency key of a change, and what the change consists in; the zero value for a change without a key.
type Once struct{ Key, Identity string }

// IsDone reports whether a change was made before; continuo.ErrKeyReused where its key made another one.
func (h *History[S]) IsDone(ctx context.Context, once Once) (bool, error) {
	if once.Key == "" {
		return false, nil
	}
	receipt, err := h.driver.options.Log.Receipt(ctx, h.Run.ConversationID, once.Key)
	switch {
	case errors.Is(err, continuo.ErrNotFound):
		return false, nil
	case err == nil && receipt.Fingerprint != once.Identity:
		err = fmt.Errorf("run %s: %w", h.Run.ID, continuo.ErrKeyReused)
	}
	return err == nil, err
}

// Change reads on to the end of the log and appends what makes returns for the state there, and does so again where the
// log has grown meanwhile. It appends nothing where makes returns nothing, and for a key that was used before. It waits no
// longer than Options.Wait for calls without results.
func (h *History[S]) Change(ctx context.Context, once Once, makes func(S) ([]continuo.Entry, error)) (err error) {
	busy := fmt.Errorf("run %s: %w: calls in its conversation wait for their results", h.Run.ID, continuo.ErrBusy)
	ctx, cancel := context.WithTimeoutCause(ctx, h.driver.options.Wait, busy)
	defer cancel()
	defer func() {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil { // in whatever call the time was up
			err = context.Cause(ctx)
		}
	}()
	for {
		if err := h.CatchUp(ctx); err != nil {
			return err
		}
		if done, err := h.IsDone(ctx, once); err != nil || done {
			return err
		}
		entries, err := makes(h.State)
		if err != nil || len(entries) == 0 {
			return err
		}
		if appended, err := h.appendOnce(ctx, entries, once); err != nil || appended {
			return err
		}
	}
}

// BreakOff records that the run cannot go on, if it is running.
func (h *History[S]) BreakOff(ctx context.Context, reason string) error {
	return h.Change(ctx, Once{}, func(s S) ([]continuo.Entry, error) {
		if s.RunState() != continuo.RunRunning {
			return nil, nil
		}
		return []continuo.Entry{s.BreakOff(h.driver.options.Redact(reason))}, nil
	})
}
