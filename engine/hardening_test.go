package engine_test

import (
	"context"
	"errors"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

func TestARefusedTurnChangesNothing(t *testing.T) {
	h := newHouse(t)
	h.begin(request("s", "a"))
	r := request("s", "b")
	r.OnBusy, r.Mode = engine.Reject, continuo.ModeAgent
	if _, err := h.Chat(context.Background(), r); !errors.Is(err, continuo.ErrBusy) {
		t.Fatal(err)
	}
	c, _ := h.Log.Find(context.Background(), continuo.Scope{ProjectID: "default"}, "s")
	if c.ActiveMode != continuo.ModeChat {
		t.Errorf("the refused turn made the mode %s", c.ActiveMode)
	}
	close(h.model.open)
}

func TestRetryAfterAModeSwitch(t *testing.T) {
	h := newHouse(t)
	close(h.model.open)
	r := request("s", "a")
	r.Key = "k"
	h.finish(h.begin(r))
	mode := continuo.ModeAgent
	c, _ := h.Log.Find(context.Background(), continuo.Scope{ProjectID: "default"}, "s")
	if _, err := h.Log.Update(context.Background(), c.ID, continuo.ConversationChange{ActiveMode: &mode}); err != nil {
		t.Fatal(err)
	}
	chat, err := h.Chat(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range chat.Events {
		if err != nil {
			t.Errorf("the retry: %v", err)
		}
		_ = event
	}
	// and a replay must not switch the mode back
	r2 := request("t", "a")
	r2.Key, r2.Mode = "k", continuo.ModeAgent
	h.finish(h.begin(r2))
	c, _ = h.Log.Find(context.Background(), continuo.Scope{ProjectID: "default"}, "t")
	chatMode := continuo.ModeChat
	_, _ = h.Log.Update(context.Background(), c.ID, continuo.ConversationChange{ActiveMode: &chatMode})
	chat, _ = h.Chat(context.Background(), r2)
	for range chat.Events {
	}
	c, _ = h.Log.Find(context.Background(), continuo.Scope{ProjectID: "default"}, "t")
	if c.ActiveMode != continuo.ModeChat {
		t.Errorf("the retry of an old turn switched the mode to %s", c.ActiveMode)
	}
}
