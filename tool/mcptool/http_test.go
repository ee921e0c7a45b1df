package mcptool

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/tool"
)

// host is an HTTP server whose handler can be changed while it runs.
type host struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
	streams atomic.Int32 // open streams on which changes are told
}

func newHost(t *testing.T, handler http.Handler) *host {
	t.Helper()
	h := &host{}
	h.serve(handler)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isListening(r) {
			opening := &openingStream{ResponseWriter: w, host: h}
			defer opening.end()
			w = opening
		}
		(*h.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

// openingStream counts the stream of an answer from its first byte on: the SDK misses no change from then on.
type openingStream struct {
	http.ResponseWriter
	host *host
	open bool
}

func (o *openingStream) Write(data []byte) (int, error) {
	if !o.open {
		o.open = true
		o.host.streams.Add(1)
	}
	return o.ResponseWriter.Write(data)
}

func (o *openingStream) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func (o *openingStream) end() {
	if o.open {
		o.host.streams.Add(-1)
	}
}

func (h *host) serve(handler http.Handler) { h.handler.Store(&handler) }

func (h *host) options() Options {
	return Options{Name: "srv", URL: h.URL, RestartWait: time.Millisecond, RestartMaxWait: 10 * time.Millisecond, CallWait: patience, Grace: time.Second}
}

// sdkHandler is the SDK's own server over HTTP; a new one has forgotten the sessions of the one before.
func sdkHandler(stateless bool) http.Handler {
	server := sdkServer()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless})
}

func TestToolsOverHTTP(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		t.Run(fmt.Sprintf("stateless %v", stateless), func(t *testing.T) {
			source := connect(t, newHost(t, sdkHandler(stateless)).options())
			wantResult(t, call(t, source, "echo", "over the wire"), false, "over the wire")
			wantResult(t, call(t, source, "fail", ""), true, "no such bank")
			wantResult(t, call(t, source, "big", "1048576"), false)
		})
	}
}

func TestHeadersGoToTheServerOnly(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	inner := sdkHandler(false)
	h := newHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer canary" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	options := h.options()
	options.Headers = map[string]string{"Authorization": "Bearer canary"}
	log := newJournal()
	options.Logger = log.logger()
	source := connect(t, options)
	wantResult(t, call(t, source, "echo", "in"), false, "in")
	h.serve(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	result := call(t, source, "echo", "astray")
	wantResult(t, result, true, "redirects to another host")
	if elsewhere.Load() != 0 || strings.Contains(log.text()+result.Content, "canary") || strings.Contains(result.Content, h.URL) {
		t.Errorf("the header went elsewhere %d times; result %q; log:\n%s", elsewhere.Load(), result.Content, log.text())
	}
}

// A server that restarts knows no sessions any more. The call was refused, so that it is made again on a
// new session, and once only.
func TestAnHTTPServerThatForgetsItsSessions(t *testing.T) {
	refuse := map[string]http.HandlerFunc{
		"the SDK's": nil,
		"404 with JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
		},
		"400 with JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		},
	}
	for name, refusal := range refuse {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, sdkHandler(false))
			source := connect(t, h.options())
			wantResult(t, call(t, source, "echo", "one"), false, "one")
			before, _ := source.state()
			old, fresh := before.client.ID(), sdkHandler(false)
			var refused atomic.Int32
			h.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Session-Id") == old && refusal != nil {
					refused.Add(1)
					refusal(w, r)
					return
				}
				fresh.ServeHTTP(w, r)
			}))
			wantResult(t, call(t, source, "echo", "two"), false, "two")
			if after, _ := source.state(); after == before {
				t.Error("the session is the old one")
			}
		})
	}
}

// A connection that breaks after the request was sent leaves it open whether the call was carried out.
func TestAnHTTPServerThatHangsUp(t *testing.T) {
	inner := sdkHandler(true)
	var calls atomic.Int32
	h := newHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			calls.Add(1)
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	}))
	source := connect(t, h.options())
	wantResult(t, call(t, source, "echo", ""), true, "may or may not have been carried out", "EOF")
	if calls.Load() != 1 {
		t.Errorf("the call was made %d times", calls.Load())
	}
	wantResult(t, call(t, source, "die_once", ""), true, "may or may not")
	if calls.Load() != 3 {
		t.Errorf("the repeatable call was made %d times", calls.Load()-1)
	}
}

