package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
)

// starts counts how often the program of an agent was started.
func (s *stagehand) starts(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.open {
		if one.name == name {
			n++
		}
	}
	return n
}

// Where another program has spoken for a role since, the session of this one is behind, though its id is the same: it
// is not prompted any more.
func TestASessionThatIsBehindIsNotPrompted(t *testing.T) {
	store, hand := storetest.NewMemory(), &stagehand{answer: once(3)}
	here, there := theatre(t, store, hand, newBand(t, trio), nil), theatre(t, store, hand, newBand(t, trio), nil)
	for turn, e := range []*engine.Engine{here, there, here} {
		say(t, e, fmt.Sprintf("Message %d.", turn))
		status := played(t, e)
		if n := hand.starts("loads"); n != turn+1 || status.Roles[0].Session != "session1" {
			t.Fatalf("after %d cycles the agent was started %d times, and its session is %s", turn+1, n, status.Roles[0].Session)
		}
	}
	witness(t, here, []string{"ann", "bob", "cid"})
}

// blind is a store that cannot be read from a moment on until something is written.
type blind struct {
	continuo.Store
	now atomic.Bool
}

func (b *blind) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	if b.now.Load() {
		return continuo.Conversation{}, fmt.Errorf("read: %w", continuo.ErrUnavailable)
	}
	return b.Store.Conversation(ctx, id)
}

func (b *blind) Append(ctx context.Context, batch continuo.Batch) error {
	err := b.Store.Append(ctx, batch)
	b.now.Store(false)
	return err
}

// An answer that comes while the log cannot be read stands alone, and is concluded when it can: once, and with the
// cursor that it moves.
func TestAnAnswerThatStandsAloneIsConcluded(t *testing.T) {
	hand, store := &stagehand{answer: once(2)}, &blind{Store: storetest.NewMemory()}
	said := make(chan struct{})
	hand.during = func(prompted) {
		<-said
		store.now.Store(true)
	}
	e := theatre(t, store, hand, newBand(t, trio), nil)
	begun := say(t, e, "Hello")
	close(said)
	if status := playedBlind(t, e, store, begun.ConversationID); status.State != continuo.RunFinished {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	alone := 0
	conversation, err := e.Log.Find(t.Context(), "default", "s")
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Role == continuo.Assistant && entry.RunEvent == nil {
			alone++
		}
	}
	if alone == 0 {
		t.Fatal("no answer stood alone: nothing was tried")
	}
	for _, role := range []string{"loads", "forgets"} {
		if n := len(hand.prompts(role)); n > 3 {
			t.Errorf("%s was asked %d times for two answers and a pass", role, n)
		}
	}
	witness(t, e, []string{"ann", "bob", "cid"})
}

// playedBlind is played where the store cannot be read now and then.
func playedBlind(t *testing.T, e *engine.Engine, store *blind, conversationID string) *engine.CrewStatus {
	t.Helper()
	listener := e.Log.Listen(conversationID)
	defer listener.Close()
	for t.Context().Err() == nil {
		status, err := e.CrewStatus(t.Context(), ofTrio)
		if err == nil && status.State != continuo.RunRunning && !store.now.Load() {
			return status
		}
		listener.Wait(t.Context(), listener.Changed(), time.Millisecond)
	}
	return nil
}

// A person who stops a role's turn stops the crew, and that is no failure of the role's: resumed, it is asked again.
func TestATurnThatAPersonStopsIsNoFailure(t *testing.T) {
	hand := &stagehand{answer: once(1)}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), func(o *engine.Options) {
		o.CrewDefaults.Failures, o.CrewDefaults.Cooldown = 1, time.Hour
	})
	asked := make(chan struct{}, 1)
	hand.hangs = func(p prompted) bool {
		if p.role == "forgets" {
			asked <- struct{}{}
		}
		return p.role == "forgets"
	}
	say(t, e, "Hello")
	<-asked
	status, err := e.CrewStatus(t.Context(), ofTrio)
	if err != nil || status.Speaking != "bob" {
		t.Fatalf("it is %+v, %v", status, err)
	}
	running, err := e.Log.Turns().Turn(t.Context(), status.ConversationID, status.TurnID)
	if err == nil {
		err = e.Cancel(t.Context(), running)
	}
	if err != nil {
		t.Fatal(err)
	}
	if status = played(t, e); status.State != continuo.RunStopped || status.Reason != "Bob was stopped" {
		t.Fatalf("it is %s: %s", status.State, status.Reason)
	}
	hand.mu.Lock()
	hand.hangs = nil
	hand.mu.Unlock()
	if _, err := e.ResumeCrew(t.Context(), ofTrio, true); err != nil {
		t.Fatal(err)
	}
	if status = played(t, e); status.State != continuo.RunFinished || status.Roles[1].Answers != 1 || !status.Roles[1].RestsUntil.IsZero() {
		t.Errorf("it is %s (%s): %+v", status.State, status.Reason, status.Roles[1])
	}
}

// Only failures in a row count: a role that answers now and then is never left alone.
func TestAnAnswerForgivesTheFailuresBeforeIt(t *testing.T) {
	asked, said := 0, once(20)
	hand := &stagehand{answer: func(p prompted) (string, error) {
		if p.role == "plain" {
			if asked++; asked%3 != 0 { // both attempts of a turn fail, and in the next it answers
				return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "out of order"}
			}
		}
		return said(p)
	}}
	e := theatre(t, storetest.NewMemory(), hand, newBand(t, trio), func(o *engine.Options) { o.CrewDefaults.Cooldown = time.Hour })
	say(t, e, "Hello")
	if status := played(t, e); status.Roles[2].Answers != 5 || strings.Contains(status.Roles[2].Failed, "in a row") || !status.Roles[2].RestsUntil.IsZero() {
		t.Errorf("Cid stands %+v", status.Roles[2])
	}
}
