package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Journal is a turn that runs in this process: it holds the conversation's lease, gives each event its
// id, shows it at once to the readers of this process, and has it in the store soon after. What the model
// streams is at most FlushAge (plus one commit) or twice FlushBytes ahead of the store; entries are
// committed together with the events before them.
//
// One goroutine appends. Readers, signals and approvals may come from any.
type Journal struct {
	keeper *Keeper
	turn   continuo.Turn // as it was begun
	began  time.Time     // by this process's clock
	ctx    context.Context
	stop   context.CancelCauseFunc

	// order is held while an event gets its id and its place, and over an append together with its events.
	order sync.Mutex
	// flushing is held while events are on their way to the store, so that they arrive in order. It also
	// guards seen, renewed and settled.
	flushing sync.Mutex
	seen     int       // signals that were read
	renewed  time.Time // when the lease was last renewed
	settled  bool      // the turn's end is in the store: there is nothing more to write

	mu        sync.Mutex
	recent    []Event // the newest events: those that are not in the store, and some before them
	last      int64   // id of the newest event
	pending   []continuo.TurnEvent
	flying    flight    // what a flush under way has taken of pending
	bytes     int       // of pending
	oldest    time.Time // when the first of pending came
	ended     bool
	err       error              // why the journal ended without a last event
	asked     []Event            // those that nobody has decided on
	decisions map[int64]Decision // by the id of the Asked event
	changed   chan struct{}      // closed and replaced whenever a reader or a waiting call has something to see

	kick chan struct{} // has room for one: flush now
	done sync.WaitGroup
	quit chan struct{}
}

// flight is how much is on its way to the store, and since when the first of it has waited.
type flight struct {
	bytes  int
	oldest time.Time
}

// keepRecent is how many events that are in the store already stay in memory, for readers close behind.
const keepRecent = 64

func newJournal(ctx context.Context, k *Keeper, turn continuo.Turn) *Journal {
	j := &Journal{
		keeper: k, turn: turn, began: time.Now(), last: turn.LastEvent, renewed: time.Now(), decisions: map[int64]Decision{},
		changed: make(chan struct{}), kick: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	j.ctx, j.stop = context.WithCancelCause(ctx)
	j.done.Go(j.flushAsNeeded)
	return j
}

// Turn is the turn as it was begun.
func (j *Journal) Turn() continuo.Turn { return j.turn }

// Context ends when somebody stops the turn, its lease is lost, or the context that it was begun with
// ends; the cause says which.
func (j *Journal) Context() context.Context { return j.ctx }

// Stop ends the journal's context: with ErrInterrupted when the program ends, with nil when the user wants it.
func (j *Journal) Stop(cause error) { j.stop(cause) }

// emit shows an event, has it kept soon, and returns its id. It waits where the store is too far behind.
func (j *Journal) emit(e Event) int64 {
	stored := encode(&e) // before anything is locked: it panics where JSON cannot hold what a model gave
	j.order.Lock()
	defer j.order.Unlock()
	first, due, behind := j.queue(&e, stored)
	j.show(e)
	if behind {
		_ = j.flush() // it is tried again with the next event
	} else if first || due {
		j.poke()
	}
	return e.ID
}

// emitKept is emit for an event that others may answer: it is in the store before anybody sees it, so that
// an answer that comes to another process finds it there. Where the store fails it is shown all the same.
func (j *Journal) emitKept(e Event) int64 {
	stored := encode(&e)
	j.order.Lock()
	defer j.order.Unlock()
	j.queue(&e, stored)
	_ = j.flush() // it is tried again with the next event
	j.show(e)
	return e.ID
}

// queue gives an event its id and its place among those that wait for the store. The caller holds order.
func (j *Journal) queue(e *Event, stored continuo.TurnEvent) (first, due, behind bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.ID, e.TurnID = j.last+1, j.turn.ID
	stored.ID, j.last = e.ID, e.ID
	if len(j.pending) == 0 {
		j.oldest = time.Now()
	}
	j.pending, j.bytes = append(j.pending, stored), j.bytes+len(e.Text)+sizeOfCall(e.Delta)
	return len(j.pending) == 1, j.bytes >= j.keeper.options.FlushBytes, j.behind()
}

// show lets the readers of this process see an event. The caller holds order.
func (j *Journal) show(e Event) {
	j.observe(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.publish(e)
	j.note(&e)
}

// behind reports whether the store is further behind than it may be: by twice FlushBytes, of which some has
// waited for twice FlushAge, or by anything for MaxBehind. The caller holds mu.
func (j *Journal) behind() bool {
	oldest := j.oldest
	if j.flying.bytes > 0 {
		oldest = j.flying.oldest
	}
	waited := time.Since(oldest)
	return waited >= j.keeper.options.MaxBehind || waited >= 2*j.keeper.options.FlushAge && j.bytes+j.flying.bytes >= 2*j.keeper.options.FlushBytes
}

// publish shows an event to the readers. The caller holds mu.
func (j *Journal) publish(events ...Event) {
	j.recent = append(j.recent, events...)
	if surplus := len(j.recent) - len(j.pending) - keepRecent; surplus > keepRecent {
		j.recent = slices.Clone(j.recent[surplus:])
	}
	j.wake()
}

// note follows what waits for a person. The caller holds mu.
func (j *Journal) note(e *Event) {
	switch e.Kind {
	case Asked:
		j.asked = append(j.asked, *e)
	case Decided:
		j.asked = slices.DeleteFunc(j.asked, func(asked Event) bool { return asked.Call.ID == e.Call.ID })
	}
}

// waiting returns the Asked events that nobody has decided on.
func (j *Journal) waiting() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.asked)
}

