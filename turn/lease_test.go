package turn_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// outage is a store that one process can lose: calls fail, and so does what tells of changes.
type outage struct {
	*brittle
	down, up chan struct{}
}

func (o *outage) WatchChanges(ctx context.Context, changed func([]string), lost func()) {
	changed(nil)
	for ctx.Err() == nil {
		select {
		case <-o.down:
			lost()
		case <-o.up:
			changed(nil)
		case <-ctx.Done():
		}
	}
}

func (o *outage) RunningTurns(ctx context.Context, limit int) ([]continuo.Turn, error) {
	if err := o.failure(); err != nil {
		return nil, err
	}
	return o.brittle.RunningTurns(ctx, limit)
}

// TestAnOutageLongerThanTheLease: two processes lose their store for longer than a lease, and the one that has no turn
// comes back first: it leaves the other's turn alone, which goes on to its end; but one that stays away is closed.
func TestAnOutageLongerThanTheLease(t *testing.T) {
	for name, test := range map[string]struct {
		inCall bool          // while a tool runs; else while the model speaks
		away   time.Duration // of the owner, after the other came back
		want   turn.Kind
	}{
		"it comes back":                      {false, 10 * time.Second, turn.Finished},
		"it does not":                        {false, 2 * time.Minute, turn.Failed},
		"it comes back with a tool's result": {true, 10 * time.Second, turn.Finished},
		"its tool's result comes too late":   {true, 2 * time.Minute, turn.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := storetest.NewMemory()
				owners := &brittle{Store: memory}
				others := &outage{&brittle{Store: memory}, make(chan struct{}), make(chan struct{})}
				begin := func() {
					time.Sleep(time.Second)
					owners.fail(continuo.ErrUnavailable)
					others.fail(continuo.ErrUnavailable)
					others.down <- struct{}{}
				}
				over := make(chan struct{})
				end := func() {
					defer close(over)
					time.Sleep(40 * time.Second)
					others.fail(nil)
					time.Sleep(time.Second)
					others.up <- struct{}{}
					time.Sleep(test.away)
					owners.fail(nil)
				}
				h := newHouse(t, []any{
					model.Delta{Text: "one "},
					func(context.Context) { begin(); end() },
					model.Delta{Text: "two"},
					model.Delta{Finish: "stop"},
				})
				if test.inCall {
					h = newHouse(t, asks("slow {}"), says("fine"))
					h.runner.Tools = tool.Set{echo{name: "slow", begin: func() { begin(); go end() }}}
				}
				h.over(owners)
				log := continuo.NewLog(others, continuo.LogOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go log.WatchChanges(ctx)
				other := turn.NewKeeper(turn.KeeperOptions{Log: log})
				go func() {
					for ctx.Err() == nil {
						_, _ = other.RecoverAll(ctx) // it fails during the outage
						time.Sleep(time.Second)
					}
				}()
				journal := h.begin(t.Context())
				ran := make(chan error, 1)
				go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
				<-ran
				<-over
				var last turn.Event
				for event, err := range h.keeper.Follow(t.Context(), h.conversation.ID, journal.Turn().ID, 0) {
					if err != nil {
						t.Fatal(err)
					}
					last = event
				}
				if last.Kind != test.want {
					t.Errorf("it ended with %+v", last)
				}
				cancel()
				time.Sleep(2 * time.Second)
			})
		})
	}
}
