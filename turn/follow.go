package turn

import (
	"context"
	"errors"
	"fmt"
	"iter"

	continuo "github.com/continuo-log/continuo"
)

// eventPage is how many events one read requests.
const eventPage = 256

// Follow yields the events of a turn with ids above after, each once and in order: stored events, then live ones, up to
// the turn's last. Any number of readers may follow a turn, whether it runs in this process, in another one, or has
// ended. For a turn whose events were removed it yields the first and the last event, rebuilt from the log. It ends
// early with an error; a reader can then follow again from the last id that it received.
func (k *Keeper) Follow(ctx context.Context, conversationID, turnID string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &follower{keeper: k, ctx: ctx, conversationID: conversationID, turnID: turnID, after: after, yield: yield}
		if err := f.run(); err != nil {
			yield(Event{TurnID: turnID}, err)
		}
	}
}

// Follow is [Keeper.Follow] for a turn of this process; it also yields events that could not be stored.
func (j *Journal) Follow(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &follower{keeper: j.keeper, ctx: ctx, conversationID: j.turn.ConversationID, turnID: j.turn.ID, after: after, yield: yield}
		if err := f.followJournal(j); err != nil {
			yield(Event{TurnID: j.turn.ID}, err)
		}
	}
}

// follower is one reader of a turn.
type follower struct {
	keeper                 *Keeper
	ctx                    context.Context
	conversationID, turnID string
	after                  int64
	yield                  func(Event, error) bool
	wasRunning             bool // the turn was running when the reader first saw it
	over                   bool // the last event was yielded, or the reader has stopped
}

// run follows the turn through its journal when it runs in this process, otherwise through the store.
func (f *follower) run() error {
	j := f.keeper.journal(f.turnID)
	if j == nil {
		return f.fromStore()
	}
	return f.followJournal(j)
}

// followJournal follows a journal, and then the store if another process has taken the turn over.
func (f *follower) followJournal(j *Journal) error {
	err := f.fromJournal(j)
	if errors.Is(err, continuo.ErrLeaseLost) {
		return f.fromStore() // the process that took the turn over closes it
	}
	return err
}

// emit yields an event.
func (f *follower) emit(e Event) {
	f.after = e.ID
	f.over = !f.yield(e, nil) || e.IsEnd()
}

// fromJournal follows a turn of this process.
func (f *follower) fromJournal(j *Journal) error {
	f.wasRunning = true
	for !f.over {
		events, missing, ended, changed, lost := j.after(f.after)
		for i, e := range events {
			e.More = i < len(events)-1
			if f.emit(e); f.over {
				return nil
			}
		}
		switch {
		case len(events) > 0:
			continue
		case missing:
			given, err := f.page()
			if err != nil {
				return err
			}
			switch {
			case given > 0:
				continue
			case ended && lost != nil: // the events were never stored, or another process closes the turn
				return lost
			case ended:
				return f.fromStore()
			}
		case ended && lost != nil:
			return lost
		case ended:
			return f.fromStore()
		}
		select {
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		case <-changed:
		}
	}
	return nil
}

// page yields one page of stored events and returns how many there were.
func (f *follower) page() (int, error) {
	shared, err := f.keeper.pages.take(f.ctx, turnKey{f.conversationID, f.turnID}, f.after, f.load)
	if shared == nil {
		return 0, err
	}
	defer f.keeper.pages.release(shared)
	return f.emitAll(shared.events), nil
}

// ownPage is page without the cache that the readers of this process share: a redaction may have removed its events.
func (f *follower) ownPage() (int, error) {
	events, free, err := f.load()
	defer free()
	return f.emitAll(events), err
}

// emitAll yields the events that the reader has not received, until it stops, and returns how many there were.
func (f *follower) emitAll(events []Event) (given int) {
	for i, e := range events {
		if e.ID <= f.after {
			continue
		}
		given++
		e.More = i < len(events)-1
		if f.emit(e); f.over {
			break
		}
	}
	return given
}

