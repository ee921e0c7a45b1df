package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Journal is a turn that runs in this process: it holds the conversation's lease, gives each event its id, writes it to
// the store, and shows it to the readers of this process. Entries are committed together with all pending events.
//
// With [ShowDurable] readers receive an event when it is stored. An event is written at once when no write is in
// progress; events that arrive during a write are in the next one. With [ShowImmediate] readers receive an event at
// once, and it is stored up to FlushAge (plus one commit) or twice FlushBytes later.
//
// One goroutine appends. Readers, signals and decisions may come from any.
type Journal struct {
	keeper *Keeper
	turn   continuo.Turn  // as it was started
	began  time.Time      // by this process's clock
	used   continuo.Usage // of the turn in the process from which it was taken over
	ctx    context.Context
	stop   context.CancelCauseFunc
	inUse  atomic.Bool // it was run or abandoned

	// opened says that the turn's input was appended when it began. The conversation is as it was before, and snapshot is
	// the log since; nil when that is not known.
	opened       bool
	conversation continuo.Conversation
	snapshot     *continuo.Snapshot

	// prefixes makes the prefixes of an answer; nil for none.
	prefixes func(entries []continuo.Entry) func(stored []continuo.Entry) []continuo.Prefix

	// order is held while an event gets its id and is queued, and during an append with its events.
	order   sync.Mutex
	through int64 // seq of the newest entry that the turn has appended; guarded by order
	// flushing is held while events are written to the store, so that they are stored in order. It also guards seen,
	// renewed and settled.
	flushing sync.Mutex
	seen     int       // number of signals that were read
	renewed  time.Time // when the lease was last renewed
	settled  bool      // the turn has ended or was left to another process: nothing more is written

	mu        sync.Mutex
	recent    []Event // the newest events that readers may see
	last      int64   // id of the newest event
	pending   []pending
	inFlight  flushState          // the part of pending that a flush is writing
	bytes     int                 // of pending
	blobs     []continuo.Blob     // that the next write stores, because its events or entries name them
	charges   []continuo.Spending // what requests used, for the next append
	reserved  []func()            // release what requests were estimated to use; called after the next append
	oldest    time.Time           // when the first of pending was queued
	quiet     bool                // all of pending can wait for quietDelay
	flushed   time.Time           // when the newest write of events ended
	took      time.Duration       // the duration of that write
	ended     bool
	err       error              // why the journal ended without a last event
	asked     []Event            // those without a decision
	decisions map[int64]Decision // by the id of the Asked event
	changed   chan struct{}      // closed and replaced at each change for readers or waiting calls

	flushNow chan struct{} // buffer of one: flush now
	done     sync.WaitGroup
	quit     chan struct{}
}

// pending is an event that is not stored yet.
type pending struct {
	event  Event
	stored continuo.TurnEvent
}

// flushState is the size of the events that are being written, when the first of them was queued, and the blobs that are
// written with them.
type flushState struct {
	bytes  int
	oldest time.Time
	blobs  []continuo.Blob
}

// keepRecent is how many stored events stay in memory for readers that are close behind: of a slow turn fewer, since many
// turns are slow.
const (
	keepRecent = 64
	keepFewest = 24
)

