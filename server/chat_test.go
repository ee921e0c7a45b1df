package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/openai"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
)

// upstream is a server that speaks OpenAI's chat completions and remembers what it was sent.
type upstream struct {
	mu     sync.Mutex
	bodies [][]byte
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer sk-secret" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	u.mu.Lock()
	u.bodies = append(u.bodies, body)
	n := len(u.bodies)
	u.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"answer <%d>"},"finish_reason":null}]}`+"\n\n", n)
	fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n")
	fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}`+"\n\ndata: [DONE]\n\n")
}

// The second request of a session must have the first exchange in it, as the very bytes that the first
// request began with, and the server must be able to show exactly what it sent.
func TestChatSendsTheHistoryUpstream(t *testing.T) {
	provider := &upstream{}
	remote := httptest.NewServer(provider)
	defer remote.Close()
	client := openai.New(openai.Options{BaseURL: remote.URL + "/v1", APIKey: "sk-secret", Name: "gpt-4o"})
	handler := New(newEngine(t, withModel(client)), Options{})

	first := sendMessage(t, handler, "trip", "I am called Ada & <Bob>.")
	second := sendMessage(t, handler, "trip", "What am I called?")
	if first.Response != "answer <1>" || second.Response != "answer <2>" || first.ConversationID != second.ConversationID || second.SessionID != "trip" {
		t.Fatalf("got %+v and %+v", first, second)
	}
	want := `{"role":"user","content":"I am called Ada & <Bob>."},{"role":"assistant","content":"answer <1>"},{"role":"user","content":"What am I called?"}]}`
	if len(provider.bodies) != 2 || !bytes.HasSuffix(provider.bodies[1], []byte(want)) {
		t.Fatalf("the second request does not end with %s:\n%s", want, provider.bodies[1])
	}
	if before := bytes.TrimSuffix(provider.bodies[0], []byte("]}")); !bytes.HasPrefix(provider.bodies[1], before) {
		t.Errorf("the second request does not extend the first:\n%s\n%s", provider.bodies[0], provider.bodies[1])
	}
	for i, sent := range provider.bodies {
		var shown struct {
			Body json.RawMessage
			Same bool
		}
		ask(t, handler, "GET", fmt.Sprintf("/api/conversations/trip/entries/%d/request", 2*i+2), "").into(200, &shown)
		if !shown.Same || !bytes.Equal(shown.Body, sent) {
			t.Errorf("request %d: shown\n%s\nsent\n%s", i+1, shown.Body, sent)
		}
	}
}

func TestChatOverAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := New(engineOver(t, store, engine.Options{}), Options{})
	sendMessage(t, handler, "trip", "one")
	again, err := sqlite.Open(t.Context(), path, sqlite.Options{}) // another process, or the next one
	if err != nil {
		t.Fatal(err)
	}
	other := New(engineOver(t, again, engine.Options{}), Options{})
	if answer := sendMessage(t, other, "trip", "two"); answer.Context.Entries != 3 {
		t.Errorf("the second answer's request saw %d entries, want 3", answer.Context.Entries)
	}
}

// Many at once on one session: each gets its own answer, and the log stays one that could be shown.
func TestParallelChats(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := New(engineOver(t, store, engine.Options{}), Options{})
	const n = 32
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			message := fmt.Sprintf("message %d", i)
			if answer := sendMessage(t, handler, "busy", message); !strings.Contains(answer.Response, `"`+message+`"`) {
				t.Errorf("the answer to %q is %q", message, answer.Response)
			}
		})
	}
	group.Wait()
	entries := entriesOf(t, handler, "busy")
	checkLog(t, entries)
	if len(entries) != 2*n {
		t.Fatalf("the log has %d entries, want %d", len(entries), 2*n)
	}
	for i := 0; i < len(entries); i += 2 {
		if entries[i].Role != continuo.User || entries[i+1].Role != continuo.Assistant || entries[i].TurnID != entries[i+1].TurnID ||
			!strings.Contains(entries[i+1].Content.String(), `"`+entries[i].Content.String()+`"`) {
			t.Errorf("entries %d and %d are not a question and its answer", i+1, i+2)
		}
	}
}

// gate is a model that sends one word, waits for a signal, and sends another.
type gate struct {
	reached chan struct{} // one value for each answer that waits
	open    chan struct{} // closed, or one value for each answer that may go on
}

func newGate() *gate { return &gate{make(chan struct{}, 8), make(chan struct{}, 8)} }

