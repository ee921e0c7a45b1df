package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// failingModel is a scriptedModel whose first answers fail, with a retryable error or another one.
func failingModel(times int64, retryable bool) (*scriptedModel, *atomic.Int64) {
	var asks atomic.Int64
	failure := *modeltest.Fails(continuo.ReasonUpstream).Err
	failure.Retryable = retryable
	return &scriptedModel{answer: func(stepRequest) (string, error) {
		if asks.Add(1) <= times {
			return "", &failure
		}
		return "It works.", nil
	}}, &asks
}

// endOf is the last event of a chat.
func endOf(t *testing.T, chat *engine.Chat, err error) (last turn.Event) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return last
	}
	for event, err := range chat.Events {
		if err != nil {
			t.Error(err)
		}
		last = event
	}
	return last
}

// TestTheSameRequestContinuesAfterAFailure: a request with a key, or made again by an official library, continues with its
// turn where that failed for a reason that may have passed; many at once do so once, and all get the answer.
func TestTheSameRequestContinuesAfterAFailure(t *testing.T) {
	first, again := 0, 1
	for name, ways := range map[string][2]func(*engine.ChatRequest){
		"a key":     {func(r *engine.ChatRequest) { r.Key = "k" }, func(r *engine.ChatRequest) { r.Key = "k" }},
		"a library": {func(r *engine.ChatRequest) { r.Retry = &first }, func(r *engine.ChatRequest) { r.Retry = &again }},
	} {
		t.Run(name, func(t *testing.T) {
			m, asks := failingModel(2, true)
			e := newRunEngine(t, storetest.NewMemory(), m, nil)
			ask := func(way func(*engine.ChatRequest)) turn.Event {
				r := request("s", "Hello")
				r.Detached = true
				way(&r)
				chat, err := e.Turns.Chat(t.Context(), r)
				return endOf(t, chat, err)
			}
			for n := range 2 {
				if got := ask(ways[min(n, 1)]); got.Kind != turn.Failed {
					t.Fatalf("try %d: %+v", n, got)
				}
			}
			var all sync.WaitGroup
			var ids sync.Map
			for range 8 {
				all.Go(func() {
					got := ask(ways[1])
					ids.Store(got.TurnID, true)
					if got.Kind != turn.Finished || got.Entry.Content.String() != "It works." {
						t.Errorf("got %+v", got)
					}
				})
			}
			all.Wait()
			turns := 0
			ids.Range(func(any, any) bool { turns++; return true })
			conversation, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s")
			if err != nil {
				t.Fatal(err)
			}
			if log := outputOf(t, e, conversation.ID); asks.Load() != 3 || turns != 1 || strings.Count(log, "Hello") != 1 {
				t.Errorf("%d requests, %d turns, the log says\n%s", asks.Load(), turns, log)
			}
		})
	}
}

// hookedStore is a store that calls a function once before turns are listed.
type hookedStore struct {
	continuo.Store
	do atomic.Pointer[func()]
}

func (b *hookedStore) Turns(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	if do := b.do.Swap(nil); do != nil {
		(*do)()
	}
	return b.Store.Turns(ctx, query)
}

// A library's retry finds its request also where another retry has continued it since the conversation was read.
func TestARetryThatAnotherRetryOvertakes(t *testing.T) {
	m, asks := failingModel(1, true)
	store := &hookedStore{Store: storetest.NewMemory()}
	e := newRunEngine(t, store, m, nil)
	ask := func(retry int) turn.Event {
		r := request("s", "Hello")
		r.Detached, r.Retry = true, &retry
		chat, err := e.Turns.Chat(t.Context(), r)
		return endOf(t, chat, err)
	}
	ask(0)
	var first turn.Event
	overtakes := func() { first = ask(1) }
	store.do.Store(&overtakes)
	if second := ask(1); first.Kind != turn.Finished || second.TurnID != first.TurnID || asks.Load() != 2 {
		t.Errorf("%d requests; the first retry got %+v, the second %+v", asks.Load(), first, second)
	}
}

