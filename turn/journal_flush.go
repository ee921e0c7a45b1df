package turn

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// behind reports whether too much is not stored yet: with ShowDurable, maxHeld bytes; with ShowImmediate, an event that
// has waited for MaxBehind, or twice FlushBytes with an event that has waited for twice FlushAge. The caller holds mu.
func (j *Journal) behind() bool {
	if !j.immediate() {
		return j.bytes+j.inFlight.bytes >= maxHeld
	}
	oldest := j.oldest
	if j.inFlight.bytes > 0 {
		oldest = j.inFlight.oldest
	}
	waited := time.Since(oldest)
	return waited >= j.keeper.options.MaxBehind || waited >= 2*j.keeper.options.FlushAge && j.bytes+j.inFlight.bytes >= 2*j.keeper.options.FlushBytes
}

// wakeFlusher wakes the goroutine that flushes.
func (j *Journal) wakeFlusher() {
	select {
	case j.flushNow <- struct{}{}:
	default:
	}
}

// wakeIfPending wakes the flusher if there is something to write.
func (j *Journal) wakeIfPending() {
	j.mu.Lock()
	pending := len(j.pending) > 0
	j.mu.Unlock()
	if pending {
		j.wakeFlusher()
	}
}

// take removes and returns the pending events. The caller holds flushing.
func (j *Journal) take() []pending {
	j.mu.Lock()
	defer j.mu.Unlock()
	pending := j.pending
	j.inFlight = flushState{j.bytes, j.oldest, j.blobs}
	j.pending, j.bytes, j.blobs = nil, 0, nil
	return pending
}

// committed records that events are stored, and shows them. The caller holds flushing.
func (j *Journal) committed(events []pending) {
	if !j.immediate() {
		shown := make([]Event, 0, len(events))
		for i := range events {
			shown = append(shown, events[i].event)
		}
		j.show(shown...)
	}
	j.keeper.options.Log.KnowBlobs(j.inFlight.blobs)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.inFlight, j.flushed = flushState{}, time.Now()
}

// storedOf returns the stored form of events.
func storedOf(events []pending) []continuo.TurnEvent {
	stored := make([]continuo.TurnEvent, 0, len(events))
	for i := range events {
		stored = append(stored, events[i].stored)
	}
	return stored
}

// putBack returns events to pending after a failed write. The caller holds flushing.
func (j *Journal) putBack(events []pending) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending, j.bytes, j.quiet = append(events, j.pending...), j.bytes+j.inFlight.bytes, false
	if len(events) > 0 {
		j.oldest = j.inFlight.oldest
	}
	j.blobs = append(j.inFlight.blobs, j.blobs...)
	j.inFlight = flushState{}
}

// flush writes the pending events to the store, renews the lease and reads the signals.
func (j *Journal) flush() error {
	j.flushing.Lock()
	defer j.flushing.Unlock()
	if j.settled {
		return nil
	}
	pending := j.take()
	update := continuo.TurnUpdate{
		ConversationID: j.turn.ConversationID, TurnID: j.turn.ID, Fence: j.turn.Fence, Events: storedOf(pending), SignalsSeen: j.seen,
		Blobs: j.inFlight.blobs,
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
	j.committed(pending)
	if len(pending) > 0 {
		j.tookToWrite(time.Since(begin))
		j.measure(StageFlush, time.Since(begin))
		j.keeper.options.Meter.EventsFlushed(len(pending))
	}
	if update.Lease > 0 {
		j.renewed = time.Now()
	}
	if len(pending) > keepRecent { // some may be in the store only: wake the readers to read them there
		j.mu.Lock()
		j.wake()
		j.mu.Unlock()
	}
	j.seen += len(signals)
	for _, signal := range signals {
		j.applySignal(signal)
	}
	return nil
}

// flushAsNeeded flushes soon after an event was queued, and often enough to renew the lease and to receive signals.
func (j *Journal) flushAsNeeded() {
	heartbeat := time.NewTicker(j.keeper.options.Heartbeat)
	defer heartbeat.Stop()
	listener := j.keeper.options.Log.Listen(j.turn.ConversationID)
	defer listener.Close()
	changed := listener.ChangedElsewhere()
	for {
		select {
		case <-j.quit:
			return
		case <-heartbeat.C:
			_ = j.flush() // retried at the next heartbeat
		case <-changed: // perhaps a signal
			changed = listener.ChangedElsewhere()
			_ = j.flush()
		case <-j.flushNow:
			if wait := j.untilDue(); wait > 0 && !j.sleep(wait) {
				return
			}
			_ = j.flush()
		}
	}
}

// tookToWrite records how long a write of events took.
func (j *Journal) tookToWrite(took time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.took = took
}

// untilDue returns how long the pending events may still wait to be written together with later ones.
func (j *Journal) untilDue() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case len(j.pending) == 0, j.bytes >= j.keeper.options.FlushBytes:
		return 0
	case j.immediate():
		return time.Until(j.oldest.Add(j.keeper.options.FlushAge))
	}
	return time.Until(j.flushed.Add(min(writeShare*j.took, j.keeper.options.FlushAge)))
}

// sleep waits for a time or an earlier wake-up of the flusher; it is false when the journal ends.
func (j *Journal) sleep(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-j.quit:
		return false
	case <-timer.C:
	case <-j.flushNow:
	}
	return true
}
