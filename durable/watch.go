package durable

import (
	"context"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// Watched is a run that a watcher reads.
type Watched interface {
	// Read is that of History.
	Read(ctx context.Context, through int64, each func(*continuo.Entry) bool) error
	// RunState is the state of the run by the entries that were read.
	RunState() continuo.RunState
	// Branches are the conversations besides the run's own in which it may have running turns.
	Branches() []string
}

// Emit passes an entry, or an event of a running turn, to a watcher. It returns false to stop.
type Emit func(entry *continuo.Entry, running *continuo.Turn, event *turn.Event) bool

// Watch emits the entries of a run with seqs above after, each once and in order, and the live events of its turns
// between them. It returns when the run is neither running nor waiting and all its entries were emitted, when emit
// returns false, or with an error; without a running turn also with ErrClosing.
func (d *Driver) Watch(ctx context.Context, run continuo.Run, watched Watched, after int64, emit Emit) error {
	w := &watcher{
		driver: d, run: run, watched: watched, after: after, emit: emit,
		followed: map[string]bool{}, live: make(chan liveEvent),
	}
	return w.watch(ctx)
}

// watcher is one reader of a run.
type watcher struct {
	driver   *Driver
	run      continuo.Run
	watched  Watched
	after    int64
	emit     Emit
	stopped  bool            // emit has returned false
	followed map[string]bool // turns that were followed to their end, or are followed in parallel
	live     chan liveEvent  // of turns in branches
}

// liveEvent is an event of a turn in a branch.
type liveEvent struct {
	turn  *continuo.Turn
	event turn.Event
}

// waitingPoll is how often a run that waits for a person is polled, where the store does not report changes.
const waitingPoll = time.Second

func (w *watcher) watch(ctx context.Context) error {
	idle, cancel := w.driver.untilDraining(ctx) // without a running turn; a running one is followed to its end
	defer cancel()
	listener := w.driver.options.Log.Listen(w.run.ConversationID)
	defer listener.Close()
	branched, leave := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer leave()
	for {
		changed := listener.Changed()
		if err := w.entries(ctx, 0); err != nil || w.stopped {
			return err
		}
		running, err := w.driver.RunningTurn(ctx, w.run.ConversationID)
		if err != nil {
			return err
		}
		ours := running != nil && running.RunID == w.run.ID
		if ours && !w.followed[running.ID] {
			w.follow(ctx, *running)
			if w.stopped {
				return nil
			}
			continue
		}
		if err := w.followBranches(branched, &following); err != nil {
			return err
		}
		poll := TurnPoll
		switch state := w.watched.RunState(); {
		case state == continuo.RunWaiting:
			poll = waitingPoll
		case state != continuo.RunRunning && !ours:
			return w.entries(ctx, 0) // those of its last turn
		}
		if !w.await(idle, listener, changed, poll) {
			return context.Cause(idle)
		}
		if w.stopped {
			return nil
		}
	}
}

// followBranches starts to follow the running turns in branches.
func (w *watcher) followBranches(ctx context.Context, following *sync.WaitGroup) error {
	turns, err := w.driver.RunningTurns(ctx, w.run.ID, w.watched.Branches())
	if err != nil {
		return err
	}
	for _, running := range turns {
		if w.followed[running.ID] {
			continue
		}
		w.followed[running.ID] = true
		following.Go(func() {
			for event, err := range w.driver.options.Follow(ctx, running, 0) {
				if err != nil {
					return
				}
				select {
				case w.live <- liveEvent{&running, event}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return nil
}

// await waits until the run's conversation may have changed, and emits the events of turns in branches meanwhile. It
// returns false when ctx is done.
func (w *watcher) await(ctx context.Context, listener *continuo.Listener, changed <-chan struct{}, poll time.Duration) bool {
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
		case live := <-w.live:
			if w.stopped = !w.emit(nil, live.turn, &live.event); w.stopped {
				cancel()
				<-waited
				return true
			}
		}
	}
}

// entries emits the new entries, through one (0: the newest).
func (w *watcher) entries(ctx context.Context, through int64) error {
	return w.watched.Read(ctx, through, func(entry *continuo.Entry) bool {
		if entry.Seq <= w.after {
			return true
		}
		w.after = entry.Seq
		w.stopped = !w.emit(entry, nil, nil)
		return !w.stopped
	})
}

// follow emits a turn's events, and the entries as they are appended. A failure of the turn is in the entries.
func (w *watcher) follow(ctx context.Context, running continuo.Turn) {
	for event, err := range w.driver.options.Follow(ctx, running, 0) {
		if err != nil {
			break
		}
		if w.stopped = !w.emit(nil, &running, &event); w.stopped {
			return
		}
		if event.Entry != nil && (w.entries(ctx, event.Entry.Seq) != nil || w.stopped) {
			return
		}
	}
	w.followed[running.ID] = true
}
