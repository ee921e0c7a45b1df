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

// Keeper makes turns crash-safe: it takes the leases of the turns that run in this process, lets readers follow a turn
// in whichever process it runs, and closes turns whose process is gone. It is safe for concurrent use.
type Keeper struct {
	options           KeeperOptions
	store             continuo.TurnStore
	pages             pages
	leaseObservations leaseObservations

	mu         sync.Mutex
	journals   map[string]*Journal      // of the turns that run here; nil while the lease is being taken
	recovering map[string]chan struct{} // turns that are being closed here; each channel closes when that is done
}

// KeeperOptions configures a Keeper.
type KeeperOptions struct {
	Log *continuo.Log // required
	// Owner names this process to others; the keeper appends an id of its own. Default: none.
	Owner string
	// Gone reports owners whose process has certainly ended, so that their turns can be closed before their leases
	// expire. Default: false for every owner.
	Gone func(owner string) bool
	// Lease is how long a turn stays its owner's without a renewal; it must be the same in all processes. Default 15 s.
	Lease time.Duration
	// Heartbeat is the interval of a turn's heartbeats, and the longest delay of a signal from another process when the
	// store does not report changes. Default 1 s, at most a third of Lease.
	Heartbeat time.Duration
	// Poll is how often a follower polls for turns of other processes when the store does not report changes. Default
	// 100 ms.
	Poll time.Duration
	// Show says when readers see an event. Default ShowDurable.
	Show Show
	// FlushAge is the longest that an event waits to be written together with others, FlushBytes the size of text, in
	// bytes, that is written at once. Default 50 ms and 1 KiB.
	FlushAge   time.Duration
	FlushBytes int
	// MaxBehind limits how long readers receive events that cannot be stored because the store cannot be reached; then
	// the turn waits for the store. Of ShowImmediate. Default 1 s.
	MaxBehind time.Duration
	// TakeUp decides about a running turn whose process is gone; see [Keeper.TakeUp]. For each turn it is called by one
	// goroutine of this process at a time. Default: the turn is closed.
	TakeUp func(ctx context.Context, seen continuo.Turn) (Recovery, error)
	// Observe is called with each event of the turns that run here, in order. The turn waits for it, so it must be
	// quick. Took is how long the turn has run. Default none.
	Observe func(ctx context.Context, turn continuo.Turn, event Event, took time.Duration)
	// Admit is called before each request to a model with what it is estimated to use, in tokens of its input. An error
	// refuses the request, and the turn fails with continuo.ReasonBudget; release is called once, when what the request used
	// is stored. Default: every request is admitted.
	Admit func(ctx context.Context, payer continuo.Payer, provider, model string, tokens int) (release func(), err error)
	// Meter receives measurements of turns. Default none.
	Meter Meter
}

// Show says when readers of a turn receive an event.
type Show string

// The times at which readers receive an event.
const (
	ShowDurable   Show = ""          // when it is stored: an event that a reader received is never lost
	ShowImmediate Show = "immediate" // at once: a killed program loses the newest events
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
		options.TakeUp = func(context.Context, continuo.Turn) (Recovery, error) { return RecoveryClose, nil }
	}
	if options.Admit == nil {
		options.Admit = func(context.Context, continuo.Payer, string, string, int) (func(), error) { return func() {}, nil }
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
		options: options, store: options.Log.Turns(), leaseObservations: leaseObservations{length: options.Lease, leases: map[string]*leaseObservation{}},
		journals: map[string]*Journal{}, recovering: map[string]chan struct{}{},
	}
}

// ownerSeparator separates a process's name and the id of one of its keepers.
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

// Begin takes the conversation's lease for a new turn, which appends its input when it runs: for callers that must hold
// the lease before they can decide on the input. Others use [Runner.Begin]. ConversationID is required; an empty ID is generated. The caller
// must [Runner.Run] the journal, or [Keeper.Abandon] it, once. A running turn whose process is gone is closed first.
// Begin fails with a *continuo.BusyError while another turn runs, and with continuo.ErrExists when a turn of that id
// exists.
func (k *Keeper) Begin(ctx context.Context, turn continuo.Turn) (*Journal, error) {
	return k.begin(ctx, turn, func(*continuo.Turn) (*firstEntries, error) { return nil, nil })
}

// Abandon ends a turn that was started and has not run: as if it had never begun or, if its input is in the log already,
// as interrupted.
func (k *Keeper) Abandon(j *Journal) (err error) {
	if err := j.use(); err != nil {
		return err
	}
	if j.opened {
		err = j.closeUnrun()
	} else {
		err = j.void()
	}
	k.end(j, fmt.Errorf("the turn was not carried out: %w", continuo.ErrNotFound))
	return err
}

// end closes a journal and removes it from those that run.
func (k *Keeper) end(j *Journal, err error) {
	j.close(err)
	if left := j.takeCharges(); len(left) > 0 { // of a turn that could not be recorded: its requests were billed all the same
		_ = k.options.Log.Charge(context.WithoutCancel(j.ctx), left...)
	}
	for _, release := range j.takeReservations() {
		release()
	}
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

// Running returns a turn of this process as it was begun; ok is false for every other turn.
func (k *Keeper) Running(turnID string) (begun continuo.Turn, ok bool) {
	if j := k.journal(turnID); j != nil {
		return j.turn, true
	}
	return continuo.Turn{}, false
}

// Signal sends a signal to the turn's owner, in whichever process it runs. It fails with continuo.ErrNotRunning when
// the turn has ended. A turn whose process is gone is closed.
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

// Abandoned reports whether a running turn, as it was read, has no process any more that runs it.
func (k *Keeper) Abandoned(turn continuo.Turn) bool {
	return turn.State == continuo.TurnRunning && k.abandoned(turn)
}

// RecoverIfAbandoned returns a running turn; if its process is gone, it is closed first.
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
	Until time.Time // when the call is denied without a decision; zero for never
}

// Waiting lists the calls of a running turn that wait for a person's decision, in the order in which they were asked.
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

// Partial returns the stored text of a running turn's unfinished answer; empty between answers.
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

// Decide sends a person's decision on a waiting call to a running turn, and returns the id of the call's Asked event.
// The first decision counts: the next Decided event of the call has it. Decide fails with continuo.ErrNotFound when no
// call of that id waits, and like [Keeper.Signal].
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

// asked returns the Asked events of a turn without a decision.
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

// RecoverAll closes the turns whose process is gone, and returns how many. A turn that cannot be closed now is retried
// by the next call; its error is in err.
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

// maxRecovered bounds how many turns one RecoverAll reads.
const maxRecovered = 1000