// wake lets everybody look again. The caller holds mu.
func (j *Journal) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// poke has the goroutine that flushes look at once.
func (j *Journal) poke() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// append adds entries to the log in one commit with the events that tell of them and all before, and
// returns the entries as stored. More adds to the update that goes with them, such as the turn's end; it may
// be nil. At is the seq that the first entry must get, 0 for any. Append gets there even when the turn was
// cancelled, unless the lease is lost.
func (j *Journal) append(entries []continuo.Entry, tell func(stored []continuo.Entry) []Event, more func(*continuo.TurnUpdate), at int64) ([]continuo.Entry, error) {
	j.order.Lock()
	defer j.order.Unlock()
	j.flushing.Lock()
	defer j.flushing.Unlock()
	pending := j.take()
	var told []Event
	var last continuo.TurnUpdate
	update := func(stored []continuo.Entry) continuo.TurnUpdate {
		told = tell(stored)
		events := slices.Clone(pending)
		for i := range told {
			told[i].ID, told[i].TurnID = j.lastID()+1+int64(i), j.turn.ID
			events = append(events, encode(&told[i]))
		}
		last = continuo.TurnUpdate{ConversationID: j.turn.ConversationID, TurnID: j.turn.ID, Fence: j.turn.Fence, Events: events, Lease: j.keeper.options.Lease}
		if more != nil {
			more(&last)
		}
		return last
	}
	stored, err := j.commit(entries, update, at)
	if err != nil {
		j.putBack(pending)
		err = j.explain(err)
		j.lostIf(err)
		return nil, err
	}
	j.renewed, j.settled = time.Now(), last.State != ""
	j.landed()
	j.keeper.options.Meter.EventsFlushed(len(pending) + len(told))
	for _, e := range told {
		j.observe(e) // whoever sees an event finds it counted
	}
	j.mu.Lock()
	j.last += int64(len(told))
	j.publish(told...)
	j.mu.Unlock()
	return stored, nil
}

// explain finds out whether entries were refused because another process has gone on with the log, or
// deleted it.
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

// ends makes an update the turn's last.
func ends(state continuo.TurnState, end continuo.TurnEnd) func(*continuo.TurnUpdate) {
	return func(update *continuo.TurnUpdate) { update.State, update.End = state, end }
}

// commit writes an update, with entries where there are any.
func (j *Journal) commit(entries []continuo.Entry, update func([]continuo.Entry) continuo.TurnUpdate, at int64) ([]continuo.Entry, error) {
	ctx := context.WithoutCancel(j.ctx)
	if len(entries) == 0 {
		_, err := j.keeper.store.UpdateTurn(ctx, update(nil))
		return nil, err
	}
	begin := time.Now()
	stored, err := j.keeper.options.Log.Append(ctx, j.turn.ConversationID, entries, continuo.AppendOptions{Turn: update, ExpectSeq: at})
	j.measure(StageAppend, time.Since(begin))
	return stored, err
}

// void ends a turn of which nothing stands in the log, as if it had never been.
func (j *Journal) void() error {
	j.flushing.Lock()
	defer j.flushing.Unlock()
	_, err := j.commit(nil, func([]continuo.Entry) continuo.TurnUpdate {
		return continuo.TurnUpdate{ConversationID: j.turn.ConversationID, TurnID: j.turn.ID, Fence: j.turn.Fence, State: continuo.TurnVoid}
	}, 0)
	j.settled = err == nil
	return err
}

func (j *Journal) lastID() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// take empties pending. The caller holds flushing.
func (j *Journal) take() []continuo.TurnEvent {
	j.mu.Lock()
	defer j.mu.Unlock()
	pending := j.pending
	j.flying = flight{j.bytes, j.oldest}
	j.pending, j.bytes = nil, 0
	return pending
}

// landed says that what was taken is in the store. The caller holds flushing.
func (j *Journal) landed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flying = flight{}
}

