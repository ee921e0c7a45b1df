package turn_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// outage is a store that one process can lose: calls fail, and so do the reports of changes.
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
// comes back first: it leaves the other's turn alone, which continues to its end; but one that stays away is closed.
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
					h = newHouse(t, asks("slow {}"), textAnswer("fine"))
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

// TestATurnThatLostItsLeaseAnswersNoCallsOfTheNext lets a process stall between its lease and its first entry.
func TestATurnThatLostItsLeaseAnswersNoCallsOfTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, textAnswer("never asked"))
		stalled := h.begin(context.Background())
		other := turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
		if recovered, err := other.RecoverAll(context.Background()); recovered != 1 || err != nil {
			t.Fatalf("recovered %d, %v", recovered, err)
		}
		next := &house{t: t, log: h.log, conversation: h.conversation, runner: h.runner, keeper: other}
		runner := *h.runner
		runner.Model = &script{answers: [][]any{asks("echo {}"), textAnswer("done")}}
		release := make(chan struct{})
		runner.Tools = tool.Set{echo{name: "echo", begin: func() { <-release }}}
		journal := next.begin(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- runner.Run(journal, turn.Input{Message: continuo.Text("the next")}) }()
		synctest.Wait() // its call is running
		if err := h.runner.Run(stalled, turn.Input{Message: continuo.Text("go")}); !errors.Is(err, continuo.ErrLeaseLost) {
			t.Errorf("the turn without a lease ended with %v", err)
		}
		close(release)
		if err := <-ran; err != nil {
			t.Errorf("the next turn: %v", err)
		}
		want := []string{"user the next", "assistant null calls call_0", "tool call_0 {}", "assistant done"}
		if got := shapes(h.entries()); !slices.Equal(got, want) {
			t.Errorf("log\n%q\nwant\n%q", got, want)
		}
	})
}

type countLost struct {
	turn.Meter
	lost atomic.Int64
}

func (c *countLost) LeaseLost() { c.lost.Add(1) }

func (c *countLost) Stage(context.Context, turn.Stage, time.Duration) {}

func (c *countLost) Charged([]continuo.Spending) {}
func (c *countLost) EventsFlushed(int)           {}

func (c *countLost) ToolCalled(string, string, time.Duration) {}

// TestATurnThatEndedHasNotLostItsLease has events become due while the turn's end is being written.
func TestATurnThatEndedHasNotLostItsLease(t *testing.T) {
	for range 20 {
		h := newHouse(t, textAnswer("fine"))
		h.over(&steppedStore{Store: storetest.NewMemory(), append: func(continuo.Batch) error {
			for range 1000 { // until the goroutine that flushes waits behind this write
				runtime.Gosched()
			}
			return nil
		}})
		meter := &countLost{}
		h.keeper = turn.NewKeeper(turn.KeeperOptions{Log: h.log, Meter: meter, FlushAge: time.Nanosecond})
		if last := h.send("go"); last.Kind != turn.Finished {
			t.Errorf("last event: %+v", last)
		}
		if n := meter.lost.Load(); n != 0 {
			t.Fatalf("%d leases were lost", n)
		}
	}
}

func TestAConversationThatIsDeletedMeanwhileIsNoFailureOfRecovery(t *testing.T) {
	store := &steppedStore{Store: storetest.NewMemory()}
	h := newHouse(t)
	h.over(store)
	h.begin(context.Background())
	other := turn.NewKeeper(turn.KeeperOptions{Log: h.log, Gone: func(string) bool { return true }})
	store.taken = func(taken continuo.Turn) {
		if err := store.Delete(context.Background(), taken.ConversationID); err != nil {
			t.Error(err)
		}
	}
	if recovered, err := other.RecoverAll(context.Background()); recovered != 0 || err != nil {
		t.Errorf("recovered %d, %v", recovered, err)
	}
}

// TestABeginningThatMayBeWrittenIsNotUndone has a store write the user's entry and say that it cannot be reached.
func TestABeginningThatMayBeWrittenIsNotUndone(t *testing.T) {
	in := turn.Input{Message: continuo.Text("hello")}
	for name, begin := range map[string]func(h *house, fail func()) error{
		"under the turn's lease": func(h *house, fail func()) error {
			journal := h.begin(context.Background())
			fail()
			return h.runner.Run(journal, in)
		},
		"with the turn's lease": func(h *house, fail func()) error {
			fail()
			_, err := h.beginWith(in)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &steppedStore{Store: storetest.NewMemory()}
			h := newHouse(t)
			h.over(store)
			err := begin(h, func() {
				store.append = func(batch continuo.Batch) error {
					store.append = nil
					if err := store.Store.Append(context.Background(), batch); err != nil {
						return err
					}
					return continuo.ErrUnavailable
				}
			})
			if !errors.Is(err, continuo.ErrUnavailable) {
				t.Errorf("the turn ended with %v", err)
			}
			if recovered, err := h.keeper.RecoverAll(context.Background()); err != nil || recovered != 1 {
				t.Errorf("recovered %d turns, %v", recovered, err)
			}
			turns, err := store.Turns(context.Background(), continuo.TurnQuery{ConversationID: h.conversation.ID, Limit: 9})
			if err != nil || len(turns) != 1 || turns[0].State != continuo.TurnFailed || turns[0].Reason != continuo.ReasonInterrupted {
				t.Errorf("the turn of an entry that is there: %+v, %v", turns, err)
			}
			if all := h.entries(); len(all) != 2 || all[0].Content.String() != "hello" || all[1].Error == nil {
				t.Errorf("log %q", shapes(all))
			}
		})
	}
}