func newJournal(ctx context.Context, k *Keeper, turn continuo.Turn) *Journal {
	j := &Journal{
		keeper: k, turn: turn, began: time.Now(), last: turn.LastEvent, renewed: time.Now(), decisions: map[int64]Decision{},
		changed: make(chan struct{}), flushNow: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	j.ctx, j.stop = context.WithCancelCause(continuo.WithMemory(ctx, nil))
	j.done.Go(j.flushAsNeeded)
	return j
}

// use ensures that a journal is run or abandoned only once.
func (j *Journal) use() error {
	if j.inUse.Swap(true) {
		return fmt.Errorf("turn %s: %w: a journal is run or abandoned once; begin a new turn", j.turn.ID, continuo.ErrNotRunning)
	}
	return nil
}

// Turn returns the turn as it was started.
func (j *Journal) Turn() continuo.Turn { return j.turn }

// Context ends when the turn is cancelled, its lease is lost, or the context that it was started with ends; the cause
// says which.
func (j *Journal) Context() context.Context { return j.ctx }

// Stop cancels the journal's context: with ErrInterrupted when the program ends, with nil when the user cancels.
func (j *Journal) Stop(cause error) { j.stop(cause) }

// quietDelay is how long an event that nobody waits for, such as a Planned, waits to be written together with the next ones. An
// upstream that answers at once then costs one write less before its first event is shown.
const quietDelay = 10 * time.Millisecond

// emit queues and shows an event, and returns its id. It blocks where the store is too far behind.
func (j *Journal) emit(e Event) int64 { return j.emitEvent(e, false) }

// emitQuiet is emit for an event that nobody waits for.
func (j *Journal) emitQuiet(e Event) int64 { return j.emitEvent(e, true) }

func (j *Journal) emitEvent(e Event, quiet bool) int64 {
	stored := encode(&e) // before any lock: it panics when JSON cannot encode a model's output
	j.order.Lock()
	defer j.order.Unlock()
	first, due, behind := j.queue(&e, stored, quiet)
	j.observe(e)
	if j.immediate() {
		j.show(e)
	}
	if behind {
		_ = j.flush() // retried with the next event
	} else if first && quiet {
		time.AfterFunc(quietDelay, j.wakeIfPending)
	} else if first || due {
		j.wakeFlusher()
	}
	return e.ID
}

// emitKept is emit for an event that asks for a decision: it is stored before readers see it, so that another process
// that receives the decision finds it.
func (j *Journal) emitKept(e Event) int64 {
	stored := encode(&e)
	j.order.Lock()
	defer j.order.Unlock()
	j.queue(&e, stored, false)
	_ = j.flush() // retried with the next event
	j.observe(e)
	if j.immediate() {
		j.show(e) // also when the store fails
	}
	return e.ID
}

// queue gives an event its id and adds it to the pending events. First says that no event that is written at once is pending.
// The caller holds order.
func (j *Journal) queue(e *Event, stored continuo.TurnEvent, quiet bool) (first, due, behind bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.ID, e.TurnID = j.last+1, j.turn.ID
	stored.ID, j.last = e.ID, e.ID
	first = len(j.pending) == 0 || j.quiet && !quiet
	if len(j.pending) == 0 {
		j.oldest, j.quiet = time.Now(), quiet
	}
	j.quiet = j.quiet && quiet
	j.pending, j.bytes = append(j.pending, pending{*e, stored}), j.bytes+len(e.Text)+len(e.Wire)+sizeOfCall(e.Delta)
	return first, j.bytes >= j.keeper.options.FlushBytes, j.behind()
}

// immediate reports whether readers see events before the store has them.
func (j *Journal) immediate() bool { return j.keeper.options.Show == ShowImmediate }

// show publishes events to the readers of this process, in order.
func (j *Journal) show(events ...Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range events {
		j.note(&events[i])
	}
	j.publish(events...)
}

// maxHeld bounds the events, in bytes, that are held in memory while the store cannot be reached.
const maxHeld = 1 << 20

// publish makes events available to the readers. The caller holds mu.
func (j *Journal) publish(events ...Event) {
	j.recent = append(j.recent, events...)
	unsaved := 0
	if j.immediate() {
		unsaved = len(j.pending)
	}
	keep := min(max(len(events), keepFewest), keepRecent)
	if surplus := len(j.recent) - unsaved - keep; surplus > keep {
		j.recent = slices.Clone(j.recent[surplus:])
	}
	j.wake()
}

// note tracks the calls that wait for a person. The caller holds mu.
func (j *Journal) note(e *Event) {
	switch e.Kind {
	case Asked:
		j.asked = append(j.asked, *e)
	case Decided:
		j.asked = slices.DeleteFunc(j.asked, func(asked Event) bool { return asked.Call.ID == e.Call.ID })
	}
}

// waiting returns the Asked events without a decision.
func (j *Journal) waiting() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.asked)
}

// keep stores a blob with the journal's next write. It does nothing for a blob without data.
func (j *Journal) keep(blob continuo.Blob) {
	if blob.Data == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.blobs = append(j.blobs, blob)
}

// charge adds what a request used to the journal's next append.
func (j *Journal) charge(used continuo.Spending) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.charges = append(j.charges, used)
}