// The SDK takes up a broken answer again with a GET. When that fails the call is as uncertain as before.
func TestARefusedResumptionIsNoResultOfTheCall(t *testing.T) {
	h := newHost(t, http.NotFoundHandler())
	s := &session{options: Options{MaxMessageBytes: 1}}
	s.ctx, s.fail = context.WithCancelCause(t.Context())
	wire := newHTTP(s)
	var seen trace
	ctx := context.WithValue(t.Context(), traceKey{}, &seen)
	for _, c := range []struct {
		method, url string
		sent        int32
	}{
		{http.MethodPost, "http://127.0.0.1:1", 0},
		{http.MethodPost, h.URL, 1},
		{http.MethodGet, "http://127.0.0.1:1", 1},
		{http.MethodGet, h.URL, 1},
	} {
		request, err := http.NewRequestWithContext(ctx, c.method, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := wire.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
		if got := seen.sent.Load(); got != c.sent {
			t.Errorf("after %s %s %d requests were sent, want %d", c.method, c.url, got, c.sent)
		}
	}
	wire.shut()
}

func TestHTTPStatusOfACall(t *testing.T) {
	inner := sdkHandler(true)
	var status atomic.Int32
	h := newHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			http.Error(w, "no", int(status.Load()))
			return
		}
		inner.ServeHTTP(w, r)
	}))
	source := connect(t, h.options())
	for code, want := range map[int]string{
		401: "it answered HTTP 401 Unauthorized", 429: "it answered HTTP 429", 503: "it answered HTTP 503 Service Unavailable", 502: "may or may not",
	} {
		status.Store(int32(code))
		wantResult(t, call(t, source, "echo", ""), true, want)
	}
}

func TestAChangedListOverHTTP(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		t.Run(fmt.Sprintf("stateless %v", stateless), func(t *testing.T) {
			log := newJournal()
			h := newHost(t, sdkHandler(stateless))
			options := h.options()
			options.Logger = log.logger()
			source := connect(t, options)
			limit := time.Now().Add(patience)
			for h.streams.Load() == 0 {
				if time.Now().After(limit) {
					t.Fatal("no stream was opened")
				}
			}
			wantResult(t, call(t, source, "grow", ""), false)
			log.await(t, "have changed")
			wantResult(t, call(t, source, "grown", ""), false, "tall")
		})
	}
}

func TestMessagesWithoutEndOverHTTP(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		t.Run(kind, func(t *testing.T) {
			inner := sdkHandler(true)
			h := newHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Method") != "tools/call" {
					inner.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, "data: ")
				for block := strings.Repeat("a", 64<<10); ; {
					if _, err := io.WriteString(w, block); err != nil {
						return
					}
				}
			}))
			options := h.options()
			options.MaxMessageBytes = 4 << 20
			source := connect(t, options)
			peak := heapPeak(t, func() {
				wantResult(t, call(t, source, "echo", ""), true, "more than 4194304 bytes", "may or may not")
			})
			if peak > 64<<20 {
				t.Errorf("the heap grew by %d MiB", peak>>20)
			}
		})
	}
}

// Many events of usual size are no large message, wherever their bytes are split.
func TestEventsAreCountedOneByOne(t *testing.T) {
	for _, gap := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		stream := strings.Repeat("data: 0123456789"+gap, 50)
		for size := 1; size < 40; size++ {
			s := &session{options: Options{MaxMessageBytes: 60}}
			s.ctx, s.fail = context.WithCancelCause(t.Context())
			body := &boundedBody{ReadCloser: io.NopCloser(&pieces{stream, size}), wire: &overHTTP{session: s}, stream: true, done: func() {}}
			if got, err := io.ReadAll(body); err != nil || string(got) != stream {
				t.Fatalf("gap %q, pieces of %d: %d bytes, %v", gap, size, len(got), err)
			}
		}
	}
}

// pieces reads a text in pieces of a size.
type pieces struct {
	rest string
	size int
}

func (p *pieces) Read(into []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(into[:min(p.size, len(into))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func TestCloseOverHTTPDuringACall(t *testing.T) {
	begun := make(chan struct{})
	inner := sdkHandler(false)
	h := newHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			<-r.Context().Done() // a goodbye that is never answered
			return
		}
		if r.Header.Get("Mcp-Session-Id") != "" && r.ContentLength > 200 {
			_, _ = io.Copy(io.Discard, r.Body) // only then the end of the connection is noticed
			close(begun)
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	}))
	options := h.options()
	options.Grace = 50 * time.Millisecond
	source := connect(t, options)
	results := make(chan tool.Result)
	echo := find(t, source, "echo")
	go func() {
		results <- echo.Run(context.Background(), tool.Call{Arguments: fmt.Sprintf(`{"text":%q}`, strings.Repeat("a", 300))})
	}()
	<-begun
	_ = source.Close()
	wantResult(t, <-results, true, "may or may not", "closing")
	if left := ours(); len(left) > 0 {
		t.Errorf("Close returned before %s", strings.Join(left, "\n\n"))
	}
}
