package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
)

// listStore is a store whose list of conversations does what a test wants.
type listStore struct {
	maintenance.Store
	list func() ([]continuo.Conversation, error)
}

func (l *listStore) Conversations(context.Context, continuo.ConversationQuery) ([]continuo.Conversation, error) {
	return l.list()
}

// logBuffer is the log of a server, as JSON lines. It is safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// line finds the log's only line with a message.
func (l *logBuffer) line(t *testing.T, message string) map[string]any {
	t.Helper()
	var found map[string]any
	for text := range strings.Lines(l.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if line["msg"] == message {
			if found != nil {
				t.Fatalf("two lines %s:\n%s", message, l)
			}
			found = line
		}
	}
	if found == nil {
		t.Fatalf("no line %s:\n%s", message, l)
	}
	return found
}

// Internal errors are logged with the answer's request id, and shown to no client.
func TestInternalErrors(t *testing.T) {
	for name, list := range map[string]func() ([]continuo.Conversation, error){
		"error": func() ([]continuo.Conversation, error) { return nil, errors.New("secret: /var/lib/x is gone") },
		"panic": func() ([]continuo.Conversation, error) { panic("secret: nil map") },
	} {
		t.Run(name, func(t *testing.T) {
			log := &logBuffer{}
			store := &listStore{storetest.NewMemory(), list}
			handler := New(engineOver(t, store, engine.Options{}), Options{Logger: log.logger()})
			answer := ask(t, handler, "GET", "/api/conversations", "")
			answer.failed(500, "internal", "")
			if strings.Contains(string(answer.body), "secret") {
				t.Errorf("the answer tells of the inside: %s", answer.body)
			}
			line := log.line(t, "request_failed")
			if line["request_id"] != answer.header.Get("X-Request-Id") || !strings.Contains(fmt.Sprint(line["error"]), "secret") {
				t.Errorf("logged %v", line)
			}
		})
	}
}

func TestNotReady(t *testing.T) {
	store := &listStore{storetest.NewMemory(), func() ([]continuo.Conversation, error) { return nil, errors.New("secret") }}
	handler := New(engineOver(t, store, engine.Options{}), Options{})
	answer := ask(t, handler, "GET", "/readyz", "")
	if answer.failed(503, "not_ready", ""); strings.Contains(string(answer.body), "secret") {
		t.Errorf("the answer tells of the inside: %s", answer.body)
	}
	ask(t, handler, "GET", "/healthz", "").into(200, &struct{}{})
}

// The log line of a request has what an operator needs, and no text of the conversation.
func TestRequestLog(t *testing.T) {
	log := &logBuffer{}
	e := newEngine(t, engine.Options{Logger: log.logger()})
	handler := New(e, Options{Logger: log.logger()})
	answer := ask(t, handler, "POST", "/chat", `{"message": "my secret plan", "session_id": "s"}`)
	line := log.line(t, "request")
	if line["method"] != "POST" || line["route"] != "POST /chat" || line["status"] != 200.0 || line["duration_ms"] == nil || line["request_id"] != answer.header.Get("X-Request-Id") {
		t.Errorf("logged %v", line)
	}
	log.line(t, "conversation_context_loaded")
	if strings.Contains(log.String(), "secret plan") {
		t.Errorf("the log has message text:\n%s", log)
	}
}

