package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// impatient has short intervals, so that engines that share a file notice each other's changes soon.
var impatient = turn.KeeperOptions{Heartbeat: 5 * time.Millisecond, Poll: 2 * time.Millisecond, FlushAge: 2 * time.Millisecond}

// openFile opens a log's file as a process of its own would.
func openFile(t *testing.T, path string) maintenance.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// twoEngines makes two engines over one file, each as if in a process of its own.
func twoEngines(t *testing.T, options engine.Options) (a, b *engine.Engine) {
	t.Helper()
	return twoEnginesOver(t, filepath.Join(t.TempDir(), "log.db"), options)
}

// twoEnginesOver are two engines, each with a store of its own over one file.
func twoEnginesOver(t *testing.T, path string, options engine.Options) (a, b *engine.Engine) {
	t.Helper()
	options.Turns = impatient
	return engineOver(t, openFile(t, path), options), engineOver(t, openFile(t, path), options)
}

// background asks without waiting for the answer.
func background(t *testing.T, handler http.Handler, body string, header ...string) <-chan *reply {
	answer := make(chan *reply, 1)
	go func() { answer <- ask(t, handler, "POST", "/chat", body, header...) }()
	return answer
}

// newestTurn finds the newest turn of a conversation through the API.
func newestTurn(t *testing.T, handler http.Handler, session string) continuo.Turn {
	t.Helper()
	var page struct{ Data []continuo.Turn }
	if ask(t, handler, "GET", "/api/conversations/"+session+"/turns?limit=1", "").into(200, &page); len(page.Data) != 1 {
		t.Fatalf("%s has no turn", session)
	}
	return page.Data[0]
}

// turnPath is the path of a conversation's turn.
func turnPath(session, id string) string { return "/api/conversations/" + session + "/turns/" + id }

// listener reads a stream of events over the network.
type listener struct {
	*http.Response
	events *sse.Reader
}

func listen(t *testing.T, request *http.Request) *listener {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(response.Body)
		t.Fatalf("status %d: %s", response.StatusCode, body)
	}
	return &listener{response, sse.NewReader(response.Body, 0)}
}

// until reads events up to the first one of a kind.
func (l *listener) until(t *testing.T, kind string) (events []sse.Event) {
	t.Helper()
	for {
		event, err := l.events.Next()
		if err != nil {
			t.Fatalf("no %s among %d events: %v", kind, len(events), err)
		}
		event.Data = bytes.Clone(event.Data)
		if events = append(events, event); event.Type == kind {
			return events
		}
	}
}

func newRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	return request
}

func sameEvents(a, b []sse.Event) bool {
	return slices.EqualFunc(a, b, func(a, b sse.Event) bool { return a.ID == b.ID && a.Type == b.Type && bytes.Equal(a.Data, b.Data) })
}

// A client that was disconnected must get the rest of its turn, completely and once, even while the turn is silent, and
// 204 when there is no more.
func TestClientReconnects(t *testing.T) {
	gate := newGate()
	handler := New(newEngine(t, withModel(gate.model())), Options{})
	remote := httptest.NewServer(handler)
	defer remote.Close()
	first := listen(t, newRequest(t, "POST", remote.URL+"/chat", `{"message": "tell", "session_id": "story", "stream": true}`))
	seen := first.until(t, "delta")
	within(t, "the first word", gate.reached)
	if err := first.Body.Close(); err != nil {
		t.Fatal(err)
	}
	id := newestTurn(t, handler, "story").ID

	again := newRequest(t, "GET", remote.URL+turnPath("story", id)+"/events?after=1", "")
	again.Header.Set("Last-Event-ID", seen[len(seen)-1].ID)
	second := listen(t, again) // answered although nothing new has happened
	close(gate.open)
	seen = append(seen, second.until(t, "done")...)
	replayed := readEvents(t, ask(t, handler, "GET", turnPath("story", id)+"/events", ""))
	if !sameEvents(seen, replayed) {
		t.Errorf("the client saw\n%+v\nthe turn's events are\n%+v", seen, replayed)
	}
	if !strings.Contains(string(seen[len(seen)-1].Data), `"response":"Once upon a time"`) {
		t.Errorf("the last event is %s", seen[len(seen)-1].Data)
	}
	answer := ask(t, handler, "GET", turnPath("story", id)+"/events", "", "Last-Event-ID", seen[len(seen)-1].ID)
	if answer.status != http.StatusNoContent {
		t.Errorf("after the last event the status is %d: %s", answer.status, answer.body)
	}
}

