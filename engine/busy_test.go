package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestADisplacedWaitingTurnReportsIt has a turn wait for another process, and a third take its place.
func TestADisplacedWaitingTurnReportsIt(t *testing.T) {
	h := newTurnHarness(t)
	conversation, err := h.Log.Create(context.Background(), continuo.Conversation{ProjectID: "default", Key: "s"})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := storetest.BeginTurn(context.Background(), h.Log.Turns().(continuo.Store), continuo.Turn{ID: "turn_other", ConversationID: conversation.ID, Owner: "other"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	displace := func(text string) <-chan error {
		ended := make(chan error, 1)
		r := request("s", text)
		r.OnBusy = engine.Interrupt
		go func() {
			chat, err := h.Turns.Chat(context.Background(), r)
			if err == nil {
				for range chat.Events {
				}
			}
			ended <- err
		}()
		return ended
	}
	update := continuo.TurnUpdate{ConversationID: conversation.ID, TurnID: "turn_other", Fence: elsewhere.Fence}
	first := displace("one")
	for waiting := 0; waiting == 0; runtime.Gosched() { // until it waits for the turn elsewhere
		signals, err := h.Log.Turns().UpdateTurn(context.Background(), update)
		if err != nil {
			t.Fatal(err)
		}
		waiting = len(signals)
	}
	second := displace("two")
	if err := <-first; errors.Is(err, engine.ErrClosing) || !errors.Is(err, continuo.ErrBusy) {
		t.Errorf("the turn that was displaced was told: %v", err)
	}
	update.State = continuo.TurnVoid
	if _, err := h.Log.Turns().UpdateTurn(context.Background(), update); err != nil {
		t.Fatal(err)
	}
	close(h.model.open)
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// TestAClientThatHasTheAnswerMayContinue begins a turn as soon as the one before has shown its end.
func TestAClientThatHasTheAnswerMayContinue(t *testing.T) {
	h := newTurnHarness(t)
	close(h.model.open)
	r := request("s", "hello")
	r.OnBusy = engine.Reject
	for range 200 {
		chat, err := h.Turns.Chat(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		<-h.model.entered
		h.finish(chat)
	}
}