// refusingStore is a store that holds the next beginning of a turn once it is armed, and then refuses it.
type refusingStore struct {
	continuo.Store
	armed         atomic.Bool
	reached, open chan struct{}
}

func (s *refusingStore) Append(ctx context.Context, batch continuo.Batch) error {
	if batch.Begin != nil && s.armed.CompareAndSwap(true, false) {
		close(s.reached)
		<-s.open
		return continuo.ErrUnavailable
	}
	return s.Store.Append(ctx, batch)
}

// A library's retry that finds another one, which is about to continue the failed turn, continues it too where that one does not
// come to it: the message is not said again.
func TestARetryBehindOneThatDoesNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, asks := failingModel(1, true)
		store := &refusingStore{Store: storetest.NewMemory(), reached: make(chan struct{}), open: make(chan struct{})}
		e := newRunEngine(t, store, m, nil)
		ask := func(retry int) (*engine.Chat, error) {
			r := request("s", "Hello")
			r.Retry = &retry
			return e.Turns.Chat(context.WithoutCancel(t.Context()), r)
		}
		chat, err := ask(0)
		failed := endOf(t, chat, err)
		store.armed.Store(true)
		refused, answered := make(chan error, 1), make(chan turn.Event, 1)
		go func() {
			_, err := ask(1)
			refused <- err
		}()
		<-store.reached
		go func() {
			chat, err := ask(2)
			answered <- endOf(t, chat, err)
		}()
		synctest.Wait()
		close(store.open)
		if err := <-refused; !errors.Is(err, continuo.ErrUnavailable) {
			t.Errorf("the first retry: %v", err)
		}
		answer := <-answered
		record, err := e.Turns.Get(t.Context(), chat.Conversation, answer.TurnID)
		if err != nil || answer.Kind != turn.Finished || record.Resumes != failed.TurnID {
			t.Errorf("the second retry got %+v of %+v, %v", answer, record, err)
		}
		if log := outputOf(t, e, chat.Conversation.ID); asks.Load() != 2 || strings.Count(log, "Hello") != 1 {
			t.Errorf("%d requests, the log says\n%s", asks.Load(), log)
		}
	})
}

// TestWhatTheSameRequestIsGivenAgain: a failure that does not pass, one after which the conversation has continued, and
// an answer are given again as they are.
func TestWhatTheSameRequestIsGivenAgain(t *testing.T) {
	for name, test := range map[string]struct {
		times     int64
		retryable bool
		between   string // another message
		asks      int64
		kind      turn.Kind
	}{
		"it does not pass":       {1, false, "", 1, turn.Failed},
		"it was continued since": {1, true, "And now?", 2, turn.Failed},
		"an answer":              {0, true, "", 1, turn.Finished},
	} {
		t.Run(name, func(t *testing.T) {
			m, asks := failingModel(test.times, test.retryable)
			e := newRunEngine(t, storetest.NewMemory(), m, nil)
			r := request("s", "Hello")
			r.Key, r.Detached = "k", true
			chat, err := e.Turns.Chat(t.Context(), r)
			before := endOf(t, chat, err)
			if test.between != "" {
				chat, err = e.Turns.Chat(t.Context(), request("s", test.between))
				endOf(t, chat, err)
			}
			chat, err = e.Turns.Chat(t.Context(), r)
			if got := endOf(t, chat, err); got.Kind != test.kind || got.TurnID != before.TurnID || asks.Load() != test.asks {
				t.Errorf("%d requests, got %+v", asks.Load(), got)
			}
			r.Message = continuo.Text("Something else")
			if _, err := e.Turns.Chat(t.Context(), r); !errors.Is(err, continuo.ErrKeyReused) {
				t.Errorf("something else with the key: %v", err)
			}
		})
	}
}

