package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// minBodyRate is how many bytes of a body extend its deadline by one second: a large body may take longer than a small
// one, and a client that sends more slowly is disconnected.
const minBodyRate = 64 << 10

// drainLimits bound what is read and discarded of a body after its request was answered. Closing a socket with unread
// data resets the connection, so that a client that sends its complete body before it reads would never see the answer.
type drainLimits struct {
	bytes int64
	time  time.Duration
	idle  time.Duration // the longest time without data
}

// LimitBodies bounds how long the bodies of a handler's requests may take. A body has timeout, and one second more for
// each 64 KiB received; a read after that fails with os.ErrDeadlineExceeded. A request that is answered before its body
// was read to its end is answered at once, and its connection is closed: net/http would wait for the rest of the body before
// it answers. Before the close, data that still arrives is discarded for a while. When the http.Server shuts down,
// bodies that are still being sent are cut off.
func LimitBodies(next http.Handler, timeout time.Duration) http.Handler {
	return limitBodies(next, timeout, drainLimits{bytes: 64 << 20, time: 10 * time.Second, idle: time.Second})
}

func limitBodies(next http.Handler, timeout time.Duration, after drainLimits) http.Handler {
	bodies := &openBodies{open: map[*limitedBody]bool{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &limitedBody{ReadCloser: r.Body, control: http.NewResponseController(w), begin: time.Now(), timeout: timeout, bodies: bodies}
		bodies.add(body, r)
		answer := &earlyAnswer{ResponseWriter: w, body: body}
		defer func() {
			answer.begin()
			body.end()
		}()
		r.Body = body
		next.ServeHTTP(answer, r)
		if !body.complete && (body.received > 0 || r.Header.Get("Expect") == "") { // else the client waits for 100 Continue
			answer.begin()
			_ = body.control.Flush()
			body.drain(after)
		}
	})
}

// limitedBody is a request's body with a deadline. One goroutine uses it, except for abort.
type limitedBody struct {
	io.ReadCloser
	control *http.ResponseController
	begin   time.Time
	timeout time.Duration
	bodies  *openBodies

	received int64
	complete bool          // read to the end
	idle     time.Duration // after the answer: how long the client may send nothing; 0 before
}

// Read reads from the body, and extends the deadline by the data received.
func (b *limitedBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.received += int64(n)
	switch {
	case errors.Is(err, io.EOF) && !b.complete:
		b.complete = true
		b.bodies.remove(b)
		_ = b.control.SetReadDeadline(time.Time{}) // net/http reads on to detect a disconnect
	case err == nil:
		b.bodies.extend(b)
	case errors.Is(err, os.ErrDeadlineExceeded) && b.bodies.areAborted():
		err = http.ErrServerClosed
	}
	return n, err
}

// drain reads and discards the rest of the body.
func (b *limitedBody) drain(limits drainLimits) {
	b.begin, b.timeout, b.idle = time.Now(), limits.time, limits.idle
	b.bodies.extend(b)
	_, _ = io.CopyN(io.Discard, b, limits.bytes)
}

// end closes the connection of a body that was not read to its end.
func (b *limitedBody) end() {
	if !b.complete {
		b.bodies.remove(b)
		b.abort()
	}
}

func (b *limitedBody) abort() { _ = b.control.SetReadDeadline(time.Unix(1, 0)) }

func (b *limitedBody) deadline() time.Time {
	if b.idle > 0 {
		return earlier(b.begin.Add(b.timeout), time.Now().Add(b.idle))
	}
	return b.begin.Add(b.timeout + time.Duration(b.received)*time.Second/minBodyRate)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// openBodies are the bodies being received. It is safe for concurrent use.
type openBodies struct {
	registered sync.Once

	mu      sync.Mutex
	open    map[*limitedBody]bool
	aborted bool // the server shuts down
}

// add sets the deadline of a new body. The first one registers a hook for the server's shutdown.
func (o *openBodies) add(b *limitedBody, r *http.Request) {
	o.registered.Do(func() {
		if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
			server.RegisterOnShutdown(o.abortAll)
		}
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[b] = true
	o.setDeadline(b)
}

// extend extends a body's deadline.
func (o *openBodies) extend(b *limitedBody) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.setDeadline(b)
}

func (o *openBodies) setDeadline(b *limitedBody) {
	if o.aborted {
		b.abort()
		return
	}
	_ = b.control.SetReadDeadline(b.deadline()) // where the connection has deadlines
}

func (o *openBodies) remove(b *limitedBody) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, b)
}

func (o *openBodies) abortAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.aborted = true
	for body := range o.open {
		body.abort()
	}
}

func (o *openBodies) areAborted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.aborted
}

// earlyAnswer closes the connection after an answer that does not wait for the body.
type earlyAnswer struct {
	http.ResponseWriter
	body  *limitedBody
	began bool
}

// Unwrap lets http.ResponseController reach the connection.
func (e *earlyAnswer) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// WriteHeader sends the header.
func (e *earlyAnswer) WriteHeader(status int) {
	e.begin()
	e.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the answer.
func (e *earlyAnswer) Write(data []byte) (int, error) {
	e.begin()
	return e.ResponseWriter.Write(data)
}

func (e *earlyAnswer) begin() {
	if !e.began && !e.body.complete {
		e.Header().Set("Connection", "close")
	}
	e.began = true
}
