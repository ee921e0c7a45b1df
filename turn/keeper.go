package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Keeper sees to it that no turn is lost: it takes the leases of the turns that run in this process, lets
// anybody follow a turn wherever it runs, and closes turns whose process is gone. It is safe for
// concurrent use.
type Keeper struct {
	options   KeeperOptions
	store     continuo.TurnStore
	pages     pages
	sightings sightings

	mu         sync.Mutex
	journals   map[string]*Journal      // of the turns that run here; nil for one whose lease is being taken
	recovering map[string]chan struct{} // turns that are being closed here; closed when that is over
}

// KeeperOptions configures a Keeper.
type KeeperOptions struct {
	Log *continuo.Log // required
	// Owner names this process to others; the keeper adds an id of its own. Default: none.
	Owner string
	// Gone reports owners whose process has certainly ended, so that nobody has to wait until its leases
	// run out. Default: nobody is known to be gone.
	Gone func(owner string) bool
	// Lease is how long a turn stays its owner's without a sign of life, the same in all processes. Default 15 s.
	Lease time.Duration
	// Heartbeat is how often a turn gives a sign of life, and the longest that a signal of another process
	// stays unheard where the store does not tell of it. Default 1 s, at most a third of Lease.
	Heartbeat time.Duration
	// Poll is how often turns of other processes are looked at by those who follow them, where the store does
	// not tell of changes. Default 100 ms.
	Poll time.Duration
	// Show says when readers see an event. Default ShowDurable.
	Show Show
	// FlushAge is the longest that an event waits for others before it goes to the store, FlushBytes the text, in
	// bytes, that makes it go at once. Default 50 ms and 1 KiB.
	FlushAge   time.Duration
	FlushBytes int
	// MaxBehind is for how long readers are shown events that a store which cannot be reached does not have; then
	// the turn waits for the store. Of ShowImmediate. Default 1 s.
	MaxBehind time.Duration
	// TakeUp decides what becomes of a running turn whose process is gone; see [Keeper.TakeUp]. It is asked by one
	// goroutine of this process at a time for each turn. Default: it is closed.
	TakeUp func(ctx context.Context, seen continuo.Turn) (Fate, error)
	// Observe is told of each event of the turns that run here, in order, by the turn itself: it must be
	// quick. Took is how long the turn has run. Default none.
	Observe func(ctx context.Context, turn continuo.Turn, event Event, took time.Duration)
	// Meter is told what turns do. Default none.
	Meter Meter
}

// Show says when readers of a turn see an event.
type Show string

// The times at which readers see an event.
const (
	ShowDurable   Show = ""          // when the store has it: what somebody saw is never lost
	ShowImmediate Show = "immediate" // at once: a program that is killed loses the newest
)

// NewKeeper makes a keeper. It panics without a log.
func NewKeeper(options KeeperOptions) *Keeper {
	if options.Log == nil {
		panic("turn: NewKeeper needs KeeperOptions.Log")
	}
	options.Owner += ownerSeparator + options.Log.NewID("keep")
	if options.Gone == nil {
		options.Gone = func(string) bool { return false }
	}
	if options.TakeUp == nil {
		options.TakeUp = func(context.Context, continuo.Turn) (Fate, error) { return FateClose, nil }
	}
	if options.Meter == nil {
		options.Meter = noMeter{}
	}
	setDefault(&options.Lease, 15*time.Second)
	setDefault(&options.Heartbeat, time.Second)
	options.Heartbeat = min(options.Heartbeat, options.Lease/3)
	setDefault(&options.Poll, 100*time.Millisecond)
	setDefault(&options.FlushAge, 50*time.Millisecond)
	setDefault(&options.MaxBehind, time.Second)
	if options.FlushBytes == 0 {
		options.FlushBytes = 1 << 10
	}
	return &Keeper{
		options: options, store: options.Log.Turns(), sightings: sightings{length: options.Lease, leases: map[string]*sighting{}},
		journals: map[string]*Journal{}, recovering: map[string]chan struct{}{},
	}
}