// A library's retry of a message is no retry of an equal one, behind which something else was said.
func TestALibrarysRetryIsOfTheSameHead(t *testing.T) {
	m, asks := failingModel(0, true)
	e := newRunEngine(t, storetest.NewMemory(), m, nil)
	ask := func(text string, retry int) {
		r := request("s", text)
		r.Retry = &retry
		chat, err := e.Turns.Chat(t.Context(), r)
		endOf(t, chat, err)
	}
	ask("continue", 0)
	ask("and?", 0)
	ask("continue", 1) // the first try never came here
	ask("continue", 2)
	ask("continue", 0) // a person says it again
	if asks.Load() != 4 {
		t.Errorf("%d requests", asks.Load())
	}
}

func TestARetryDoesNotSwitchTheMode(t *testing.T) {
	for name, c := range map[string]struct{ asked, since continuo.Mode }{
		"of a turn in the mode chat":  {continuo.ModeChat, continuo.ModeAgent},
		"of a turn in the mode agent": {continuo.ModeAgent, continuo.ModeChat},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTurnHarness(t)
			close(h.model.open)
			r := request("s", "a")
			r.Key, r.Mode = "k", c.asked
			begun := h.begin(r)
			h.finish(begun)
			if _, err := h.Log.Update(t.Context(), begun.Conversation.ID, continuo.ConversationChange{ActiveMode: &c.since}); err != nil {
				t.Fatal(err)
			}
			again, err := h.Turns.Chat(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			h.finish(again)
			if again.TurnID != begun.TurnID {
				t.Errorf("the retry is turn %s, want %s", again.TurnID, begun.TurnID)
			}
			now, err := h.Log.Conversation(t.Context(), begun.Conversation.ID)
			if err != nil || now.ActiveMode != c.since {
				t.Errorf("the retry made the mode %s (%v), want %s", now.ActiveMode, err, c.since)
			}
		})
	}
}

// TestAKeyResumesOnce: a client that did not hear of its resume asks again, while it runs and afterwards.
func TestAKeyResumesOnce(t *testing.T) {
	h := newTurnHarness(t)
	failed := h.failedTurn("s")
	resume := engine.ResumeRequest{Turn: failed, Key: "k", Detached: true}
	first, err := h.Turns.Resume(context.Background(), resume)
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	running, err := h.Turns.Resume(context.Background(), resume)
	if err != nil || running.TurnID != first.TurnID {
		t.Fatalf("while it runs: %+v, %v", running, err)
	}
	close(h.model.open)
	for _, chat := range []*engine.Chat{first, running} {
		if last := h.finish(chat); last.Kind != turn.Finished {
			t.Errorf("ended with %s", last.Kind)
		}
	}
	over, err := h.Turns.Resume(context.Background(), resume)
	if err != nil || over.TurnID != first.TurnID {
		t.Fatalf("afterwards: %+v, %v", over, err)
	}
	h.finish(over)
	if _, err := h.Turns.Chat(context.Background(), engine.ChatRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: "s", Message: continuo.Text("x"), Key: "k"}); !errors.Is(err, continuo.ErrKeyReused) {
		t.Errorf("a message under the key of a resume: %v", err)
	}
}

// TestAKeyWhoseTurnNeverBeganBeginsIt lets a process die between its lease and the user's entry, and the
// client try again elsewhere.
func TestAKeyWhoseTurnNeverBeganBeginsIt(t *testing.T) {
	h := newTurnHarness(t)
	close(h.model.open)
	r := request("s", "hello")
	r.Key = "k"
	chat := h.begin(r) // only to learn the ids
	h.finish(chat)
	twin := newTurnHarness(t)
	close(twin.model.open)
	conversation, err := twin.Log.Create(context.Background(), continuo.Conversation{ProjectID: "default", Key: "s"})
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Replace(chat.TurnID, strings.TrimPrefix(chat.Conversation.ID, "conv_"), strings.TrimPrefix(conversation.ID, "conv_"), 1)
	began := continuo.Turn{ID: id, ConversationID: conversation.ID, Owner: "dead"}
	if _, err := storetest.BeginTurn(context.Background(), twin.Log.Turns().(continuo.Store), began, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	retry, err := twin.Turns.Chat(context.Background(), r)
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
