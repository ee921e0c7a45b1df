package engine

import (
	"context"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// runFollower is one reader of a run, or of a crew's cycle.
type runFollower struct {
	engine  *Engine
	ctx     context.Context
	run     continuo.Run
	tracker followed
	after   int64
	// tell gives the reader an entry, or an event of a turn that is under way, and reports whether it wants more.
	tell  func(entry *continuo.Entry, running *continuo.Turn, event *turn.Event) bool
	left  bool             // the reader has enough
	heard map[string]bool  // turns that were followed to their end, or are followed beside others
	live  chan besideEvent // of turns in branches
}

// followed reads what is recorded of a run.
type followed interface {
	// read reads on through an entry (0: the end of the log), and gives each to a function, which may stop it.
	read(ctx context.Context, through int64, each func(*continuo.Entry) bool) error
	at() continuo.RunState
	// branches are the conversations beside the run's own in which its turns may be under way.
	branches() []string
}

// waitingPoll is how often a run is looked at that waits for a person, where nothing tells of a change.
const waitingPoll = time.Second

func (f *runFollower) follow() error {
	waits, cancel := context.WithCancelCause(f.ctx) // for what comes next; a turn under way is heard to its end
	defer cancel(nil)
	defer context.AfterFunc(f.engine.draining, func() { cancel(ErrClosing) })()
	listener := f.engine.Log.Listen(f.run.ConversationID)
	defer listener.Close()
	f.heard, f.live = map[string]bool{}, make(chan besideEvent)
	listened, leave := context.WithCancel(f.ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer leave()
	for {
		changed := listener.Changed()
		if err := f.entries(0); err != nil || f.left {
			return err
		}
		running, err := f.engine.runningTurn(f.ctx, f.run.ConversationID)
		if err != nil {
			return err
		}
		if running != nil && running.RunID == f.run.ID && !f.heard[running.ID] {
			f.turn(*running)
			if f.left {
				return nil
			}
			continue
		}
		if err := f.besides(listened, &listening); err != nil {
			return err
		}
		poll := otherPoll
		switch state := f.tracker.at(); {
		case state == continuo.RunWaiting:
			poll = waitingPoll
		case state != continuo.RunRunning && (running == nil || running.RunID != f.run.ID):
			return f.entries(0) // what its last turn wrote
		}
		if !f.await(waits, listener, changed, poll) {
			return context.Cause(waits)
		}
		if f.left {
			return nil
		}
	}
}

// besideEvent is a live event of a turn in a branch.
type besideEvent struct {
	turn  *continuo.Turn
	event turn.Event
}

// besides begins to listen to the turns that are under way in branches.
func (f *runFollower) besides(ctx context.Context, listening *sync.WaitGroup) error {
	turns, err := f.engine.runningTurns(ctx, f.run.ID, f.tracker.branches())
	if err != nil {
		return err
	}
	for _, running := range turns {
		if f.heard[running.ID] {
			continue
		}
		f.heard[running.ID] = true
		listening.Go(func() {
			for event, err := range f.engine.Follow(ctx, running, 0) {
				if err != nil {
					return
				}
				select {
				case f.live <- besideEvent{&running, event}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return nil
}

// await waits until the run's conversation may have changed, and yields what turns in branches do meanwhile. It is false
// when ctx is done.
func (f *runFollower) await(ctx context.Context, listener *continuo.Listener, changed <-chan struct{}, poll time.Duration) bool {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		listener.Wait(waits, changed, poll)
	}()
	for {
		select {
		case <-waited:
			return ctx.Err() == nil
		case beside := <-f.live:
			if f.left = !f.tell(nil, beside.turn, &beside.event); f.left {
				cancel()
				<-waited
				return true
			}
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
		f.left = !f.tell(entry, nil, nil)
		return !f.left
	})
}

// turn yields a turn's events, and the entries as they come. What goes wrong with it shows in the entries.
func (f *runFollower) turn(running continuo.Turn) {
	for event, err := range f.engine.Follow(f.ctx, running, 0) {
		if err != nil {
			break
		}
		if f.left = !f.tell(nil, &running, &event); f.left {
			return
		}
		if event.Entry != nil && (f.entries(event.Entry.Seq) != nil || f.left) {
			return
		}
	}
	f.heard[running.ID] = true
}
