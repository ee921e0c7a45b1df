package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// OnBusy says what a turn does when its conversation has another one under way.
type OnBusy string

// What to do with a busy conversation.
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
	return "", fmt.Errorf("on_busy %q: %w: known are wait, reject, interrupt", name, continuo.ErrInvalid)
}

// lanes keeps the turns of each conversation one behind the other.
type lanes struct {
	mu    sync.Mutex
	lanes map[string]*lane
}

// lane is one conversation's turn under way and how many wait for it.
type lane struct {
	free    chan struct{} // holds one token while no turn runs
	cancel  context.CancelCauseFunc
	waiting int
}

// enter waits for its turn and returns what to call at its end.
func (l *lanes) enter(ctx context.Context, id string, policy OnBusy, wait time.Duration, cancel context.CancelCauseFunc) (leave func(), err error) {
	lane := l.join(id)
	select {
	case <-lane.free:
	default:
		switch policy {
		case Reject:
			l.quit(id, lane)
			return nil, fmt.Errorf("conversation %s: %w", id, continuo.ErrBusy)
		case Interrupt:
			l.mu.Lock()
			if lane.cancel != nil {
				lane.cancel(turn.ErrInterrupted)
			}
			l.mu.Unlock()
		}
		if err := lane.wait(ctx, wait); err != nil {
			l.quit(id, lane)
			return nil, fmt.Errorf("conversation %s: %w", id, err)
		}
	}
	l.mu.Lock()
	lane.cancel = cancel
	l.mu.Unlock()
	return func() {
		l.mu.Lock()
		lane.cancel = nil
		l.mu.Unlock()
		lane.free <- struct{}{}
		l.quit(id, lane)
	}, nil
}

func (l *lane) wait(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-l.free:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("%w: waited %s", continuo.ErrBusy, limit)
	}
}

func (l *lanes) join(id string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes == nil {
		l.lanes = map[string]*lane{}
	}
	found := l.lanes[id]
	if found == nil {
		found = &lane{free: make(chan struct{}, 1)}
		found.free <- struct{}{}
		l.lanes[id] = found
	}
	found.waiting++
	return found
}

func (l *lanes) quit(id string, lane *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane.waiting--
	if lane.waiting == 0 {
		delete(l.lanes, id)
	}
}
