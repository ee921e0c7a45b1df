package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
)

// sendPartly sends a request's header and the beginning of its body, and reads the answer.
func sendPartly(t *testing.T, server *httptest.Server, head, body string) (*http.Response, string, net.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // a case that hangs fails
	if _, err := io.WriteString(conn, strings.ReplaceAll(head, "\n", "\r\n")+"\r\n\r\n"+body); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer before the body was whole: %v", err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text), conn
}

// expectClosed checks that the other side closes a connection.
func expectClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("the connection is open: %d bytes", n)
	} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("the connection is held open")
	}
}

// TestARefusalDoesNotWaitForTheBody: net/http reads up to 256 KiB of a body before it sends an answer.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	store := storetest.NewMemory()
	open := httptest.NewServer(New(engineOver(t, store, engine.Options{}), Options{}))
	t.Cleanup(open.Close)
	keyed := httptest.NewServer(New(engineOver(t, store, engine.Options{}), Options{KeyPolicy: KeysAlways, Keys: auth.NewChecker(store, auth.Options{})}))
	t.Cleanup(keyed.Close)
	for name, c := range map[string]struct {
		server *httptest.Server
		head   string
		status int
	}{
		"no key":             {keyed, "POST /chat HTTP/1.1\nHost: localhost\nContent-Length: 100", 401},
		"no key, chunked":    {keyed, "POST /chat HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked", 401},
		"no key, large":      {keyed, "POST /chat HTTP/1.1\nHost: localhost\nContent-Length: 10000000", 401},
		"no key, MCP":        {keyed, "POST /mcp HTTP/1.1\nHost: localhost\nContent-Length: 100", 401},
		"no route":           {open, "POST /nowhere HTTP/1.1\nHost: localhost\nContent-Length: 100", 404},
		"another method":     {open, "PUT /chat HTTP/1.1\nHost: localhost\nContent-Length: 100", 405},
		"another host":       {open, "POST /chat HTTP/1.1\nHost: evil.example\nContent-Length: 100", 403},
		"another origin":     {open, "POST /chat HTTP/1.1\nHost: localhost\nOrigin: http://evil.example\nContent-Length: 100", 403},
		"another media type": {open, "POST /chat HTTP/1.1\nHost: localhost\nContent-Type: text/plain\nContent-Length: 100", 415},
		"a body on GET":      {open, "GET /healthz HTTP/1.1\nHost: localhost\nContent-Length: 100", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each connection is held for drainLimits.silence
			response, text, conn := sendPartly(t, c.server, c.head, "")
			if response.StatusCode != c.status || !response.Close {
				t.Errorf("status %d, closed %v: %s", response.StatusCode, response.Close, text)
			}
			expectClosed(t, conn)
		})
	}
}

// TestASlowBodyIsCut: it gets an answer, and its connection ends.
func TestASlowBodyIsCut(t *testing.T) {
	server := httptest.NewServer(New(newEngine(t, engine.Options{}), Options{BodyTimeout: 50 * time.Millisecond}))
	defer server.Close()
	for name, length := range map[string]string{"a length": "Content-Length: 100", "chunks": "Transfer-Encoding: chunked"} {
		t.Run(name, func(t *testing.T) {
			response, text, conn := sendPartly(t, server, "POST /chat HTTP/1.1\nHost: localhost\n"+length, "")
			if response.StatusCode != http.StatusRequestTimeout || !strings.Contains(text, "body_timeout") {
				t.Errorf("status %d: %s", response.StatusCode, text)
			}
			expectClosed(t, conn)
		})
	}
}

// TestABodyThatArrivesHasNoDeadlineAfterwards: an answer may take longer than the body was allowed to.
func TestABodyThatArrivesHasNoDeadlineAfterwards(t *testing.T) {
	handler := LimitBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case <-r.Context().Done(): // net/http found the read deadline, and took it for a client that is gone
			w.WriteHeader(http.StatusTeapot)
		case <-time.After(600 * time.Millisecond):
			_, _ = fmt.Fprint(w, len(body))
		}
	}), 500*time.Millisecond)
	server := httptest.NewServer(handler)
	defer server.Close()
	for range 2 { // on one connection
		response, err := server.Client().Post(server.URL, "application/json", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(text) != "5" || response.Close {
			t.Errorf("%d %q, closed %v", response.StatusCode, text, response.Close)
		}
	}
}

