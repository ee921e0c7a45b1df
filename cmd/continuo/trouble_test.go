package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/metricstest"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// troubled is an upstream that answers the requests to one model by a plan, one word each: "fine",
// "busy" (429 with Retry-After), "broken" (500), "silent" (cut before the first byte of text), "half"
// (cut after it). Past the plan everything is fine.
type troubled struct {
	mu   sync.Mutex
	plan []string
	made int
}

func (u *troubled) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	u.mu.Lock()
	what := "fine"
	if u.made < len(u.plan) {
		what = u.plan[u.made]
	}
	u.made++
	u.mu.Unlock()
	switch what {
	case "busy":
		w.Header().Set("Retry-After", "0.01")
		http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
		return
	case "broken":
		http.Error(w, `{"error":{"message":"it broke"}}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(choice string) {
		_, _ = fmt.Fprintf(w, "data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,%s}]}\n\n", choice)
		_ = http.NewResponseController(w).Flush()
	}
	send(`"delta":{"role":"assistant","content":""}`)
	if what == "silent" {
		panic(http.ErrAbortHandler)
	}
	send(`"delta":{"content":"all "}`)
	if what == "half" {
		panic(http.ErrAbortHandler)
	}
	send(`"delta":{"content":"is well"}`)
	send(`"delta":{},"finish_reason":"stop"`)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// turnResult is what a client sees of a turn.
type turnResult struct {
	text     string
	fellBack bool
	last     turn.Event
}

// wireTrouble puts the program together over a model "main" with its upstream and a model "spare"; fallback
// and settings are more of the file.
func wireTrouble(t *testing.T, main, spare http.Handler, fallback, settings string) (ask func() turnResult, registry *prometheus.Registry) {
	t.Helper()
	first, second := httptest.NewServer(main), httptest.NewServer(spare)
	t.Cleanup(first.Close)
	t.Cleanup(second.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "continuo.yaml")
	text := fmt.Sprintf("model: main\nmodels:\n  main: {base_url: %q, provider: first%s}\n  spare: {base_url: %q, provider: second}\nturn: {retry_max_wait: 20ms, %s}\n",
		first.URL, fallback, second.URL, settings)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{File: file, Env: []string{"CONTINUO_STORE_PATH=" + filepath.Join(dir, "continuo.db")}})
	if err != nil {
		t.Fatal(err)
	}
	registry = prometheus.NewRegistry()
	a := &app{console: &console{}}
	w, err := a.wireWith(t.Context(), loaded, buildOptions{turns: true, registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return func() turnResult { return askOnce(t, w) }, registry
}

func askOnce(t *testing.T, w *services) (result turnResult) {
	t.Helper()
	chat, err := w.engine.Turns.Chat(t.Context(), engine.ChatRequest{Scope: continuo.Scope{ProjectID: "default"}, SessionID: "s1", Message: continuo.Text("how is it?")})
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range chat.Events {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == turn.TextDelta {
			result.text += event.Text
		}
		result.fellBack = result.fellBack || event.Kind == turn.FellBack
		result.last = event
	}
	return result
}

func TestTroubleBeforeTheFirstTextIsNotSeen(t *testing.T) {
	upstream := &troubled{plan: []string{"busy", "broken", "silent", "fine"}}
	ask, registry := wireTrouble(t, upstream, http.NotFoundHandler(), "", "retries: 3")
	result := ask()
	if result.last.Kind != turn.Finished || result.text != "all is well" || result.last.Entry.Content.String() != "all is well" || upstream.made != 4 {
		t.Errorf("after %d requests: %+v", upstream.made, result)
	}
	want := []string{"first network 1", "first rate_limit 1", "first upstream 1"}
	if got := metricstest.Values(t, registry, "continuo_retries_total"); !slices.Equal(got, want) {
		t.Errorf("retries %q, want %q", got, want)
	}
}

func TestTroubleAfterTheFirstTextEndsTheTurn(t *testing.T) {
	upstream := &troubled{plan: []string{"half"}}
	ask, _ := wireTrouble(t, upstream, http.NotFoundHandler(), "", "retries: 3")
	result := ask()
	if result.last.Kind != turn.Failed || result.text != "all " || upstream.made != 1 {
		t.Fatalf("after %d requests: %+v", upstream.made, result)
	}
	if entry := result.last.Entry; entry.Content.String() != "all " || entry.Error.Reason != continuo.ReasonNetwork || !entry.Error.Retryable {
		t.Errorf("kept: %+v, %+v", entry, entry.Error)
	}
	if result := ask(); result.last.Kind != turn.Finished || result.text != "all is well" {
		t.Errorf("the next message: %+v", result)
	}
}

func TestTriesAreCountedInTheError(t *testing.T) {
	upstream := &troubled{plan: []string{"broken", "broken", "broken"}}
	ask, _ := wireTrouble(t, upstream, http.NotFoundHandler(), "", "retries: 1")
	failure := ask().last.Entry.Error
	if failure == nil || failure.ProviderStatus != 500 || !strings.HasSuffix(failure.Message, "it broke (tried 2 times)") || upstream.made != 2 {
		t.Errorf("after %d requests: %+v", upstream.made, failure)
	}
}

// An upstream that keeps failing is left alone after two turns; the fallback answers all along.
func TestTheFallbackTakesOverFromAnOpenBreaker(t *testing.T) {
	upstream := &troubled{plan: slices.Repeat([]string{"broken"}, 100)}
	ask, registry := wireTrouble(t, upstream, &troubled{}, ", fallback: spare", "retries: 1, breaker_failures: 2, breaker_cooldown: 1h")
	for n := range 4 {
		result := ask()
		if result.last.Kind != turn.Finished || result.text != "all is well" || !result.fellBack || result.last.Entry.Round.Provider != "second" {
			t.Fatalf("turn %d: %+v", n+1, result)
		}
	}
	if upstream.made != 4 {
		t.Errorf("%d requests to an upstream that fails, want two turns of two", upstream.made)
	}
	if got := metricstest.Values(t, registry, "continuo_breaker_state"); !slices.Equal(got, []string{"main 2"}) {
		t.Errorf("breakers %q", got)
	}
	if got := metricstest.Values(t, registry, "continuo_fallbacks_total"); !slices.Equal(got, []string{"first upstream 4"}) {
		t.Errorf("fallbacks %q", got)
	}
}

// No server answers at the address: the error names the connect limit, not the system's own.
func TestTheConnectLimitIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // nothing is accepted, so TLS never begins
	m := config.ModelConfig{Name: "main", Protocol: model.ProtocolOpenAIChat, BaseURL: "https://" + listener.Addr().String(), Model: "m", Provider: "p"}
	limits := config.TurnConfig{ConnectTimeout: 20 * time.Millisecond, FirstTokenTimeout: time.Minute, IdleTimeout: time.Minute}
	upstream, err := (modelWiring{limits: limits}).upstream(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range upstream.Stream(t.Context(), []byte("{}")) {
		if err == nil || !strings.Contains(err.Error(), "gave no connection within 20ms, the connect limit") {
			t.Errorf("got %v", err)
		}
	}
}