func (g *gate) model() *fakeModel {
	return &fakeModel{"gpt-4o", func(ctx context.Context, _ []shownMessage, yield func(model.Delta) bool) error {
		if !yield(model.Delta{Text: "Once "}) {
			return nil
		}
		g.reached <- struct{}{}
		select {
		case <-g.open:
		case <-ctx.Done():
			return &model.Error{Reason: continuo.ReasonCancelled, Message: ctx.Err().Error()}
		}
		yield(model.Delta{Text: "upon a time"})
		return nil
	}}
}

// waitForAnswer waits until the newest entry of a conversation is an answer.
func waitForAnswer(t *testing.T, e *engine.Engine, session string) continuo.Entry {
	t.Helper()
	conversation, err := e.Conversations.Find(t.Context(), continuo.Scope{ProjectID: continuo.DefaultProject}, session)
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan continuo.Entry, 1)
	go func() {
		for entry, err := range e.Conversations.Tail(t.Context(), conversation.ID, 0) {
			if err == nil && entry.Role == continuo.Assistant {
				found <- entry
				return
			}
		}
	}()
	return within(t, "an answer in the log", found)
}

// A client that goes away in the middle, of a stream or of a plain answer, must not stop the turn.
func TestTurnSurvivesItsClient(t *testing.T) {
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream %v", stream), func(t *testing.T) {
			gate := newGate()
			e := newEngine(t, withModel(gate.model()))
			handler, gone := New(e, Options{}), make(chan struct{})
			remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				context.AfterFunc(r.Context(), func() { close(gone) })
				handler.ServeHTTP(w, r)
			}))
			defer remote.Close()
			ctx, leave := context.WithCancel(t.Context())
			request, err := http.NewRequestWithContext(ctx, "POST", remote.URL+"/chat", strings.NewReader(fmt.Sprintf(`{"message": "tell", "session_id": "story", "stream": %v}`, stream)))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			ended := make(chan error, 1)
			go func() {
				response, err := http.DefaultClient.Do(request)
				if err == nil {
					_, err = io.ReadAll(response.Body)
					response.Body.Close()
				}
				ended <- err
			}()
			within(t, "the first word", gate.reached)
			leave()
			if err := within(t, "the client's end", ended); !errors.Is(err, context.Canceled) {
				t.Fatalf("the client ended with %v", err)
			}
			within(t, "the server noticing", gone)
			close(gate.open)
			if answer := waitForAnswer(t, e, "story"); answer.Content.String() != "Once upon a time" || answer.Error != nil {
				t.Errorf("the log has %q, %+v", answer.Content.String(), answer.Error)
			}
		})
	}
}

func TestBusyConversations(t *testing.T) {
	gate := newGate()
	handler := New(newEngine(t, withModel(gate.model())), Options{})
	first := make(chan *reply, 1)
	go func() {
		first <- ask(t, handler, "POST", "/chat", `{"message": "one", "session_id": "s"}`)
	}()
	within(t, "the first turn", gate.reached)
	ask(t, handler, "POST", "/chat", `{"message": "two", "session_id": "s", "on_busy": "reject"}`).failed(409, "conversation_busy", "session_id")

	second := make(chan *reply, 1)
	go func() {
		second <- ask(t, handler, "POST", "/chat", `{"message": "three", "session_id": "s", "on_busy": "interrupt"}`)
	}()
	stopped := within(t, "the first turn's end", first).failed(409, "llm_error", "")
	if stopped.Error.Reason != "interrupted" || stopped.Response != "Once " || stopped.TurnID == "" {
		t.Errorf("the interrupted turn said %+v", stopped)
	}
	within(t, "the second turn", gate.reached)
	close(gate.open)
	var answer chatReply
	if within(t, "the second turn's end", second).into(200, &answer); answer.Response != "Once upon a time" {
		t.Errorf("got %+v", answer)
	}
	entries := entriesOf(t, handler, "s")
	if checkLog(t, entries); len(entries) != 4 {
		t.Errorf("the log has %d entries, want 4", len(entries))
	}
}

