package start

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// OnBusy is a turn's policy where its conversation has another turn in progress.
type OnBusy string

// The policies for a busy conversation.
const (
	Wait      OnBusy = "wait"      // for the other turn to end, up to Options.Wait; the default
	Reject    OnBusy = "reject"    // fail with continuo.ErrBusy
	Interrupt OnBusy = "interrupt" // stop the other turn and take its place
)

// ParseOnBusy reads a name; "" is Wait.
func ParseOnBusy(name string) (OnBusy, error) {
	switch policy := OnBusy(name); policy {
	case "":
		return Wait, nil
	case Wait, Reject, Interrupt:
		return policy, nil
	}
	return "", fmt.Errorf("on_busy %q: %w; allowed: wait, reject, interrupt", name, continuo.ErrInvalid)
}

// lanes run the turns of each conversation one after another.
type lanes struct {
	mu    sync.Mutex
	lanes map[string]*lane // of the conversations that have a turn in progress
}

// lane is one conversation's running turn and the queue of those that wait for it.
type lane struct {
	turnID string                  // of the turn in progress
	cancel context.CancelCauseFunc // stops it
	ended  bool                    // it has shown its end
	queue  []*waiter
}

type waiter struct {
	ready  chan struct{} // closed when the waiter gets the lane
	turnID string
	cancel context.CancelCauseFunc
}

// enter waits until the lane of a conversation is free for a turn, and returns the function to call at the turn's
// end. A second turn with the same id always waits for the first. Waited says that another turn may have changed the
// conversation since the call: a turn that has shown its end has not.
func (l *lanes) enter(ctx context.Context, id, turnID string, policy OnBusy, wait time.Duration, cancel context.CancelCauseFunc) (leave func(), waited bool, err error) {
	leave = func() { l.leave(id) }
	l.mu.Lock()
	if l.lanes == nil {
		l.lanes = map[string]*lane{}
	}
	busy := l.lanes[id]
	if busy == nil {
		l.lanes[id] = &lane{turnID: turnID, cancel: cancel}
		l.mu.Unlock()
		return leave, false, nil
	}
	waited = !busy.ended || len(busy.queue) > 0
	if busy.turnID == turnID {
		policy = Wait
	}
	w := &waiter{ready: make(chan struct{}), turnID: turnID, cancel: cancel}
	switch policy {
	case Reject:
		other := busy.turnID
		l.mu.Unlock()
		return nil, false, &continuo.BusyError{Turn: continuo.Turn{ID: other, ConversationID: id}}
	case Interrupt:
		busy.queue = append([]*waiter{w}, busy.queue...)
		busy.cancel(turn.ErrInterrupted)
	default:
		busy.queue = append(busy.queue, w)
	}
	l.mu.Unlock()
	if err := w.wait(ctx, wait); err != nil {
		l.quit(id, w)
		return nil, false, fmt.Errorf("conversation %s: %w", id, err)
	}
	return leave, waited, nil
}

// ended notes that the turn in a conversation's lane shows its end.
func (l *lanes) ended(id, turnID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if busy := l.lanes[id]; busy != nil && busy.turnID == turnID {
		busy.ended = true
	}
}

// holder returns the turn that has a conversation's lane; alone is false where there is none in this process, or where
// other turns wait for the lane.
func (l *lanes) holder(id string) (turnID string, unqueued bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := l.lanes[id]
	if busy == nil || len(busy.queue) > 0 {
		return "", false
	}
	return busy.turnID, true
}

func (w *waiter) wait(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("%w: waited %s", continuo.ErrBusy, limit)
	}
}

// leave hands the lane to the next in the queue.
func (l *lanes) leave(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := l.lanes[id]
	if len(lane.queue) == 0 {
		delete(l.lanes, id)
		return
	}
	next := lane.queue[0]
	lane.queue, lane.turnID, lane.cancel, lane.ended = lane.queue[1:], next.turnID, next.cancel, false
	close(next.ready)
}

// quit removes a waiter from the queue; if it was given the lane just now, the lane goes to the next.
func (l *lanes) quit(id string, w *waiter) {
	l.mu.Lock()
	at := -1
	if lane := l.lanes[id]; lane != nil {
		at = slices.Index(lane.queue, w)
		if at >= 0 {
			lane.queue = slices.Delete(lane.queue, at, at+1)
		}
	}
	l.mu.Unlock()
	if at < 0 {
		l.leave(id)
	}
}
