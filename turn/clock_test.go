package turn_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// clocked is a store whose own clock can be set. It is a day ahead of the one of the store below, so that no lease that
// it writes ends in the past there: that would give it back.
type clocked struct {
	continuo.Store
	moved atomic.Int64
}

func (c *clocked) set(by time.Duration) { c.moved.Store(int64(by)) }

func (c *clocked) ahead() time.Duration { return 24*time.Hour + time.Duration(c.moved.Load()) }

// until is how long a lease lasts for a store whose clock is right.
func (c *clocked) until(lease time.Duration) time.Duration {
	if lease <= 0 {
		return lease
	}
	return lease + c.ahead()
}

// see is a turn as the clock has it.
func (c *clocked) see(t continuo.Turn) continuo.Turn {
	now := time.Now().Add(c.ahead())
	t.LeaseExpired = t.State == continuo.TurnRunning && !now.Before(t.LeaseUntil)
	return t
}

func (c *clocked) TakeTurn(ctx context.Context, seen continuo.Turn, owner string, lease time.Duration) (continuo.Turn, error) {
	taken, err := c.Store.TakeTurn(ctx, seen, owner, c.until(lease))
	return c.see(taken), err
}

func (c *clocked) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	update.Lease = c.until(update.Lease)
	return c.Store.UpdateTurn(ctx, update)
}

func (c *clocked) Append(ctx context.Context, batch continuo.Batch) error {
	for i := range batch.Turns {
		batch.Turns[i].Lease = c.until(batch.Turns[i].Lease)
	}
	if batch.Begin != nil {
		batch.Begin.Lease = c.until(batch.Begin.Lease)
	}
	err := c.Store.Append(ctx, batch)
	if busy := new(continuo.BusyError); errors.As(err, &busy) {
		return &continuo.BusyError{Turn: c.see(busy.Turn)}
	}
	if err == nil && batch.Begin != nil {
		batch.Begin.Begun = c.see(batch.Begin.Begun)
	}
	return err
}

func (c *clocked) Turn(ctx context.Context, conversationID, turnID string) (continuo.Turn, error) {
	found, err := c.Store.Turn(ctx, conversationID, turnID)
	return c.see(found), err
}

func (c *clocked) RunningTurns(ctx context.Context, limit int) ([]continuo.Turn, error) {
	running, err := c.Store.RunningTurns(ctx, limit)
	for i := range running {
		running[i] = c.see(running[i])
	}
	return running, err
}

// TestTheClockOfTheStoreIsSet sets it while a turn streams for two minutes, whose owner is killed or not. Another process
// looks every second, as those that follow the turn do. Its lease is 15 s.
func TestTheClockOfTheStoreIsSet(t *testing.T) {
	for name, test := range map[string]struct {
		to     time.Duration
		killed bool
	}{
		"back by an hour":                    {-time.Hour, false},
		"forward by an hour":                 {time.Hour, false},
		"back by an hour, owner killed":      {-time.Hour, true},
		"forward by an hour, owner killed":   {time.Hour, true},
		"back by ten seconds, owner killed":  {-10 * time.Second, true},
		"forward by ten seconds":             {10 * time.Second, false},
		"the clock goes right, owner killed": {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &clocked{Store: storetest.NewMemory()}
				owner := &brittle{Store: clock}
				var gone time.Time
				h := newHouse(t, []any{
					model.Delta{Text: "one "},
					func(context.Context) {
						time.Sleep(time.Minute)
						if test.killed {
							gone = time.Now()
							owner.fail(continuo.ErrUnavailable)
						}
						clock.set(test.to)
						time.Sleep(time.Minute)
					},
					model.Delta{Text: "two"},
					model.Delta{Finish: "stop"},
				})
				h.over(owner)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				other := turn.NewKeeper(turn.KeeperOptions{Log: continuo.NewLog(clock, continuo.LogOptions{})})
				var closed time.Time
				go func() {
					for ctx.Err() == nil {
						recovered, err := other.RecoverAll(ctx)
						if err != nil {
							t.Error(err)
						}
						if recovered > 0 {
							closed = time.Now()
						}
						time.Sleep(time.Second)
					}
				}()
				journal := h.begin(t.Context())
				_ = h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) // of a killed owner it fails
				cancel()
				time.Sleep(time.Second) // the other one looks no more
				if !test.killed {
					if !closed.IsZero() {
						t.Errorf("the turn was closed %v after it began although its owner is alive", closed.Sub(journal.Turn().StartedAt))
					}
					return
				}
				if waited := closed.Sub(gone); closed.IsZero() || waited > 20*time.Second {
					t.Errorf("closed %v after its owner was killed", waited)
				}
			})
		})
	}
}