// load reads a page of stored events from the store.
func (f *follower) load() (events []Event, free func(), err error) {
	ctx, free := continuo.HoldMemory(f.ctx)
	stored, err := f.keeper.store.TurnEvents(ctx, f.conversationID, f.turnID, f.after, eventPage)
	if err != nil {
		return nil, free, err
	}
	size := 0
	for i := range stored {
		size += len(stored[i].Data)
	}
	if err := continuo.TakeMemory(ctx, int64(size)); err != nil {
		return nil, free, err
	}
	events = make([]Event, len(stored))
	var conversation continuo.Conversation // read at the first event with an entry
	for i := range stored {
		e, err := decode(f.turnID, stored[i])
		if err == nil && e.Entry != nil && conversation.ID == "" {
			conversation, err = f.keeper.options.Log.Conversation(ctx, f.conversationID)
		}
		if err == nil {
			events[i], err = withEntry(ctx, f.keeper.options.Log, conversation, e)
		}
		if err != nil {
			return nil, free, err
		}
	}
	return events, free, nil
}

// fromStore follows a turn that runs in another process or has ended. It closes a turn whose process is gone, so that
// every reader receives a last event.
func (f *follower) fromStore() error {
	listener := f.keeper.options.Log.Listen(f.conversationID)
	defer listener.Close()
	for !f.over {
		changed := listener.Changed()
		// The state is read before the events: once it says that the turn has ended, all of its events are stored.
		turn, err := f.keeper.store.Turn(f.ctx, f.conversationID, f.turnID)
		if err != nil {
			return fmt.Errorf("turn %s: %w (its conversation may have been deleted)", f.turnID, err)
		}
		read := f.page
		if turn.State != continuo.TurnRunning && turn.LastEvent == 0 { // its events were removed
			read = f.ownPage
		}
		given, err := read()
		if err != nil || f.over {
			return err
		}
		f.wasRunning = f.wasRunning || turn.State == continuo.TurnRunning
		switch {
		case given > 0:
			continue
		case turn.State == continuo.TurnVoid:
			return fmt.Errorf("turn %s: %w", f.turnID, continuo.ErrNotFound)
		case turn.State != continuo.TurnRunning && f.after > turn.LastEvent && turn.LastEvent > 0 && f.wasRunning:
			f.after = turn.LastEvent - 1 // the reader asked from an id above the turn's last: it receives the last event
			continue
		case turn.State != continuo.TurnRunning && f.after >= turn.LastEvent && turn.LastEvent > 0:
			return nil // the reader has received the last event already
		case turn.State != continuo.TurnRunning:
			return f.fromLog(turn)
		case f.keeper.abandoned(turn):
			did, err := f.keeper.Recover(f.ctx, turn)
			if err != nil {
				return err
			}
			if did {
				continue
			}
		}
		if !listener.Wait(f.ctx, changed, f.keeper.options.Poll) {
			return context.Cause(f.ctx)
		}
	}
	return nil
}

// prunedEnd is the id of the last event of a turn whose events were removed: above every id that a reader may have
// received, and exact in every JSON number.
const prunedEnd = 1<<53 - 1

// fromLog yields the first and the last event of an ended turn whose events were removed.
func (f *follower) fromLog(turn continuo.Turn) error {
	if f.after >= prunedEnd {
		return nil // the reader has received it already
	}
	conversation, err := f.keeper.options.Log.Conversation(f.ctx, f.conversationID)
	if err != nil {
		return err
	}
	var first, last *continuo.Entry
	for entry, err := range f.keeper.options.Log.Read(f.ctx, conversation, continuo.Range{Backward: true}) {
		switch {
		case err != nil:
			return err
		case entry.TurnID != f.turnID && first != nil:
		case entry.TurnID != f.turnID:
			continue
		default:
			first = &entry
			if last == nil && entry.Role == continuo.Assistant {
				last = &entry
			}
			continue
		}
		break
	}
	if last == nil {
		return fmt.Errorf("turn %s: %w: nothing of it is kept", f.turnID, continuo.ErrNotFound)
	}
	kind := Finished
	if turn.State == continuo.TurnFailed {
		kind = Failed
	}
	if f.after == 0 {
		f.emit(Event{ID: 1, Kind: Started, TurnID: f.turnID, Entry: first})
	}
	if !f.over {
		f.emit(Event{ID: prunedEnd, Kind: kind, TurnID: f.turnID, Entry: last, Usage: turn.Usage})
	}
	return nil
}
