package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
)

// gatedModel is a model that reports each request, and answers "ok" when the test lets it.
type gatedModel struct {
	entered chan struct{}
	open    chan struct{} // one value lets one request through; closed lets all through
}

func (g *gatedModel) Info() model.Info {
	return model.Info{Provider: "gate", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat}
}

func (g *gatedModel) Stream(ctx context.Context, _ []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		g.entered <- struct{}{}
		if !yield(model.Delta{Text: "o"}, nil) {
			return
		}
		select {
		case <-g.open:
		case <-ctx.Done():
			yield(model.Delta{}, ctx.Err())
			return
		}
		_ = yield(model.Delta{Text: "k"}, nil) && yield(model.Delta{Finish: "stop"}, nil)
	}
}

// testEngine is an engine and the log that it is made over, with which tests check what it did.
type testEngine struct {
	*engine.Engine
	Log *continuo.Log
}

// turnHarness is an engine over a log in memory, with a gatedModel.
type turnHarness struct {
	*testEngine
	t     *testing.T
	model *gatedModel
	logs  *lockedWriter
}

func newTurnHarness(t *testing.T) *turnHarness {
	t.Helper()
	return newTurnHarnessOver(t, continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Counter: token.O200k()}))
}

func newTurnHarnessOver(t *testing.T, log *continuo.Log) *turnHarness {
	t.Helper()
	g := &gatedModel{entered: make(chan struct{}, 100), open: make(chan struct{})}
	logs := &lockedWriter{}
	e, err := engine.New(log, engine.Options{
		Models: map[string]engine.Upstream{"gate": {Model: g}}, Default: "gate",
		Logger: slog.New(slog.NewJSONHandler(logs, nil)),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &turnHarness{testEngine: &testEngine{e, log}, t: t, model: g, logs: logs}
}

type lockedWriter struct {
	mu sync.Mutex
	w  strings.Builder
}

// String is what was written so far.
func (l *lockedWriter) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.String()
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func request(session, text string) engine.ChatRequest {
	return engine.ChatRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: session, Message: continuo.Text(text), Detached: true}
}

// begin starts a turn and returns when its request has reached the model.
func (h *turnHarness) begin(r engine.ChatRequest) *engine.Chat {
	h.t.Helper()
	chat, err := h.Turns.Chat(context.Background(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	<-h.model.entered
	return chat
}

func (h *turnHarness) finish(chat *engine.Chat) turn.Event {
	h.t.Helper()
	var last turn.Event
	for event, err := range chat.Events {
		if err != nil {
			h.t.Fatal(err)
		}
		last = event
	}
	return last
}

func (h *turnHarness) length(session string) int64 {
	h.t.Helper()
	conversation, err := h.Log.Find(context.Background(), continuo.Scope{ProjectID: "default"}, session)
	if err != nil {
		h.t.Fatal(err)
	}
	return conversation.LastSeq
}

func TestABusyConversationRejectsOrIsInterrupted(t *testing.T) {
	h := newTurnHarness(t)
	first := h.begin(request("s", "one"))
	busy := request("s", "two")
	busy.OnBusy = engine.Reject
	if _, err := h.Turns.Chat(context.Background(), busy); !errors.Is(err, continuo.ErrBusy) {
		t.Fatalf("reject: %v", err)
	}
	if n := h.length("s"); n != 1 {
		t.Errorf("a rejected turn left %d entries", n)
	}
	busy.OnBusy = engine.Interrupt
	second := h.begin(busy)
	if last := h.finish(first); last.Kind != turn.Failed || last.Entry.Error.Reason != continuo.ReasonInterrupted || last.Entry.Content.String() != "o" {
		t.Errorf("the interrupted turn ended with %+v", last)
	}
	close(h.model.open)
	if last := h.finish(second); last.Kind != turn.Finished {
		t.Errorf("the second turn ended with %+v", last)
	}
	if n := h.length("s"); n != 4 {
		t.Errorf("%d entries, want 4", n)
	}
}

func TestTurnsOfOneConversationWaitForEachOther(t *testing.T) {
	h := newTurnHarness(t)
	close(h.model.open)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			chat, err := h.Turns.Chat(context.Background(), request("s", "hello"))
			if err != nil {
				t.Error(err)
				return
			}
			h.finish(chat)
		})
	}
	all.Wait()
	conversation, err := h.Log.Find(context.Background(), continuo.Scope{ProjectID: "default"}, "s")
	if err != nil || conversation.LastSeq != 64 {
		t.Fatalf("%d entries, %v", conversation.LastSeq, err)
	}
	for entry, err := range h.Log.Read(context.Background(), conversation, continuo.Range{}) {
		if want := map[int64]continuo.Role{1: continuo.User, 0: continuo.Assistant}[entry.Seq%2]; err != nil || entry.Role != want {
			t.Errorf("entry %d is of %s, %v", entry.Seq, entry.Role, err)
		}
	}
}

