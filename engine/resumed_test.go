package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// A turn that continues others reports what all of them had said, also where one of them said nothing.
func TestWhatAResumedTurnContinues(t *testing.T) {
	failure := *modeltest.Fails(continuo.ReasonUpstream).Err
	failure.Retryable = true
	pieces := []string{"The capital ", "", "of France ", "is Paris."}
	asks := 0
	m := &scriptedModel{answer: func(stepRequest) (string, error) {
		asks++
		if asks == len(pieces) {
			return pieces[asks-1], nil
		}
		return pieces[asks-1], &failure
	}}
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	r := request("s", "What is the capital of France?")
	r.Key, r.Detached = "k", true
	var got, turns []string
	for range pieces {
		chat, err := e.Turns.Chat(t.Context(), r)
		last := endOf(t, chat, err)
		resumed, err := e.Turns.Resumed(t.Context(), chat.Conversation.ID, last.TurnID)
		if err != nil {
			t.Fatal(err)
		}
		if resumed == nil {
			resumed = &engine.Resumed{}
		}
		got, turns = append(got, resumed.Response+"|"+last.Entry.Content.String()), append(turns, last.TurnID)
		if n := len(turns); n > 1 && resumed.TurnID != turns[n-2] {
			t.Errorf("try %d continues with %q", n, resumed.TurnID)
		}
	}
	if got, want := strings.Join(got, "\n"), "|The capital \nThe capital |\nThe capital |of France \nThe capital of France |is Paris."; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// failedTurn makes a conversation whose only turn was cancelled.
func (h *turnHarness) failedTurn(session string) continuo.Turn {
	h.t.Helper()
	chat := h.begin(request(session, "go"))
	failed, err := h.Turns.Get(context.Background(), chat.Conversation, chat.TurnID)
	if err == nil {
		err = h.Turns.Cancel(context.Background(), failed)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.finish(chat)
	if failed, err = h.Turns.Get(context.Background(), chat.Conversation, chat.TurnID); err != nil || failed.State != continuo.TurnFailed {
		h.t.Fatalf("%+v, %v", failed, err)
	}
	return failed
}

// TestARefusedResumeStopsNoTurn: the turn that runs is why there is nothing to resume.
func TestARefusedResumeStopsNoTurn(t *testing.T) {
	h := newTurnHarness(t)
	failed := h.failedTurn("s")
	next := h.begin(request("s", "something else"))
	_, err := h.Turns.Resume(context.Background(), engine.ResumeRequest{Turn: failed, OnBusy: engine.Interrupt, Detached: true})
	if !errors.Is(err, engine.ErrNotResumable) {
		t.Errorf("resumed: %v", err)
	}
	close(h.model.open)
	if last := h.finish(next); last.Kind != turn.Finished {
		t.Errorf("the turn that ran ended with %s", last.Kind)
	}
}

func TestOfTwoResumesOneIsRefused(t *testing.T) {
	h := newTurnHarness(t)
	failed := h.failedTurn("s")
	first, err := h.Turns.Resume(context.Background(), engine.ResumeRequest{Turn: failed, Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	second := make(chan error, 1)
	go func() {
		_, err := h.Turns.Resume(context.Background(), engine.ResumeRequest{Turn: failed, Detached: true})
		second <- err
	}()
	close(h.model.open)
	if last := h.finish(first); last.Kind != turn.Finished {
		t.Errorf("the first ended with %s", last.Kind)
	}
	if err := <-second; !errors.Is(err, engine.ErrNotResumable) {
		t.Errorf("the second: %v", err)
	}
}
