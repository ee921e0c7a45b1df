package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// The example of the specification of Standard Webhooks.
func TestSign(t *testing.T) {
	got := ledger.Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// hooked is a log, and a receiver that accepts messages when it is up.
type hooked struct {
	t        *testing.T
	store    maintenance.Store
	log      *continuo.Log
	answers  chan int // the status of each answer
	received chan string
	waits    chan time.Duration // the pauses of the sender
	again    chan struct{}      // ends a pause
	hook     ledger.Webhook
}

func newHooked(t *testing.T) *hooked {
	h := &hooked{t: t, store: storetest.NewMemory(), answers: make(chan int, 100), received: make(chan string, 100), waits: make(chan time.Duration, 100), again: make(chan struct{}, 100)}
	h.log = continuo.NewLog(h.store, continuo.LogOptions{})
	if err := h.store.Create(t.Context(), continuo.Conversation{ID: "c", ProjectID: "p"}, nil); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id, at := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
		if r.Header.Get("Webhook-Signature") != ledger.Sign("secret", id, at, body) || at != "1773576000" {
			t.Errorf("message %s at %s is signed with %s", id, at, r.Header.Get("Webhook-Signature"))
		}
		var message struct{ Type, Data string }
		if err := json.Unmarshal(body, &message); err != nil {
			t.Error(err)
		}
		status := <-h.answers
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		h.received <- id + " " + message.Type + " " + message.Data
	}))
	t.Cleanup(server.Close)
	h.hook = ledger.Webhook{
		Name: "crm", URL: server.URL, Secret: "secret", Timeout: 5 * time.Minute, Now: func() time.Time { return now },
		Body: func(turn continuo.FinishedTurn) any { return turn.TurnID },
		Wait: func(ctx context.Context, d time.Duration) error {
			h.waits <- d
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-h.again:
				return nil
			}
		},
	}
	return h
}

// end ends a turn of the project p.
func (h *hooked) end(id string, state continuo.TurnState) { h.endIn("c", id, state) }

func (h *hooked) endIn(conversation, id string, state continuo.TurnState) {
	h.t.Helper()
	begun, err := storetest.BeginTurn(h.t.Context(), h.store, continuo.Turn{ID: id, ConversationID: conversation, Owner: "one"}, time.Hour)
	if err == nil {
		_, err = h.store.UpdateTurn(h.t.Context(), continuo.TurnUpdate{ConversationID: conversation, TurnID: id, Fence: begun.Fence, State: state})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// sends runs the sender until done, and returns what stops it.
func (h *hooked) sends() (stop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ledger.New(h.log).Send(ctx, h.hook) }()
	return func() {
		h.t.Helper()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			h.t.Errorf("the sender ended with %v", err)
		}
	}
}

func (h *hooked) expect(status int, want string) {
	h.t.Helper()
	h.answers <- status
	if got := <-h.received; got != want {
		h.t.Errorf("received %q, want %q", got, want)
	}
}

// A receiver that is down loses nothing, and another process goes on where the first one stopped.
func TestWebhooksLoseNothing(t *testing.T) {
	h := newHooked(t)
	if err := h.log.SetFeedPosition(t.Context(), ledger.WebhookPosition(h.hook.Name), 0); err != nil {
		t.Fatal(err)
	}
	h.end("t1", continuo.TurnFinished)
	h.end("t2", continuo.TurnFailed)
	h.end("t3", continuo.TurnFinished)
	for range 2 {
		h.again <- struct{}{}
	}
	stop := h.sends()
	h.expect(500, "msg_1 turn.finished t1")
	h.expect(302, "msg_1 turn.finished t1") // a redirect is no acceptance, and is not followed
	h.expect(204, "msg_1 turn.finished t1")
	h.expect(200, "msg_2 turn.failed t2")
	h.expect(429, "msg_3 turn.finished t3")
	for _, want := range []time.Duration{time.Second, 2 * time.Second, time.Second} {
		if got := <-h.waits; got != want {
			t.Errorf("it waits %s, want %s", got, want)
		}
	}
	stop() // while it waits, so that no message is on its way
	stop = h.sends()
	h.expect(200, "msg_3 turn.finished t3")
	stop()
}

// positioned is a store that reports the positions that are set.
type positioned struct {
	maintenance.Store
	set chan int64
}

func (p positioned) SetFeedPosition(ctx context.Context, name string, position int64) error {
	err := p.Store.SetFeedPosition(ctx, name, position)
	p.set <- position
	return err
}

