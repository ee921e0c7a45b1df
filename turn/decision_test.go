package turn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// TestADecisionCountsForOneCallOnly lets a person allow a call, and the model use the call's id again.
func TestADecisionCountsForOneCallOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, asks(`echo {"harmless":1}`), asks(`echo {"harmful":1}`), textAnswer("fine"))
		h.runner.Tools, h.runner.Policy = tool.Set{echo{name: "echo"}}, tool.Policy{}
		allowed := false
		for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text("go")}) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Kind != turn.Asked || allowed {
				continue
			}
			allowed = true
			running := continuo.Turn{ID: event.TurnID, ConversationID: h.conversation.ID, State: continuo.TurnRunning}
			if _, err := h.keeper.Decide(context.Background(), running, "call_0", turn.Decision{Allowed: true}); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{
			"user go", "assistant null calls call_0", `tool call_0 {"harmless":1}`, "assistant null calls call_0",
			"tool call_0 error: not run: it was not allowed: no decision within 5m0s", "assistant fine",
		}
		if got := shapes(h.entries()); !slices.Equal(got, want) {
			t.Errorf("log\n%q\nwant\n%q", got, want)
		}
	})
}

// TestALateDecisionIsNotTheNextCalls has a decision wait in the store until the call that it is about has
// expired and the model has used its id again.
func TestALateDecisionIsNotTheNextCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &steppedStore{Store: storetest.NewMemory()}
		h := newHouse(t, asks(`echo {"harmless":1}`), asks(`echo {"harmful":1}`), textAnswer("fine"))
		h.over(store)
		h.runner.Tools, h.runner.Policy = tool.Set{echo{name: "echo"}}, tool.Policy{}
		elsewhere := turn.NewKeeper(turn.KeeperOptions{Log: h.log})
		var deaf atomic.Bool
		store.update = func(update continuo.TurnUpdate) error {
			if deaf.Load() && update.Lease == 0 {
				return errors.New("not now")
			}
			return nil
		}
		asked := 0
		for event, err := range h.follow(context.Background(), turn.Input{Message: continuo.Text("go")}) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Kind != turn.Asked {
				continue
			}
			if asked++; asked == 1 {
				time.Sleep(5*time.Minute - time.Millisecond)
				running := continuo.Turn{ID: event.TurnID, ConversationID: h.conversation.ID, State: continuo.TurnRunning}
				deaf.Store(true)
				if _, err := elsewhere.Decide(context.Background(), running, "call_0", turn.Decision{Allowed: true}); err != nil {
					t.Fatal(err)
				}
			} else {
				deaf.Store(false)
			}
		}
		if got := h.entries()[4].Content.String(); !strings.HasPrefix(got, "error: not run") {
			t.Errorf("the second call, which was not decided, gave %s", got)
		}
	})
}

// TestACancelledTurnBeginsNoCall cancels a turn while more calls wait than run side by side.
func TestACancelledTurnBeginsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		var begun atomic.Int64
		h := newHouse(t, asks(slices.Repeat([]string{"stuck {}"}, 40)...), textAnswer("never"))
		h.runner.Tools = tool.Set{echo{name: "stuck", begin: func() { begun.Add(1); <-release }}}
		journal := h.begin(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
		synctest.Wait()
		before := begun.Load()
		journal.Stop(nil)
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if n := begun.Load(); n != before || n == 0 {
			t.Errorf("%d calls ran, %d of them after the turn was cancelled", n, n-before)
		}
	})
}