// takeCharges removes and returns what requests used.
func (j *Journal) takeCharges() []continuo.Spending {
	j.mu.Lock()
	defer j.mu.Unlock()
	charges := j.charges
	j.charges = nil
	return charges
}

// reserve keeps what releases a request's reservation until what it used is stored.
func (j *Journal) reserve(release func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reserved = append(j.reserved, release)
}

// takeReservations removes and returns what releases the reservations.
func (j *Journal) takeReservations() []func() {
	j.mu.Lock()
	defer j.mu.Unlock()
	reserved := j.reserved
	j.reserved = nil
	return reserved
}

// wake wakes readers and waiting calls. The caller holds mu.
func (j *Journal) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// append adds entries to the log in one commit with all pending events and the events returned by eventsOf, and returns the
// entries as stored. More adds to the turn's update in that commit, such as the turn's end; it may be nil. At is the
// seq that the first entry must get, 0 for any. Append also works after the turn was cancelled, unless the lease is
// lost.
func (j *Journal) append(entries []continuo.Entry, eventsOf func(stored []continuo.Entry) []Event, more func(*continuo.TurnUpdate), at int64) ([]continuo.Entry, error) {
	j.order.Lock()
	defer j.order.Unlock()
	j.flushing.Lock()
	defer j.flushing.Unlock()
	pending, charges := j.take(), j.takeCharges()
	var emitted []Event
	var last continuo.TurnUpdate
	update := func(stored []continuo.Entry) continuo.TurnUpdate {
		emitted = eventsOf(stored)
		events := storedOf(pending)
		for i := range emitted {
			emitted[i].ID, emitted[i].TurnID = j.lastID()+1+int64(i), j.turn.ID
			events = append(events, encode(&emitted[i]))
		}
		last = continuo.TurnUpdate{
			ConversationID: j.turn.ConversationID, TurnID: j.turn.ID, Fence: j.turn.Fence, Events: events, Lease: j.keeper.options.Lease, Blobs: j.inFlight.blobs,
			Charges: charges,
		}
		if more != nil {
			more(&last)
		}
		return last
	}
	stored, err := j.commit(entries, update, at)
	if err != nil {
		j.putBack(pending)
		for _, used := range charges {
			j.charge(used)
		}
		err = j.explain(err)
		j.lostIf(err)
		return nil, err
	}
	for _, release := range j.takeReservations() {
		release()
	}
	j.renewed, j.settled = time.Now(), last.State != "" || last.Lease < 0
	if len(stored) > 0 {
		j.through = stored[len(stored)-1].Seq
	}
	j.committed(pending)
	j.keeper.options.Meter.EventsFlushed(len(pending) + len(emitted))
	j.keeper.options.Meter.Charged(charges)
	for _, e := range emitted {
		j.observe(e) // counted before readers see it
	}
	j.mu.Lock()
	j.last += int64(len(emitted))
	j.publish(emitted...)
	j.mu.Unlock()
	return stored, nil
}

// lastSeq returns the seq of the newest entry that the turn has appended; 0 for none.
func (j *Journal) lastSeq() int64 {
	j.order.Lock()
	defer j.order.Unlock()
	return j.through
}

// explain returns ErrLeaseLost for a refused append when another process has taken the turn over, or deleted the
// conversation.
func (j *Journal) explain(err error) error {
	var rule *continuo.RuleError
	if !errors.As(err, &rule) && !errors.Is(err, continuo.ErrNotFound) {
		return err
	}
	probe := continuo.TurnUpdate{ConversationID: j.turn.ConversationID, TurnID: j.turn.ID, Fence: j.turn.Fence, SignalsSeen: j.seen}
	if _, lost := j.keeper.store.UpdateTurn(context.WithoutCancel(j.ctx), probe); errors.Is(lost, continuo.ErrLeaseLost) {
		return lost
	}
	return err
}

// ends returns a function that makes an update the turn's last.
func ends(state continuo.TurnState, end continuo.TurnEnd) func(*continuo.TurnUpdate) {
	return func(update *continuo.TurnUpdate) { update.State, update.End = state, end }
}