// A new receiver gets what comes from now on, of the states that it wants.
func TestNewWebhooksBeginWithWhatComes(t *testing.T) {
	h := newHooked(t)
	h.hook.States = []continuo.TurnState{continuo.TurnFailed}
	h.end("old", continuo.TurnFailed)
	set := make(chan int64, 10)
	h.log = continuo.NewLog(positioned{h.store, set}, continuo.LogOptions{})
	end := h.sends()
	if at := <-set; at != 1 {
		t.Errorf("it begins at %d", at)
	}
	h.end("fine", continuo.TurnFinished)
	h.end("broken", continuo.TurnFailed)
	h.expect(200, "msg_3 turn.failed broken")
	end()
}

// A webhook of some projects gets no turns of others, and is past them when it has none left to get: they do not keep turns
// in the feed.
func TestWebhooksOfProjects(t *testing.T) {
	h := newHooked(t)
	if err := h.store.Create(t.Context(), continuo.Conversation{ID: "d", ProjectID: "q"}, nil); err != nil {
		t.Fatal(err)
	}
	set := make(chan int64, 10)
	h.log = continuo.NewLog(positioned{h.store, set}, continuo.LogOptions{})
	h.hook.Projects = []string{"q"}
	if err := h.store.SetFeedPosition(t.Context(), ledger.WebhookPosition("crm"), 0); err != nil {
		t.Fatal(err)
	}
	h.end("t1", continuo.TurnFinished)
	h.endIn("d", "t2", continuo.TurnFinished)
	h.end("t3", continuo.TurnFinished)
	h.end("t4", continuo.TurnFinished)
	stop := h.sends()
	h.expect(200, "msg_2 turn.finished t2")
	for _, want := range []int64{2, 4} {
		if at := <-set; at != want {
			t.Errorf("the position is %d, want %d", at, want)
		}
	}
	stop()
}

// Pruning keeps what a webhook has not accepted for the same time again. Then the webhook continues with what is kept, and says
// that it lost turns; a receiver of its own is not held up.
func TestPruningWaitsForWebhooks(t *testing.T) {
	h := newHooked(t)
	const keep = 24 * time.Hour
	behind, ahead := ledger.WebhookPosition("crm"), ledger.WebhookPosition("other")
	for _, id := range []string{"t1", "t2", "t3"} {
		h.end(id, continuo.TurnFinished)
	}
	for name, position := range map[string]int64{behind: 1, ahead: 3} {
		if err := h.log.SetFeedPosition(t.Context(), name, position); err != nil {
			t.Fatal(err)
		}
	}
	prune := func(after time.Duration, want int) {
		t.Helper()
		removed, err := ledger.New(h.log).Prune(t.Context(), time.Now().Add(after), keep, []string{behind, ahead, "webhook/new"})
		if err != nil || removed != want {
			t.Errorf("after %s it removes %d, want %d; %v", after, removed, want, err)
		}
	}
	prune(keep-time.Hour, 0)
	prune(keep+time.Hour, 1)
	prune(keep+time.Hour, 0)
	prune(2*keep+time.Hour, 2)
	h.end("t4", continuo.TurnFinished)
	var lost atomic.Int64
	h.hook.Lost = func() { lost.Add(1) }
	stop := h.sends()
	h.expect(200, "msg_4 turn.finished t4")
	stop()
	if lost.Load() != 1 {
		t.Errorf("it said %d times that it lost turns", lost.Load())
	}
}

// endless accepts each message, and never ends its answer; it notes when messages came.
type endless struct{ came chan time.Time }

func (e endless) RoundTrip(request *http.Request) (*http.Response, error) {
	e.came <- time.Now()
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(untilDone{request.Context()})}, nil
}

type untilDone struct{ ctx context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

// TestAnAnswerThatDoesNotEndHoldsNothing: its status says that the message was accepted.
func TestAnAnswerThatDoesNotEndHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		h := &hooked{t: t, store: store, log: continuo.NewLog(store, continuo.LogOptions{})}
		if err := store.Create(t.Context(), continuo.Conversation{ID: "c", ProjectID: "p"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := h.log.SetFeedPosition(t.Context(), ledger.WebhookPosition("crm"), 0); err != nil {
			t.Fatal(err)
		}
		came := make(chan time.Time, 10)
		h.hook = ledger.Webhook{
			Name: "crm", URL: "http://receiver.invalid", Secret: "secret", Client: &http.Client{Transport: endless{came}},
			Body: func(turn continuo.FinishedTurn) any { return turn.TurnID },
			Wait: func(context.Context, time.Duration) error { return errors.New("it was not accepted") },
		}
		h.end("t1", continuo.TurnFinished)
		h.end("t2", continuo.TurnFinished)
		stop := h.sends()
		first, second := <-came, <-came
		if took := second.Sub(first); took > time.Second {
			t.Errorf("the second message came %s after the first", took)
		}
		synctest.Wait()
		stop()
	})
}
