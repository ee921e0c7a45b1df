package engine_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
)

// failedTurn makes a conversation whose only turn was cancelled.
func (h *house) failedTurn(session string) continuo.Turn {
	h.t.Helper()
	chat := h.begin(request(session, "go"))
	failed, err := h.Turn(context.Background(), chat.Conversation, chat.TurnID)
	if err == nil {
		err = h.Cancel(context.Background(), failed)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.finish(chat)
	if failed, err = h.Turn(context.Background(), chat.Conversation, chat.TurnID); err != nil || failed.State != continuo.TurnFailed {
		h.t.Fatalf("%+v, %v", failed, err)
	}
	return failed
}

// TestAResumeThatIsRefusedStopsNobody: the turn that runs is why there is nothing to resume.
func TestAResumeThatIsRefusedStopsNobody(t *testing.T) {
	h := newHouse(t)
	failed := h.failedTurn("s")
	next := h.begin(request("s", "something else"))
	_, err := h.Resume(context.Background(), engine.ResumeRequest{Turn: failed, OnBusy: engine.Interrupt, Detached: true})
	if !errors.Is(err, engine.ErrNotResumable) {
		t.Errorf("resumed: %v", err)
	}
	close(h.model.open)
	if last := h.finish(next); last.Kind != turn.Finished {
		t.Errorf("the turn that ran ended with %s", last.Kind)
	}
}

func TestOfTwoResumesOneIsRefused(t *testing.T) {
	h := newHouse(t)
	failed := h.failedTurn("s")
	first, err := h.Resume(context.Background(), engine.ResumeRequest{Turn: failed, Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	second := make(chan error, 1)
	go func() {
		_, err := h.Resume(context.Background(), engine.ResumeRequest{Turn: failed, Detached: true})
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

// TestAKeyResumesOnce: a client that did not hear of its resume asks again, while it runs and afterwards.
func TestAKeyResumesOnce(t *testing.T) {
	h := newHouse(t)
	failed := h.failedTurn("s")
	resume := engine.ResumeRequest{Turn: failed, Key: "k", Detached: true}
	first, err := h.Resume(context.Background(), resume)
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	running, err := h.Resume(context.Background(), resume)
	if err != nil || running.TurnID != first.TurnID {
		t.Fatalf("while it runs: %+v, %v", running, err)
	}
	close(h.model.open)
	for _, chat := range []*engine.Chat{first, running} {
		if last := h.finish(chat); last.Kind != turn.Finished {
			t.Errorf("ended with %s", last.Kind)
		}
	}
	over, err := h.Resume(context.Background(), resume)
	if err != nil || over.TurnID != first.TurnID {
		t.Fatalf("afterwards: %+v, %v", over, err)
	}
	h.finish(over)
	if _, err := h.Chat(context.Background(), engine.ChatRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: "s", Message: continuo.Text("x"), Key: "k"}); !errors.Is(err, continuo.ErrKeyReused) {
		t.Errorf("a message under the key of a resume: %v", err)
	}
}

// TestAKeyWhoseTurnNeverBeganBeginsIt lets a process die between its lease and the user's entry, and the
// client try again elsewhere.
func TestAKeyWhoseTurnNeverBeganBeginsIt(t *testing.T) {
	h := newHouse(t)
	close(h.model.open)
	r := request("s", "hello")
	r.Key = "k"
	chat := h.begin(r) // only to learn the ids
	h.finish(chat)
	twin := newHouse(t)
	close(twin.model.open)
	conversation, err := twin.Log.Create(context.Background(), continuo.Conversation{ProjectID: "default", Key: "s"})
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Replace(chat.TurnID, strings.TrimPrefix(chat.Conversation.ID, "conv_"), strings.TrimPrefix(conversation.ID, "conv_"), 1)
	began := continuo.Turn{ID: id, ConversationID: conversation.ID, Owner: "dead"}
	if _, err := twin.Log.Turns().BeginTurn(context.Background(), began, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	retry, err := twin.Chat(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if retry.TurnID != began.ID {
		t.Fatalf("the retry is turn %s, not %s: the test is wrong", retry.TurnID, began.ID)
	}
	if last := twin.finish(retry); last.Kind != turn.Finished {
		t.Errorf("the retry ended with %s", last.Kind)
	}
}

// TestATurnThatIsDisplacedWhileItWaitsSaysSo has a turn wait for another process, and a third take its place.
func TestATurnThatIsDisplacedWhileItWaitsSaysSo(t *testing.T) {
	h := newHouse(t)
	conversation, err := h.Log.Create(context.Background(), continuo.Conversation{ProjectID: "default", Key: "s"})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := h.Log.Turns().BeginTurn(context.Background(), continuo.Turn{ID: "turn_other", ConversationID: conversation.ID, Owner: "other"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	displace := func(text string) <-chan error {
		ended := make(chan error, 1)
		r := request("s", text)
		r.OnBusy = engine.Interrupt
		go func() {
			chat, err := h.Chat(context.Background(), r)
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
	for told := 0; told == 0; runtime.Gosched() { // until it waits for the turn elsewhere
		signals, err := h.Log.Turns().UpdateTurn(context.Background(), update)
		if err != nil {
			t.Fatal(err)
		}
		told = len(signals)
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

// TestWhoHasTheAnswerMayGoOn begins a turn as soon as the one before has shown its end.
func TestWhoHasTheAnswerMayGoOn(t *testing.T) {
	h := newHouse(t)
	close(h.model.open)
	r := request("s", "hello")
	r.OnBusy = engine.Reject
	for range 200 {
		chat, err := h.Chat(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		<-h.model.entered
		h.finish(chat)
	}
}