// commit writes an update, together with entries where there are any.
func (j *Journal) commit(entries []continuo.Entry, update func([]continuo.Entry) continuo.TurnUpdate, at int64) ([]continuo.Entry, error) {
	ctx := context.WithoutCancel(j.ctx)
	if len(entries) == 0 {
		_, err := j.keeper.store.UpdateTurn(ctx, update(nil))
		return nil, err
	}
	begin := time.Now()
	options := continuo.AppendOptions{Turn: update, ExpectSeq: at}
	if j.prefixes != nil && entries[0].Role == continuo.Assistant {
		options.Prefixes = j.prefixes(entries)
	}
	stored, err := j.keeper.options.Log.Append(ctx, j.turn.ConversationID, entries, options)
	j.measure(StageAppend, time.Since(begin))
	return stored, err
}

// void ends a turn that has no entry in the log, as if it had never begun.
func (j *Journal) void() error {
	j.flushing.Lock()
	defer j.flushing.Unlock()
	_, err := j.commit(nil, func([]continuo.Entry) continuo.TurnUpdate {
		return continuo.TurnUpdate{ConversationID: j.turn.ConversationID, TurnID: j.turn.ID, Fence: j.turn.Fence, State: continuo.TurnVoid}
	}, 0)
	j.settled = err == nil
	return err
}

// closeUnrun ends a turn that has its input in the log and has not run.
func (j *Journal) closeUnrun() error {
	j.flushing.Lock()
	defer j.flushing.Unlock()
	err := j.keeper.close(context.WithoutCancel(j.ctx), j.turn)
	j.settled = err == nil
	return err
}

func (j *Journal) lastID() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// observe reports an event to KeeperOptions.Observe.
func (j *Journal) observe(e Event) {
	if j.keeper.options.Observe != nil {
		j.keeper.options.Observe(j.ctx, j.turn, e, time.Since(j.began))
	}
}

// measure reports the duration of a stage to the meter.
func (j *Journal) measure(stage Stage, took time.Duration) {
	j.keeper.options.Meter.Stage(j.ctx, stage, took)
}

// writeShare limits the load that one turn puts on a store: the pause after a write is this many times as long as the
// write took, at most FlushAge.
const writeShare = 4

// applySignal applies a signal to the turn.
func (j *Journal) applySignal(signal continuo.TurnSignal) {
	switch signal.Kind {
	case continuo.SignalCancel:
		j.stop(nil)
	case continuo.SignalInterrupt:
		j.stop(ErrInterrupted)
	case continuo.SignalAllow, continuo.SignalDeny:
		j.mu.Lock()
		if _, decided := j.decisions[signal.Asked]; !decided {
			j.decisions[signal.Asked] = Decision{Allowed: signal.Kind == continuo.SignalAllow, Reason: signal.Reason}
		}
		j.wake()
		j.mu.Unlock()
	}
}

// decision waits for the decision on an Asked event, or until ctx ends. A decision from another process arrives when
// the store reports it, or with the next heartbeat.
func (j *Journal) decision(ctx context.Context, asked int64) (Decision, bool) {
	for {
		j.mu.Lock()
		decided, ok := j.decisions[asked]
		changed := j.changed
		j.mu.Unlock()
		if ok {
			return decided, true
		}
		select {
		case <-ctx.Done():
			return Decision{}, false
		case <-changed:
		}
	}
}

// close ends the journal, with an error when it has no last event.
func (j *Journal) close(err error) {
	close(j.quit)
	j.done.Wait()
	_ = j.flush() // for a turn that did not end: recovery needs all of its events
	j.mu.Lock()
	j.ended, j.err = true, err
	j.wake()
	j.mu.Unlock()
	j.stop(nil)
}

// after returns the events after an id that are in memory, and a channel to wait on when there are none. Missing says
// that some of them are in the store only.
func (j *Journal) after(id int64) (events []Event, missing, ended bool, changed <-chan struct{}, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.recent) > 0 && id < j.last {
		at, _ := slices.BinarySearchFunc(j.recent, id+1, func(e Event, id int64) int { return int(e.ID - id) })
		missing = id+1 < j.recent[0].ID
		if !missing {
			events = slices.Clone(j.recent[at:min(len(j.recent), at+keepRecent)])
		}
	}
	return events, missing, j.ended, j.changed, j.err
}