func TestAClientThatLeavesDoesNotStopADetachedTurn(t *testing.T) {
	h := newTurnHarness(t)
	ctx, leave := context.WithCancel(context.Background())
	chat, err := h.Turns.Chat(ctx, request("s", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	<-h.model.entered
	for range chat.Events {
		break
	}
	leave()
	close(h.model.open)
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := h.length("s"); n != 2 {
		t.Errorf("%d entries, want the answer too", n)
	}
	if _, err := h.Turns.Chat(context.Background(), request("s", "more")); !errors.Is(err, engine.ErrClosing) {
		t.Errorf("after Close: %v", err)
	}
}

func TestClosingInterruptsWhatDoesNotEnd(t *testing.T) {
	h := newTurnHarness(t)
	chat := h.begin(request("s", "hello"))
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := h.Close(now); err != nil {
		t.Fatal(err)
	}
	if last := h.finish(chat); last.Kind != turn.Failed || last.Entry.Error.Reason != continuo.ReasonInterrupted {
		t.Errorf("ended with %+v", last)
	}
}

func TestSessionIDs(t *testing.T) {
	h := newTurnHarness(t)
	close(h.model.open)
	fresh, err := h.Turns.Chat(context.Background(), request("", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	h.finish(fresh)
	if again := h.begin(request(fresh.Conversation.ID, "again")); again.Conversation.ID != fresh.Conversation.ID {
		t.Error("the id did not find the conversation")
	} else {
		h.finish(again)
	}
	for id, want := range map[string]error{
		"conv_00000000000000000000000000000000": continuo.ErrNotFound,
		"conv_mine":                             continuo.ErrInvalid,
		"two words":                             continuo.ErrInvalid,
		"../../etc/passwd":                      continuo.ErrInvalid,
		strings.Repeat("x", 129):                continuo.ErrInvalid,
		"\x00":                                  continuo.ErrInvalid,
		"-dash":                                 continuo.ErrInvalid,
	} {
		if _, err := h.Turns.Chat(context.Background(), request(id, "x")); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", id, err, want)
		}
	}
}

func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	h := newTurnHarness(t)
	for name, change := range map[string]func(*engine.ChatRequest){
		"empty message":   func(r *engine.ChatRequest) { r.Message = continuo.Text(" \n") },
		"broken text":     func(r *engine.ChatRequest) { r.Message = continuo.Text("\xff") },
		"unknown view":    func(r *engine.ChatRequest) { r.View = "wide" },
		"unknown model":   func(r *engine.ChatRequest) { r.Model = "hal" },
		"unknown mode":    func(r *engine.ChatRequest) { r.Mode = "fast" },
		"unknown on_busy": func(r *engine.ChatRequest) { r.OnBusy = "queue" },
	} {
		r := request("s", "hello")
		change(&r)
		if _, err := h.Turns.Chat(context.Background(), r); !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.Log.Find(context.Background(), continuo.Scope{ProjectID: "default"}, "s"); !errors.Is(err, continuo.ErrNotFound) {
		t.Errorf("a refused request began a conversation: %v", err)
	}
}

func TestARetryWithoutASessionFindsItsConversation(t *testing.T) {
	h := newTurnHarness(t)
	close(h.model.open)
	r := request("", "hello")
	r.Key = "retry-me"
	first, err := h.Turns.Chat(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	h.finish(first)
	second, err := h.Turns.Chat(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if last := h.finish(second); second.Conversation.ID != first.Conversation.ID || last.Kind != turn.Finished {
		t.Errorf("second: %s, %+v", second.Conversation.ID, last)
	}
}

func TestTheContextIsLogged(t *testing.T) {
	h := newTurnHarness(t)
	close(h.model.open)
	h.finish(h.begin(request("s", "a secret question")))
	if err := h.Close(context.Background()); err != nil { // what is logged behind the last event is there then
		t.Fatal(err)
	}
	var line map[string]any
	for text := range strings.Lines(h.logs.String()) {
		if strings.Contains(text, "conversation_context_loaded") {
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, field := range []string{"total_messages_in_db", "messages_loaded", "messages_truncated", "estimated_tokens", "conversation_id", "turn_id"} {
		if _, ok := line[field]; !ok {
			t.Errorf("no %s in %v", field, line)
		}
	}
	if line["session_id"] != "s" {
		t.Errorf("session_id is %v", line["session_id"])
	}
	if strings.Contains(h.logs.String(), "secret") {
		t.Error("message text was logged")
	}
}

func TestContextShowsWhatAReaderSees(t *testing.T) {
	h := newTurnHarness(t)
	document, err := interchange.Messages(json.RawMessage(`[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"three"}]`), "")
	if err != nil {
		t.Fatal(err)
	}
	imported, err := h.Conversations.Import(context.Background(), continuo.Scope{ProjectID: "default"}, document)
	if err != nil || imported.Existed {
		t.Fatalf("%+v, %v", imported, err)
	}
	one, negative := 1, -1
	for _, test := range []struct {
		request engine.ContextRequest
		want    string // in the rendering, or in the error
	}{
		{engine.ContextRequest{}, `{"role":"user","content":"one"}`},
		{engine.ContextRequest{At: 1}, `{"role":"user","content":"one"}`},
		{engine.ContextRequest{MaxMessages: &one}, `{"role":"user","content":"three"}`},
		{engine.ContextRequest{Format: engine.FormatAnthropic}, `"text":"three"`},
		{engine.ContextRequest{View: "replay"}, "$respond: two"},
		{engine.ContextRequest{System: true}, "MODE\\n- active: chat"},
		{engine.ContextRequest{MaxTokens: &negative}, "max_tokens -1"},
		{engine.ContextRequest{MaxTokens: &one}, `{"role":"user","content":"three"}`},
		{engine.ContextRequest{At: 9}, "entries 1 to 3"},
		{engine.ContextRequest{View: "nope"}, "unknown view"},
		{engine.ContextRequest{Format: "xml"}, "unknown format"},
		{engine.ContextRequest{Model: "hal"}, "unknown model"},
	} {
		result, err := h.Contexts.Build(context.Background(), imported.Conversation, test.request)
		var shown string
		if err != nil {
			shown = err.Error()
		} else {
			shown = result.Text
			for _, message := range result.Messages {
				shown += string(message)
			}
		}
		if !strings.Contains(shown, test.want) {
			t.Errorf("%+v: %q stands not in %s", test.request, test.want, shown)
		}
	}
}

func TestAnInterruptPrecedesWaitingTurns(t *testing.T) {
	h := newTurnHarness(t)
	first := h.begin(request("s", "one"))
	waiting := make(chan *engine.Chat, 1)
	ready := make(chan struct{})
	go func() {
		close(ready)
		chat, err := h.Turns.Chat(context.Background(), request("s", "two"))
		if err != nil {
			t.Error(err)
		}
		waiting <- chat
	}()
	<-ready
	interrupting := request("s", "three")
	interrupting.OnBusy = engine.Interrupt
	third := h.begin(interrupting) // whether the second waits yet or not, it must not come first for long
	if last := h.finish(first); last.Kind != turn.Failed || last.Entry.Error.Reason != continuo.ReasonInterrupted {
		t.Errorf("the first turn ended with %+v", last)
	}
	close(h.model.open)
	h.finish(third)
	h.finish(<-waiting)
	if n := h.length("s"); n != 6 {
		t.Errorf("%d entries, want 6", n)
	}
}

func TestClosingWhileTurnsWait(t *testing.T) {
	for range 50 {
		h := newTurnHarness(t)
		chat := h.begin(request("s", "one"))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				chat, err := h.Turns.Chat(context.Background(), request("s", "more"))
				if err != nil {
					if !errors.Is(err, engine.ErrClosing) {
						t.Error(err)
					}
					return
				}
				for _, err := range chat.Events {
					if err != nil && !errors.Is(err, continuo.ErrNotRunning) { // it may have been stopped before it had begun
						t.Error(err)
					}
				}
			})
		}
		now, cancel := context.WithCancel(context.Background())
		cancel()
		if err := h.Close(now); err != nil {
			t.Fatal(err)
		}
		n := h.length("s")
		h.finish(chat)
		all.Wait()
		if after := h.length("s"); after != n {
			t.Fatalf("after Close the log grew from %d to %d entries", n, after)
		}
	}
}

func TestARefusedTurnChangesNothing(t *testing.T) {
	h := newTurnHarness(t)
	h.begin(request("s", "a"))
	r := request("s", "b")
	r.OnBusy, r.Mode = engine.Reject, continuo.ModeAgent
	if _, err := h.Turns.Chat(context.Background(), r); !errors.Is(err, continuo.ErrBusy) {
		t.Fatal(err)
	}
	c, _ := h.Log.Find(context.Background(), continuo.Scope{ProjectID: "default"}, "s")
	if c.ActiveMode != continuo.ModeChat {
		t.Errorf("the refused turn made the mode %s", c.ActiveMode)
	}
	close(h.model.open)
}
