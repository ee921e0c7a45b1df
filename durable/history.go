package durable

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// State is computed from the entries of a run: a pure state machine.
type State interface {
	// Apply applies an entry of the conversation; it is given all entries from the run's first on. An invalid event of
	// the run is an error.
	Apply(entry *continuo.Entry) error
	// RunState is the state of the run.
	RunState() continuo.RunState
	// BreakOff makes the entry of a run that cannot continue.
	BreakOff(reason string) continuo.Entry
}

// Source says how a history is read.
type Source[S State] interface {
	// Open makes the initial state of a run. Text is the hash of the text that the run's first event names.
	Open(ctx context.Context, text string) (S, error)
	// Observe is given each entry before the state is.
	Observe(ctx context.Context, entry *continuo.Entry) error
}

// History is a run, as far as its log was read. It is not safe for concurrent use.
type History[S State] struct {
	Run continuo.Run
	// State is the state after the newest entry that was read; the zero value before the first.
	State  S
	driver *Driver
	source Source[S]
	opened bool
	next   int64 // the seq of the next entry to read
}

// NewHistory makes the history of a run. It reads nothing yet.
func NewHistory[S State](d *Driver, run continuo.Run, source Source[S]) *History[S] {
	return &History[S]{Run: run, driver: d, source: source, next: run.FirstSeq}
}

// Clone makes a history for another goroutine; state is a copy of h.State.
func (h *History[S]) Clone(state S, source Source[S]) *History[S] {
	c := *h
	c.State, c.source = state, source
	return &c
}

// RunState is the state of the run by the entries that were read.
func (h *History[S]) RunState() continuo.RunState { return h.State.RunState() }

// Next is the seq of the first entry that was not read. Entries that follow from the state must be appended there.
func (h *History[S]) Next() int64 { return h.next }

// CatchUp reads the log from Next to its end.
func (h *History[S]) CatchUp(ctx context.Context) error { return h.Read(ctx, 0, nil) }

// Read reads the log from Next through an entry (0: the end of the log), and calls each, unless nil, with every entry
// after it was applied; each returns false to stop. It fails with ErrCorrupt where the run cannot be read.
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

// Unreadable makes the error of a text of the run that could not be read: ErrCorrupt where it is missing or invalid.
func (h *History[S]) Unreadable(err error) error {
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrInvalid) {
		return fmt.Errorf("run %s: %w: %w", h.Run.ID, ErrCorrupt, err)
	}
	return fmt.Errorf("run %s: %w", h.Run.ID, err)
}

// Append appends entries that follow from the state, on the condition that the log still ends where it was read. It
// returns false where the log has grown: the caller reads on and decides again.
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

// Once is the idempotency key of a change, and the identity of the change; the zero value for a change without a key.
type Once struct{ Key, Identity string }

// IsDone reports whether a change was made before; continuo.ErrKeyReused where its key was used for another change.
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

// Change reads to the end of the log and appends what makes returns for the state there; if the log has grown
// meanwhile it reads and calls makes again. It appends nothing where makes returns nothing, or where the key was used
// before. It waits no longer than Options.Wait for calls without results.
func (h *History[S]) Change(ctx context.Context, once Once, makes func(S) ([]continuo.Entry, error)) (err error) {
	busy := fmt.Errorf("run %s: %w: calls in its conversation wait for their results", h.Run.ID, continuo.ErrBusy)
	ctx, cancel := context.WithTimeoutCause(ctx, h.driver.options.Wait, busy)
	defer cancel()
	defer func() {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil { // whichever call ran into the timeout
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

// BreakOff records that the run cannot continue, if it is running.
func (h *History[S]) BreakOff(ctx context.Context, reason string) error {
	return h.Change(ctx, Once{}, func(s S) ([]continuo.Entry, error) {
		if s.RunState() != continuo.RunRunning {
			return nil, nil
		}
		return []continuo.Entry{s.BreakOff(h.driver.options.Redact(reason))}, nil
	})
}
