package server

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// bodyCost is how many bytes of memory one byte of a body costs while it is decoded, checked and stored.
const bodyCost = 7

// budget bounds the memory that the bodies of all requests take together. It is safe for concurrent use.
type budget struct {
	size int64 // bytes; 0: no bound

	mu   sync.Mutex
	used int64
}

// share is what one request holds of the budget. It is used by one goroutine.
type share struct {
	budget *budget
	held   int64
}

// grow has the share cover a body of so many bytes, or refuses. A body that costs more than the whole budget is let
// in alone.
func (s *share) grow(body int64) error {
	b := s.budget
	if b.size == 0 {
		return nil
	}
	more := min(bodyCost*body, b.size) - s.held
	if more <= 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+more > b.size {
		return &problem{
			status: http.StatusServiceUnavailable, kind: serverError, code: "memory_budget", retryAfter: 1,
			message: "the requests under way take all the memory that the server may use for them (server.memory_budget_mib); send this one again later",
		}
	}
	b.used += more
	s.held += more
	return nil
}

// release gives everything back.
func (s *share) release() {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.budget.used -= s.held
	s.held = 0
}

// boundedWriter gives each write of an answer that is made piece by piece a time limit, so that a client that does
// not read is disconnected.
type boundedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func withWriteLimit(w http.ResponseWriter) *boundedWriter {
	b := &boundedWriter{w, http.NewResponseController(w)}
	_ = b.control.SetWriteDeadline(time.Time{}) // the limit of the connection's answer before this one
	return b
}

// Unwrap lets http.ResponseController reach the connection.
func (b *boundedWriter) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Write writes a part of the answer in at most writeLimit for each 64 KiB.
func (b *boundedWriter) Write(data []byte) (written int, err error) {
	for len(data) > 0 {
		piece := data[:min(len(data), 64<<10)]
		_ = b.control.SetWriteDeadline(time.Now().Add(writeLimit)) // where the connection has deadlines
		n, err := b.ResponseWriter.Write(piece)
		if written += n; err != nil {
			return written, err
		}
		data = data[n:]
	}
	return written, nil
}

// WriteHeader begins the answer.
func (b *boundedWriter) WriteHeader(status int) {
	b.last()
	b.ResponseWriter.WriteHeader(status)
}

// last sets the time limit of what net/http writes after the handler.
func (b *boundedWriter) last() { _ = b.control.SetWriteDeadline(time.Now().Add(writeLimit)) }

// meteredBody is a request's body that draws from the budget as it is read.
type meteredBody struct {
	io.ReadCloser
	share    *share
	received int64
}

// Read reads on, unless there is no memory for it.
func (m *meteredBody) Read(data []byte) (int, error) {
	n, err := m.ReadCloser.Read(data)
	m.received += int64(n)
	if refused := m.share.grow(m.received); refused != nil {
		return 0, refused
	}
	return n, err
}