// The same key must give the same turn, also when the two come at once and no session is named.
func TestIdempotentChats(t *testing.T) {
	var asked atomic.Int32
	counting := &fakeModel{"gpt-4o", func(_ context.Context, _ []shownMessage, yield func(model.Delta) bool) error {
		yield(model.Delta{Text: fmt.Sprintf("answer %d", asked.Add(1))})
		return nil
	}}
	handler := New(newEngine(t, withModel(counting)), Options{})
	answers := make([]*reply, 8)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = ask(t, handler, "POST", "/chat", `{"message": "hello"}`, "Idempotency-Key", "k") })
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
	ask(t, handler, "POST", "/chat", `{"message": "hallo"}`, "Idempotency-Key", "k").failed(409, "idempotency_conflict", "Idempotency-Key")
}

// The official libraries of providers retry without an Idempotency-Key, but send the number of the retry.
func TestChatRecognizesTheRetriesOfLibraries(t *testing.T) {
	const header = "X-Stainless-Retry-Count"
	handler := newServer(t)
	post := func(retry ...string) (answer chatReply) {
		ask(t, handler, "POST", "/chat", `{"message": "hello", "session_id": "s"}`, retry...).into(200, &answer)
		return answer
	}
	first, retried := post(header, "0"), post(header, "1")
	if retried.TurnID != first.TurnID {
		t.Errorf("the retry got the turn %s, not %s", retried.TurnID, first.TurnID)
	}
	for _, other := range [][]string{{}, {header, "-1"}, {header, "many"}} {
		if again := post(other...); again.TurnID == first.TurnID {
			t.Errorf("%q counts as a retry", other)
		}
	}
}

// Text of the model from before a failure of the store must reach the client: it is stored nowhere.
func TestChatWhenTheStoreFails(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		code   string
	}{
		{fmt.Errorf("write /secret/path: %w", continuo.ErrFull), 507, "disk_full"},
		{fmt.Errorf("write /secret/path: %w", continuo.ErrReadOnly), 503, "read_only"},
		{errors.New("write /secret/path: strange"), 500, "internal"},
	} {
		t.Run(test.code, func(t *testing.T) {
			store := &failingStore{Store: storetest.NewMemory(), err: test.err, appends: 1}
			handler := New(engineOver(t, store, engine.Options{}), Options{})
			answer := ask(t, handler, "POST", "/chat", `{"message": "hello", "session_id": "s"}`)
			failure := answer.failed(test.status, test.code, "")
			if !strings.Contains(failure.Response, `the newest says "hello"`) || failure.TurnID == "" {
				t.Errorf("what the model said is lost: %s", answer.body)
			}
			if bytes.Contains(answer.body, []byte("secret")) {
				t.Errorf("the answer tells of the inside: %s", answer.body)
			}
			store.remaining.Store(2) // one closes the turn that broke off
			events := readEvents(t, ask(t, handler, "POST", "/chat", `{"message": "hello", "session_id": "s", "stream": true}`))
			last := events[len(events)-1]
			if last.Type != "error" || !strings.Contains(string(last.Data), test.code) || strings.Contains(string(last.Data), "secret") {
				t.Errorf("the stream ends with %s: %s", last.Type, last.Data)
			}
		})
	}
}

// failingStore is a store that fails to append after a number of appends.
type failingStore struct {
	maintenance.Store
	err       error
	appends   int32
	remaining atomic.Int32
	once      sync.Once
}

func (f *failingStore) Append(ctx context.Context, batch continuo.Batch) error {
	f.once.Do(func() { f.remaining.Store(f.appends) })
	if f.remaining.Load() == 0 {
		return f.err
	}
	err := f.Store.Append(ctx, batch)
	if err == nil { // a turn that may not begin yet is no append
		f.remaining.Add(-1)
	}
	return err
}

func TestChatWhileClosing(t *testing.T) {
	e := newEngine(t, engine.Options{})
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	answer := ask(t, New(e, Options{}), "POST", "/chat", `{"message": "hello"}`)
	if answer.failed(503, "closing", ""); answer.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// The built-in model answers from what it is shown: its second answer shows that it saw the first message.
func TestDemoAnswersFromHistory(t *testing.T) {
	handler := New(newEngine(t, withModel(demo.New(demo.Options{}))), Options{})
	sendMessage(t, handler, "trip", "My dog is called Rex.")
	second := sendMessage(t, handler, "trip", "What is my dog called?")
	if !strings.Contains(second.Response, "My dog is called Rex.") {
		t.Errorf("the second answer knows nothing of the first message: %s", second.Response)
	}
	if other := sendMessage(t, handler, "other", "What is my dog called?"); strings.Contains(other.Response, "Rex") {
		t.Errorf("another session knows of the first: %s", other.Response)
	}
}