// TestAStopDoesNotWaitForBodies: Shutdown would wait for requests that are still being sent.
func TestAStopDoesNotWaitForBodies(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	reading := make(chan struct{})
	inner := New(newEngine(t, engine.Options{}), Options{BodyTimeout: time.Hour})
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &watchedBody{ReadCloser: r.Body, reading: reading}
		inner.ServeHTTP(w, r)
	})
	server.Start()
	defer server.Close()
	stopped := make(chan error, 1)
	go func() {
		<-reading
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		stopped <- server.Config.Shutdown(ctx)
	}()
	response, text, _ := sendPartly(t, server, "POST /chat HTTP/1.1\nHost: localhost\nContent-Length: 100", "{")
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "closing") {
		t.Errorf("status %d: %s", response.StatusCode, text)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}

// watchedBody is a body that says when it is first read.
type watchedBody struct {
	io.ReadCloser
	reading  chan struct{}
	notified bool
}

func (a *watchedBody) Read(data []byte) (int, error) {
	if !a.notified {
		a.notified = true
		close(a.reading)
	}
	return a.ReadCloser.Read(data)
}

// TestConnectionsAreBounded: a connection beyond the limit is accepted once another one is closed.
func TestConnectionsAreBounded(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := LimitConnections(plain, 2)
	accepted := make(chan net.Conn)
	ended := make(chan error)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 3 {
		conn, err := net.Dial("tcp", plain.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // nothing was written
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Fatal("a third connection was accepted")
	default:
	}
	_ = first.Close()
	_ = first.Close() // net/http may close twice
	third := <-accepted
	_ = listener.Close()
	if err := <-ended; err == nil {
		t.Error("Accept continues after Close")
	}
	_, _ = second.Close(), third.Close()
}

// TestAClientThatSendsBeforeItReads sees why it was refused, whatever it still sends: the connection is not reset.
func TestAClientThatSendsBeforeItReads(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{MemoryBudget: 40 << 20, MaxBodyBytes: 24 << 20}).(*server)
	server := httptest.NewServer(handler)
	defer server.Close()
	other := &reservation{budget: &handler.budget}
	defer other.release()
	if err := other.grow(5 << 20); err != nil {
		t.Fatal(err)
	}
	body := `{"message": "` + strings.Repeat("a", 20<<20) + `"}`
	for name, c := range map[string]struct {
		head, body string
		status     int
	}{
		"a length":                  {fmt.Sprintf("Content-Length: %d", len(body)), body, http.StatusServiceUnavailable},
		"chunks":                    {"Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body), http.StatusServiceUnavailable},
		"larger than a body may be": {"Content-Length: 30000000", strings.Repeat("a", 30_000_000), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			response, text, conn := sendPartly(t, server, "POST /chat HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"+c.head, c.body)
			if response.StatusCode != c.status || !strings.Contains(text, "memory_budget") {
				t.Errorf("status %d: %s", response.StatusCode, text)
			}
			expectClosed(t, conn)
		})
	}
}

// TestADrainIsBounded: a client that never stops sending is disconnected, whatever it sends.
func TestADrainIsBounded(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		limits drainLimits
		piece  int // that the client sends again and again; 0: it sends nothing
	}{
		"by bytes":   {drainLimits{1 << 20, never, never}, 64 << 10},
		"by time":    {drainLimits{1 << 60, 50 * time.Millisecond, never}, 1},
		"by silence": {drainLimits{1 << 60, never, 50 * time.Millisecond}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_ = writeBody(w, http.StatusTeapot, "text/plain", []byte("no"))
			})
			server := httptest.NewServer(limitBodies(refuse, never, c.limits))
			defer server.Close()
			response, text, conn := sendPartly(t, server, fmt.Sprintf("POST / HTTP/1.1\nHost: localhost\nContent-Length: %d", int64(1)<<60), "")
			if response.StatusCode != http.StatusTeapot || text != "no" {
				t.Errorf("status %d: %s", response.StatusCode, text)
			}
			piece := make([]byte, c.piece)
			for len(piece) > 0 {
				if _, err := conn.Write(piece); err == nil {
					continue
				} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
					t.Error("the connection is held open")
				}
				return
			}
			expectClosed(t, conn)
		})
	}
}

// TestAStopDoesNotWaitForADrain: what is thrown away is cut when the server shuts down.
func TestAStopDoesNotWaitForADrain(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = writeBody(w, http.StatusTeapot, "text/plain", []byte("no"))
	})
	server := httptest.NewServer(limitBodies(refuse, time.Hour, drainLimits{1 << 60, time.Hour, time.Hour}))
	defer server.Close()
	_, _, conn := sendPartly(t, server, "POST / HTTP/1.1\nHost: localhost\nContent-Length: 100", "")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	expectClosed(t, conn)
}