// putBack restores events that the store did not take. The caller holds flushing.
func (j *Journal) putBack(events []continuo.TurnEvent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending, j.bytes = append(events, j.pending...), j.bytes+j.flying.bytes
	if len(events) > 0 {
		j.oldest = j.flying.oldest
	}
	j.flying = flight{}
}

// flush brings what is pending to the store, renews the lease and reads the signals.
func (j *Journal) flush() error {
	j.flushing.Lock()
	defer j.flushing.Unlock()
	if j.settled {
		return nil
	}
	pending := j.take()
	update := continuo.TurnUpdate{
		ConversationID: j.turn.ConversationID, TurnID: j.turn.ID, Fence: j.turn.Fence, Events: pending, SignalsSeen: j.seen,
	}
	if time.Since(j.renewed) > j.keeper.options.Lease/6 {
		update.Lease = j.keeper.options.Lease
	}
	begin := time.Now()
	signals, err := j.keeper.store.UpdateTurn(context.WithoutCancel(j.ctx), update)
	if err != nil {
		j.putBack(pending)
		j.lostIf(err)
		return err
	}
	j.landed()
	if len(pending) > 0 {
		j.measure(StageFlush, time.Since(begin))
		j.keeper.options.Meter.EventsFlushed(len(pending))
	}
	if update.Lease > 0 {
		j.renewed = time.Now()
	}
	if len(pending) > keepRecent { // some may be in the store only: readers look there
		j.mu.Lock()
		j.wake()
		j.mu.Unlock()
	}
	j.seen += len(signals)
	for _, signal := range signals {
		j.heed(signal)
	}
	return nil
}

// lostIf stops the turn when another process has taken its place, or when the store could not be written for
// much longer than its lease. For a shorter time it waits: while nobody reaches the store nobody can take
// its place, and those who come back give it a moment (see Keeper.abandoned).
func (j *Journal) lostIf(err error) {
	if errors.Is(err, continuo.ErrLeaseLost) || time.Since(j.renewed) > outageLeases*j.keeper.options.Lease {
		if j.ctx.Err() == nil {
			j.keeper.options.Meter.LeaseLost()
		}
		j.stop(fmt.Errorf("%w: %w", continuo.ErrLeaseLost, err))
	}
}

// outageLeases is for how many leases a turn waits for its store.
const outageLeases = 4

// observe tells of an event.
func (j *Journal) observe(e Event) {
	if j.keeper.options.Observe != nil {
		j.keeper.options.Observe(j.ctx, j.turn, e, time.Since(j.began))
	}
}

// measure tells how long a stage took.
func (j *Journal) measure(stage Stage, took time.Duration) {
	j.keeper.options.Meter.Stage(j.ctx, stage, took)
}

// flushAsNeeded flushes soon after an event came, and often enough to keep the lease and hear of signals.
func (j *Journal) flushAsNeeded() {
	heartbeat := time.NewTicker(j.keeper.options.Heartbeat)
	defer heartbeat.Stop()
	listener := j.keeper.options.Log.Listen(j.turn.ConversationID)
	defer listener.Close()
	told := listener.Told()
	for {
		select {
		case <-j.quit:
			return
		case <-heartbeat.C:
			_ = j.flush() // tried again at the next beat
		case <-told: // perhaps a signal
			told = listener.Told()
			_ = j.flush()
		case <-j.kick:
			if wait := j.untilDue(); wait > 0 && !j.sleep(wait) {
				return
			}
			_ = j.flush()
		}
	}
}

// untilDue is how long the pending events may still wait for others to come along.
func (j *Journal) untilDue() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.pending) == 0 || j.bytes >= j.keeper.options.FlushBytes {
		return 0
	}
	return time.Until(j.oldest.Add(j.keeper.options.FlushAge))
}

// sleep waits for a time, for more bytes, or for a signal to look for; false at the journal's end.
func (j *Journal) sleep(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-j.quit:
		return false
	case <-timer.C:
	case <-j.kick:
	}
	return true
}

// heed does what a signal asks for.
func (j *Journal) heed(signal continuo.TurnSignal) {
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

// decision waits until somebody decides on what an Asked event asked for, or ctx ends. What is decided in
// another process comes when the store tells of it, or with the next heartbeat.
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

// close ends the journal: with its last event, or with the error that kept it from having one.
func (j *Journal) close(err error) {
	close(j.quit)
	j.done.Wait()
	_ = j.flush() // of a turn that did not come to its end: recovery wants all that there is
	j.mu.Lock()
	j.ended, j.err = true, err
	j.wake()
	j.mu.Unlock()
	j.stop(nil)
}

// after returns the events after an id that are in memory, and what to wait for when there are none.
// Missing says that some of them are in the store only.
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