// ownerSeparator stands between a process's name and the id of one of its keepers.
const ownerSeparator = "#"

// gone reports whether the process of an owner has certainly ended.
func (k *Keeper) gone(owner string) bool {
	process, _, _ := strings.Cut(owner, ownerSeparator)
	return k.options.Gone(process)
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Begin takes the conversation's lease for a new turn, of which ConversationID must be set; one without an ID gets one.
// The caller must [Runner.Run] the journal, or [Keeper.Abandon] it, once. A turn in its way whose process is gone is
// closed first. It fails with a *continuo.BusyError while another turn runs, and with continuo.ErrExists when there is a
// turn of that id.
func (k *Keeper) Begin(ctx context.Context, turn continuo.Turn) (*Journal, error) {
	if turn.ConversationID == "" {
		return nil, fmt.Errorf("begin a turn: %w: it names no conversation", continuo.ErrInvalid)
	}
	if turn.ID == "" {
		turn.ID = k.options.Log.NewID("turn")
	}
	turn.Owner = k.options.Owner
	k.mu.Lock()
	if _, runs := k.journals[turn.ID]; runs {
		k.mu.Unlock()
		return nil, fmt.Errorf("begin a turn: %w", continuo.ErrExists)
	}
	k.journals[turn.ID] = nil
	k.mu.Unlock()
	begun, err := k.lease(ctx, turn)
	var j *Journal
	if err == nil {
		j = newJournal(ctx, k, begun)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		delete(k.journals, turn.ID)
		return nil, fmt.Errorf("begin a turn: %w", err)
	}
	k.journals[turn.ID] = j
	return j, nil
}

// lease takes the lease of a turn's conversation.
func (k *Keeper) lease(ctx context.Context, turn continuo.Turn) (continuo.Turn, error) {
	begun, err := k.store.BeginTurn(ctx, turn, k.options.Lease)
	var busy *continuo.BusyError
	if errors.As(err, &busy) && k.abandoned(busy.Turn) {
		if _, err := k.Recover(ctx, busy.Turn); err != nil {
			return continuo.Turn{}, err
		}
		return k.store.BeginTurn(ctx, turn, k.options.Lease)
	}
	return begun, err
}

// Abandon gives up a turn that was begun and has not run: as if it had never been.
func (k *Keeper) Abandon(j *Journal) error {
	if err := j.use(); err != nil {
		return err
	}
	err := j.void()
	k.end(j, fmt.Errorf("the turn was not carried out: %w", continuo.ErrNotFound))
	return err
}

// end takes a journal out of those that run.
func (k *Keeper) end(j *Journal, err error) {
	j.close(err)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.journals[j.turn.ID] == j {
		delete(k.journals, j.turn.ID)
	}
}

func (k *Keeper) journal(turnID string) *Journal {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.journals[turnID]
}

// Signal tells the turn's owner, wherever it is, what somebody wants. It fails with
// continuo.ErrNotRunning when the turn has ended; one whose process is gone is closed first.
func (k *Keeper) Signal(ctx context.Context, conversationID, turnID string, signal continuo.TurnSignal) error {
	if err := k.store.SignalTurn(ctx, conversationID, turnID, signal); err != nil {
		return err
	}
	if j := k.journal(turnID); j != nil {
		j.wakeFlusher()
		return nil
	}
	turn, err := k.store.Turn(ctx, conversationID, turnID)
	if err == nil && turn.State == continuo.TurnRunning {
		_, err = k.RecoverIfAbandoned(ctx, turn)
	}
	return err
}

// Abandoned reports whether nobody carries on a running turn any more, as it was read.
func (k *Keeper) Abandoned(turn continuo.Turn) bool {
	return turn.State == continuo.TurnRunning && k.abandoned(turn)
}

// RecoverIfAbandoned returns a running turn as it is, closed first if its process is gone.
func (k *Keeper) RecoverIfAbandoned(ctx context.Context, turn continuo.Turn) (continuo.Turn, error) {
	if !k.abandoned(turn) {
		return turn, nil
	}
	if _, err := k.Recover(ctx, turn); err != nil {
		return turn, err
	}
	return k.store.Turn(ctx, turn.ConversationID, turn.ID)
}

// WaitingCall is a call that waits for a person's decision.
type WaitingCall struct {
	continuo.ToolCall
	Until time.Time // when it is denied if nobody decides; zero for never
}

// Waiting lists the calls of a running turn that wait for a person's decision, in the order in which they
// came.
func (k *Keeper) Waiting(ctx context.Context, turn continuo.Turn) ([]WaitingCall, error) {
	asked, err := k.asked(ctx, turn)
	if err != nil {
		return nil, err
	}
	var waiting []WaitingCall
	for _, event := range asked {
		waiting = append(waiting, WaitingCall{*event.Call, event.Until})
	}
	return waiting, nil
}

// Partial is the text of a running turn's answer that is under way, as far as it is kept; empty between answers.
func (k *Keeper) Partial(ctx context.Context, turn continuo.Turn) (string, error) {
	left := &partialTurn{}
	for after := int64(0); ; {
		page, err := k.store.TurnEvents(ctx, turn.ConversationID, turn.ID, after, eventPage)
		if err != nil || len(page) == 0 {
			return left.partial(), err
		}
		for _, stored := range page {
			event, err := decode(turn.ID, stored)
			if err != nil {
				return "", err
			}
			left.take(&event)
			after = event.ID
		}
	}
}

// Decide tells a running turn what a person decided on a call that waits. The first decision counts: the Decided event
// after the one whose id is returned, the call's Asked, has it. It fails with continuo.ErrNotFound when no call of that id
// waits, and like [Keeper.Signal].
func (k *Keeper) Decide(ctx context.Context, turn continuo.Turn, callID string, decision Decision) (askedAt int64, err error) {
	asked, err := k.asked(ctx, turn)
	if err != nil {
		return 0, err
	}
	for _, event := range asked {
		if event.Call.ID != callID {
			continue
		}
		signal := continuo.TurnSignal{Kind: continuo.SignalDeny, ToolCallID: callID, Asked: event.ID, Reason: decision.Reason}
		if decision.Allowed {
			signal.Kind = continuo.SignalAllow
		}
		return event.ID, k.Signal(ctx, turn.ConversationID, turn.ID, signal)
	}
	return 0, fmt.Errorf("%w: no call %q of turn %s waits for a decision", continuo.ErrNotFound, callID, turn.ID)
}

// asked returns the Asked events of a turn that nobody has decided on.
func (k *Keeper) asked(ctx context.Context, turn continuo.Turn) ([]Event, error) {
	if j := k.journal(turn.ID); j != nil {
		return j.waiting(), nil
	}
	var waiting []Event
	for after := int64(0); ; {
		page, err := k.store.TurnEvents(ctx, turn.ConversationID, turn.ID, after, eventPage)
		if err != nil || len(page) == 0 {
			return waiting, err
		}
		for _, stored := range page {
			event, err := decode(turn.ID, stored)
			if err != nil {
				return nil, err
			}
			switch event.Kind {
			case Asked:
				waiting = append(waiting, event)
			case Decided:
				waiting = slices.DeleteFunc(waiting, func(asked Event) bool { return asked.Call.ID == event.Call.ID })
			}
			after = event.ID
		}
	}
}

// RecoverAll closes the turns whose process is gone, and returns how many. Turns that cannot be closed
// now are left for the next time; the errors tell of them.
func (k *Keeper) RecoverAll(ctx context.Context) (recovered int, err error) {
	running, err := k.store.RunningTurns(ctx, maxRecovered)
	if err != nil {
		return 0, fmt.Errorf("look for turns that broke off: %w", err)
	}
	var failures []error
	for _, turn := range running {
		if !k.abandoned(turn) {
			continue
		}
		did, err := k.Recover(ctx, turn)
		if err != nil {
			failures = append(failures, err)
		}
		if did {
			recovered++
		}
	}
	return recovered, errors.Join(failures...)
}

// maxRecovered bounds how many turns one RecoverAll looks at.
const maxRecovered = 1000