// A caller's traceparent names the trace of its request and of the turn that the request begins.
func TestTheCallersTraceIsTakenUp(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	e := newEngine(t, engine.Options{Tracer: tracer})
	handler := New(e, Options{Tracer: tracer})
	request := httptest.NewRequest("POST", "http://127.0.0.1/chat", strings.NewReader(`{"message": "hello", "session_id": "s"}`))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	handler.ServeHTTP(httptest.NewRecorder(), request)
	if err := e.Close(t.Context()); err != nil { // the turn's span ends behind its answer
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, span := range spans.Ended() {
		names[span.Name()] = true
		if id := span.SpanContext().TraceID().String(); id != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("span %s is of trace %s", span.Name(), id)
		}
	}
	if !names["POST /chat"] || !names["turn chat"] {
		t.Errorf("spans %v, want those of the request and of its turn", names)
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics := engine.NewMetrics(registry)
	made, err := engine.New(continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{}), withModel(&fakeModel{"gpt-4o", obedient}), metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close(t.Context())
	handler := New(made, Options{Registry: registry})
	sendMessage(t, handler, "s", "hello")
	ask(t, handler, "GET", "/api/conversations/nobody", "")
	ask(t, handler, "BREW", "/nowhere", "")
	New(made, Options{Registry: registry}) // a second server shares the series
	text := string(ask(t, handler, "GET", "/metrics", "").body)
	for _, want := range []string{
		`continuo_turns_total{outcome="finished"} 1`,
		`continuo_http_requests_total{method="POST",route="POST /chat",status="200"} 1`,
		`continuo_http_requests_total{method="GET",route="GET /api/conversations/{id}",status="404"} 1`,
		`continuo_http_requests_total{method="other",route="none",status="404"} 1`,
		`continuo_http_request_seconds_count{route="POST /chat"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestHosts(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{AllowedHosts: []string{"Continuo.Example", "10.1.2.3"}})
	for host, allowed := range map[string]bool{
		"localhost": true, "LOCALHOST:8787": true, "localhost.": true, "app.localhost:1": true,
		"127.0.0.1": true, "127.8.9.1:80": true, "[::1]:8787": true, "[::1]": true, "[::ffff:127.0.0.1]:8787": true,
		"continuo.example": true, "continuo.example.:443": true, "10.1.2.3:8787": true,
		"": false, "evil.example": false, "localhost.evil.example": false, "evil-localhost": false, "127.0.0.1.evil.example": false,
		"10.0.0.1": false, "[2001:db8::1]:8787": false, "sub.continuo.example": false,
	} {
		answer := ask(t, handler, "GET", "/api/models", "", "Host", host)
		if allowed != (answer.status == 200) {
			t.Errorf("host %q: status %d", host, answer.status)
		}
	}
}

// A page of another origin may not change anything; the server's own pages, and programs, may.
func TestOrigins(t *testing.T) {
	handler := newServer(t)
	for _, test := range []struct {
		header []string
		status int
	}{
		{nil, 200},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Origin", "http://localhost:8787"}, 200},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Origin", "http://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
	} {
		answer := ask(t, handler, "POST", "/chat", `{"message": "hello"}`, test.header...)
		if answer.status != test.status {
			t.Errorf("%v: status %d: %s", test.header, answer.status, answer.body)
		}
		for name := range answer.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("the answer has %s", name)
			}
		}
	}
}

func TestAnswersAreNotKept(t *testing.T) {
	handler := newServer(t)
	for _, target := range []string{"/", "/api/models", "/nowhere", "/openapi.json", "/healthz"} {
		answer := ask(t, handler, "GET", target, "")
		if answer.header.Get("Cache-Control") != "no-store" || answer.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", target, answer.header)
		}
	}
}

// truncatedStore is a store that fails to read entries beyond a seq.
type truncatedStore struct {
	maintenance.Store
	until int64
}

func (r *truncatedStore) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	if query.From > r.until {
		return nil, errors.New("secret: a bad sector")
	}
	return r.Store.Entries(ctx, id, query)
}

// A file that breaks off must not look complete; one that fails at once is an ordinary error. The conversation is longer
// than any page of a read.
func TestExportThatBreaksOff(t *testing.T) {
	for until, broken := range map[int64]bool{0: false, 100: true} {
		store, log := &truncatedStore{storetest.NewMemory(), 1000}, &logBuffer{}
		handler := New(engineWith(t, store, continuo.LogOptions{CacheBytes: -1}, engine.Options{}), Options{Logger: log.logger()}) // every entry is read from the store
		ask(t, handler, "POST", "/api/conversations", `{"key": "s"}`)
		many := strings.TrimSuffix(strings.Repeat(`{"role": "user", "content": "`+strings.Repeat("words ", 50)+`"},`, 400), ",")
		ask(t, handler, "POST", "/api/conversations/s/entries", `{"entries": [`+many+`]}`)
		store.until = until
		remote := httptest.NewServer(handler)
		response, err := http.Get(remote.URL + "/api/conversations/s/export?format=openai")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		remote.Close()
		if broken != errors.Is(err, io.ErrUnexpectedEOF) || broken != (response.StatusCode == 200) || strings.Contains(string(body), "secret") {
			t.Errorf("until %d: status %d, %v, %d bytes", until, response.StatusCode, err, len(body))
		}
		log.line(t, "request_failed")
	}
}

// Every sentinel of the log has its row in the table of errors.
func TestProblems(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		code   string
	}{
		{continuo.ErrNotFound, 404, "not_found"},
		{continuo.ErrInvalid, 400, "invalid_request"},
		{continuo.ErrBadRange, 400, "bad_range"},
		{continuo.ErrExists, 409, "exists"},
		{continuo.ErrKeyReused, 409, "idempotency_conflict"},
		{continuo.ErrBusy, 409, "conversation_busy"},
		{engine.ErrTooManyTurns, 429, "too_many_turns"},
		{continuo.ErrClosed, 503, "closing"},
		{continuo.ErrReadOnly, 503, "read_only"},
		{continuo.ErrFull, 507, "disk_full"},
		{engine.ErrClosing, 503, "closing"},
		{context.DeadlineExceeded, 504, "timeout"},
		{&continuo.RuleError{Rule: continuo.RuleOrphanTool}, 422, "orphan_tool"},
		{&continuo.ConflictError{Want: 1, Have: 2}, 409, "conflict"},
		{&continuo.OverflowError{}, 413, "context_overflow"},
		{continuo.ErrNewerSchema, 500, "internal"},
		{&model.Error{Reason: continuo.ReasonNetwork}, 500, "internal"},
		{errors.New("anything"), 500, "internal"},
		{api.Refuse("x", "y"), 400, "invalid_request"},
	} {
		p := api.ProblemOf(api.At("field", fmt.Errorf("outer: %w", test.err)))
		if p.Status != test.status || p.Code != test.code {
			t.Errorf("%v: %d %s, want %d %s", test.err, p.Status, p.Code, test.status, test.code)
		}
	}
	if api.At("x", nil) != nil {
		t.Error("nothing became an error")
	}
}

// The zero options must do.
func TestZeroOptions(t *testing.T) {
	var handler http.Handler = New(newEngine(t, engine.Options{}), Options{})
	if answer := sendMessage(t, handler, "", "hello"); answer.SessionID != answer.ConversationID {
		t.Errorf("got %+v", answer)
	}
}
