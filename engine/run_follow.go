package engine

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// runFollower is one reader of a run.
type runFollower struct {
	engine  *Engine
	ctx     context.Context
	tracker *tracker
	after   int64
	yield   func(RunProgress, error) bool
	left    bool            // the reader has enough
	heard   map[string]bool // turns that were followed to their end
}

// waitingPoll is how often a run is looked at that waits for a person, where nothing tells of a change.
const waitingPoll = time.Second

func (f *runFollower) run() error {
	waits, cancel := context.WithCancelCause(f.ctx) // for what comes next; a turn under way is heard to its end
	defer cancel(nil)
	defer context.AfterFunc(f.engine.draining, func() { cancel(ErrClosing) })()
	listener := f.engine.Log.Listen(f.tracker.run.ConversationID)
	defer listener.Close()
	f.heard = map[string]bool{}
	for {
		changed := listener.Changed()
		if err := f.entries(0); err != nil || f.left {
			return err
		}
		running, err := f.engine.runningTurn(f.ctx, f.tracker.run.ConversationID)
		if err != nil {
			return err
		}
		if running != nil && running.RunID == f.tracker.run.ID && !f.heard[running.ID] {
			f.turn(*running)
			if f.left {
				return nil
			}
			continue
		}
		poll := otherPoll
		switch state := f.tracker.state.Run; {
		case state == continuo.RunWaiting:
			poll = waitingPoll
		case state != continuo.RunRunning && (running == nil || running.RunID != f.tracker.run.ID):
			return f.entries(0) // what its last turn wrote
		}
		if !listener.Wait(waits, changed, poll) {
			return context.Cause(waits)
		}
	}
}

// entries yields the entries that have come, through one (0: the newest).
func (f *runFollower) entries(through int64) error {
	return f.tracker.read(f.ctx, through, func(entry *continuo.Entry) bool {
		if entry.Seq <= f.after {
			return true
		}
		f.after = entry.Seq
		progress := RunProgress{Entry: entry}
		if entry.RunEvent != nil {
			progress.Status = f.tracker.statusAt(entry)
		}
		f.left = !f.yield(progress, nil)
		return !f.left
	})
}

// turn yields a turn's events, and the entries as they come. What goes wrong with it shows in the entries.
func (f *runFollower) turn(running continuo.Turn) {
	for event, err := range f.engine.Follow(f.ctx, running, 0) {
		if err != nil {
			break
		}
		if f.left = !f.yield(RunProgress{Turn: &event}, nil); f.left {
			return
		}
		if event.Entry != nil && (f.entries(event.Entry.Seq) != nil || f.left) {
			return
		}
	}
	f.heard[running.ID] = true
}