// A silent turn that is followed must carry comments, too, and leave its connection usable.
func TestFollowedTurnKeepsAlive(t *testing.T) {
	gate := newGate()
	handler := New(newEngine(t, withModel(gate.model())), Options{KeepAlive: time.Millisecond})
	remote := httptest.NewServer(handler)
	defer remote.Close()
	answer := background(t, handler, `{"message": "tell", "session_id": "s"}`)
	within(t, "the first word", gate.reached)
	url := remote.URL + turnPath("s", newestTurn(t, handler, "s").ID) + "/events"
	for _, open := range []bool{true, false} { // once while the turn runs, once when it is over
		response, err := remote.Client().Get(url)
		if err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		if open {
			for comments := 0; comments < 3; { // the model is let on by the comments alone
				n, err := io.CopyN(&whole, response.Body, 1)
				if err != nil || n != 1 {
					t.Fatal(err)
				}
				comments = strings.Count(whole.String(), ": keep-alive\n")
			}
			close(gate.open)
		}
		if _, err := io.Copy(&whole, response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		events := readEvents(t, &reply{t, 200, response.Header, whole.Bytes()})
		if last := events[len(events)-1]; last.Type != "done" {
			t.Errorf("the stream ends with %s", last.Type)
		}
	}
	if reply := within(t, "the answer", answer); reply.status != 200 {
		t.Errorf("status %d: %s", reply.status, reply.body)
	}
}

// A turn is its conversation's: under another one's name it is not found.
func TestTurnOfAnotherConversation(t *testing.T) {
	handler := newServer(t)
	one := sendMessage(t, handler, "one", "hello")
	sendMessage(t, handler, "two", "hello")
	for _, call := range []string{"GET ", "GET /events", "POST /cancel", "POST /resume"} {
		method, rest, _ := strings.Cut(call, " ")
		ask(t, handler, method, turnPath("two", one.TurnID)+rest, "").failed(404, "not_found", "")
	}
	ask(t, handler, "POST", turnPath("two", one.TurnID)+"/approvals", `{"tool_call_id": "c", "decision": "deny"}`).failed(404, "not_found", "")
}

// What a fallback says is preceded by an event that tells of it, live and replayed.
func TestStreamReportsAFallback(t *testing.T) {
	broken := &fakeModel{"gpt-4o", func(context.Context, []shownMessage, func(model.Delta) bool) error {
		return &model.Error{Reason: continuo.ReasonNetwork, Message: "nobody answers"}
	}}
	handler := New(newEngine(t, engine.Options{
		Models: map[string]engine.Upstream{
			"first": {Model: broken, Fallback: "second"}, "second": {Model: &fakeModel{"gpt-4o-mini", obedient}},
		}, Default: "first",
	}), Options{})
	events := readEvents(t, ask(t, handler, "POST", "/chat", `{"message": "hello", "session_id": "s", "stream": true}`))
	var kinds []string
	for _, event := range events {
		kinds = append(kinds, event.Type)
	}
	if want := []string{"turn", "context", "fallback", "context", "delta", "delta", "done"}; !slices.Equal(kinds, want) {
		t.Errorf("the events are %v, want %v", kinds, want)
	}
	if want := `{"model":"gpt-4o","reason":"network","message":"nobody answers"}`; string(events[2].Data) != want {
		t.Errorf("the fallback's event is %s, want %s", events[2].Data, want)
	}
	if again := readEvents(t, ask(t, handler, "GET", turnPath("s", newestTurn(t, handler, "s").ID)+"/events", "")); !sameEvents(again, events) {
		t.Errorf("replayed: %+v", again)
	}
}

// A turn can be stopped from another process.
func TestCancelFromAnotherEngine(t *testing.T) {
	gate := newGate()
	a, b := twoEngines(t, withModel(gate.model()))
	here, there := New(a, Options{}), New(b, Options{})
	answer := background(t, here, `{"message": "tell", "session_id": "s"}`)
	within(t, "the first word", gate.reached)
	id := newestTurn(t, there, "s").ID
	var before continuo.Turn
	if ask(t, there, "POST", turnPath("s", id)+"/cancel", "").into(202, &before); before.State != continuo.TurnRunning {
		t.Errorf("the turn was %+v", before)
	}
	stopped := within(t, "the turn's end", answer).failed(409, "llm_error", "")
	if stopped.Error.Reason != "cancelled" || stopped.Response != "Once " {
		t.Errorf("got %+v", stopped)
	}
	var ended continuo.Turn
	if ask(t, there, "POST", turnPath("s", id)+"/cancel", "").into(200, &ended); ended.State != continuo.TurnFailed || ended.Reason != continuo.ReasonCancelled {
		t.Errorf("the turn is %+v", ended)
	}
}

// A call that waits in one process can be decided on in another.
func TestApprovalFromAnotherEngine(t *testing.T) {
	a, b := twoEngines(t, engine.Options{Tools: tool.Set{upper{}}, Policy: tool.Policy{Otherwise: tool.Ask}})
	remote := httptest.NewServer(New(a, Options{}))
	defer remote.Close()
	there := New(b, Options{})
	stream := listen(t, newRequest(t, "POST", remote.URL+"/chat", `{"message": "use the tool: ab and cd", "session_id": "s", "stream": true}`))
	stream.until(t, "approval")
	stream.until(t, "approval")
	id := newestTurn(t, there, "s").ID
	var shown struct {
		WaitingFor []api.ToolCallEvent `json:"waiting_for"`
	}
	// The other process sees them as soon as they are stored; its stream says when.
	following := httptest.NewServer(there)
	defer following.Close()
	other := listen(t, newRequest(t, "GET", following.URL+turnPath("s", id)+"/events", ""))
	other.until(t, "approval")
	other.until(t, "approval")
	if ask(t, there, "GET", turnPath("s", id), "").into(200, &shown); len(shown.WaitingFor) != 2 || shown.WaitingFor[0].ExpiresAt.IsZero() {
		t.Fatalf("waiting are %+v", shown.WaitingFor)
	}
	ask(t, there, "POST", turnPath("s", id)+"/approvals", `{"tool_call_id": "call_1", "decision": "deny", "reason": "no"}`).into(202, &shown)
	ask(t, there, "POST", turnPath("s", id)+"/approvals", `{"tool_call_id": "call_0", "decision": "allow"}`).into(202, &shown)
	stream.until(t, "done")
	entries := entriesOf(t, there, "s")
	if checkLog(t, entries); entries[2].Content.String() != "AB" || !strings.Contains(entries[3].Content.String(), "not allowed: no") {
		t.Errorf("the results are %q and %q", entries[2].Content.String(), entries[3].Content.String())
	}
}

// busyNotifier is a store that reports when a turn was refused because another one runs.
type busyNotifier struct {
	maintenance.Store
	busy chan struct{}
}

func (s *busyNotifier) Append(ctx context.Context, batch continuo.Batch) error {
	err := s.Store.Append(ctx, batch)
	if errors.Is(err, continuo.ErrBusy) {
		select {
		case s.busy <- struct{}{}:
		default:
		}
	}
	return err
}

// What on_busy says must hold between two processes on one file.
func TestBusyAcrossEngines(t *testing.T) {
	for _, policy := range []engine.OnBusy{engine.Wait, engine.Reject, engine.Interrupt} {
		t.Run(string(policy), func(t *testing.T) {
			path, gate := filepath.Join(t.TempDir(), "log.db"), newGate()
			options := withModel(gate.model())
			options.Turns = impatient
			other := &busyNotifier{openFile(t, path), make(chan struct{}, 1)}
			here, there := New(engineOver(t, openFile(t, path), options), Options{}), New(engineOver(t, other, options), Options{})
			first := background(t, here, `{"message": "one", "session_id": "s"}`)
			within(t, "the first turn", gate.reached)
			second := background(t, there, fmt.Sprintf(`{"message": "two", "session_id": "s", "on_busy": %q}`, policy))
			within(t, "the second turn's being refused", other.busy)
			var answer chatReply
			switch policy {
			case engine.Wait:
				if entries := entriesOf(t, here, "s"); len(entries) != 1 {
					t.Errorf("the log has %d entries while the first turn runs", len(entries))
				}
				close(gate.open)
				within(t, "the first answer", first).into(200, &answer)
				within(t, "the second answer", second).into(200, &answer)
			case engine.Reject:
				within(t, "the refusal", second).failed(409, "conversation_busy", "session_id")
				close(gate.open)
				within(t, "the first answer", first).into(200, &answer)
			case engine.Interrupt:
				if stopped := within(t, "the first turn's end", first).failed(409, "llm_error", ""); stopped.Error.Reason != "interrupted" {
					t.Errorf("the first turn said %+v", stopped)
				}
				within(t, "the second turn", gate.reached)
				close(gate.open)
				within(t, "the second answer", second).into(200, &answer)
			}
			entries := entriesOf(t, here, "s")
			want := 4
			if policy == engine.Reject {
				want = 2
			}
			if checkLog(t, entries); len(entries) != want || answer.Response != "Once upon a time" {
				t.Errorf("%d entries, want %d; the last answer is %q", len(entries), want, answer.Response)
			}
		})
	}
}

// repeated is the answer to a request that is made again with its key.
func repeated(t *testing.T, handler http.Handler, body, key string) (answer map[string]any) {
	t.Helper()
	ask(t, handler, "POST", "/chat", body, "Idempotency-Key", key).into(200, &answer)
	return answer
}

// One key is one turn, however many ask at once, on whichever process, and however late.
func TestOneKeyIsOneTurnAcrossEngines(t *testing.T) {
	var asked atomic.Int32
	file := filepath.Join(t.TempDir(), "log.db")
	a, b := twoEnginesOver(t, file, withModel(&fakeModel{"gpt-4o", func(_ context.Context, _ []shownMessage, yield func(model.Delta) bool) error {
		yield(model.Delta{Text: fmt.Sprintf("answer %d", asked.Add(1))})
		return nil
	}}))
	handlers := []http.Handler{New(a, Options{}), New(b, Options{})}
	policies := []engine.OnBusy{engine.Wait, engine.Interrupt, engine.Reject}
	const message = `{"message": "hello", "session_id": "s", "on_busy": %q}`
	answers := make([]*reply, 24)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			answers[i] = ask(t, handlers[i%2], "POST", "/chat", fmt.Sprintf(message, policies[i%3]), "Idempotency-Key", "k")
		})
	}
	group.Wait()
	for _, answer := range answers {
		if answer.status != 200 || !bytes.Equal(answer.body, answers[0].body) {
			t.Errorf("status %d: %s\nthe first was %s", answer.status, answer.body, answers[0].body)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the model was asked %d times", asked.Load())
	}
	for _, handler := range handlers {
		ask(t, handler, "POST", "/chat", `{"message": "hallo", "session_id": "s"}`, "Idempotency-Key", "k").failed(409, "idempotency_conflict", "Idempotency-Key")
	}
	live := readEvents(t, ask(t, handlers[0], "POST", "/chat", `{"message": "hello", "session_id": "s", "stream": true}`, "Idempotency-Key", "k"))

	third := openFile(t, file)
	defer third.Close() //nolint:errcheck // the test only deletes with it
	if pruned, err := third.PruneTurnEvents(t.Context(), time.Now().Add(time.Hour), 100); err != nil || pruned != 1 {
		t.Fatalf("pruned %d, %v", pruned, err)
	}
	var before map[string]any
	answers[0].into(200, &before)
	before["context"] = nil // it went with the events
	for _, handler := range handlers {
		after := repeated(t, handler, fmt.Sprintf(message, "wait"), "k")
		for late := time.Now().Add(5 * time.Minute); after["context"] != nil && time.Now().Before(late); { // the engine that ran the turn has not put it away
			after = repeated(t, handler, fmt.Sprintf(message, "wait"), "k")
		}
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("without its events the turn's answer is %v, want %v", after, before)
		}
	}
	path := turnPath("s", newestTurn(t, handlers[0], "s").ID) + "/events"
	kept := readEvents(t, ask(t, handlers[0], "GET", path, ""))
	if len(kept) != 2 || kept[1].Type != "done" {
		t.Errorf("what is left of the events is %+v", kept)
	}
	// A client that saw the end, before or after the pruning, gets 204.
	late := ask(t, handlers[0], "GET", path, "", "Last-Event-ID", live[len(live)-1].ID)
	events, err := allEvents(bytes.NewReader(late.body))
	if err != nil || len(events) != 1 || events[0].Type != "done" {
		t.Errorf("%v: %s", err, late.body)
	}
	if answer := ask(t, handlers[0], "GET", path, "", "Last-Event-ID", kept[1].ID); answer.status != http.StatusNoContent {
		t.Errorf("status %d: %s", answer.status, answer.body)
	}
}
