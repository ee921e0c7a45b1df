package server

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/continuo-log/continuo/api"
)

const (
	// bodyCost is the memory, in bytes, that one byte of a body needs while it is decoded, checked and stored.
	bodyCost = 7
	// entryCost is the memory, in bytes, that one byte of a stored entry needs in an answer: decoded, encoded again,
	// and written.
	entryCost = 5
)

// budget bounds the total memory of the bodies of all requests and of the entries that they read. It is safe for
// concurrent use.
type budget struct {
	size int64 // bytes; 0: unlimited

	mu   sync.Mutex
	used int64
}

// reservation is the part of the budget that one request holds. It is safe for concurrent use.
type reservation struct {
	budget *budget

	// These are under the budget's lock.
	body     int64 // bytes of it that are covered
	need     int64 // bytes that the request needs
	held     int64 // need, but at most the budget: a request that needs more runs alone
	released bool  // the request has ended: work that continues is not charged to it
}

// grow extends the reservation to a body of the given size, or refuses.
func (s *reservation) grow(body int64) error {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if body <= s.body {
		return nil
	}
	if err := s.take(bodyCost * (body - s.body)); err != nil {
		return err
	}
	s.body = body
	return nil
}

// Take is part of continuo.Memory.
func (s *reservation) Take(bytes int64) error {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.take(entryCost * bytes)
}

// take extends or shrinks the reservation, or refuses. The caller holds the budget's lock.
func (s *reservation) take(more int64) error {
	b := s.budget
	held := min(s.need+more, b.size)
	switch {
	case b.size == 0 || s.released:
		return nil
	case held > s.held && b.used+held-s.held > b.size:
		return &api.Problem{
			Status: http.StatusServiceUnavailable, Type: api.ServerError, Code: "memory_budget", RetryAfter: 1,
			Message: "the requests in progress take all the memory that the server may use for them (server.memory_budget_mib); send this one again later",
		}
	}
	b.used += held - s.held
	s.need, s.held = s.need+more, held
	return nil
}

// release gives everything back.
func (s *reservation) release() {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.budget.used -= s.held
	s.held, s.released = 0, true
}

// boundedWriter sets a time limit for each write of a streamed answer, so that a client that does not read is
// disconnected.
type boundedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func withWriteLimit(w http.ResponseWriter) *boundedWriter {
	b := &boundedWriter{w, http.NewResponseController(w)}
	_ = b.control.SetWriteDeadline(time.Time{}) // clears the deadline of the connection's previous answer
	return b
}

// Unwrap lets http.ResponseController reach the connection.
func (b *boundedWriter) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Write writes a part of the answer in at most writeLimit for each 64 KiB.
func (b *boundedWriter) Write(data []byte) (written int, err error) {
	for len(data) > 0 {
		chunk := data[:min(len(data), 64<<10)]
		_ = b.control.SetWriteDeadline(time.Now().Add(writeLimit)) // where the connection has deadlines
		n, err := b.ResponseWriter.Write(chunk)
		if written += n; err != nil {
			return written, err
		}
		data = data[n:]
	}
	return written, nil
}

// WriteHeader begins the answer.
func (b *boundedWriter) WriteHeader(status int) {
	b.setDeadline()
	b.ResponseWriter.WriteHeader(status)
}

// setDeadline sets the deadline of what net/http writes after the handler.
func (b *boundedWriter) setDeadline() { _ = b.control.SetWriteDeadline(time.Now().Add(writeLimit)) }

// meteredBody is a request's body that draws from the budget as it is read.
type meteredBody struct {
	io.ReadCloser
	reservation *reservation
	received    int64
}

// Read reads from the body, and fails if the budget has no memory left for it.
func (m *meteredBody) Read(data []byte) (int, error) {
	n, err := m.ReadCloser.Read(data)
	m.received += int64(n)
	if refused := m.reservation.grow(m.received); refused != nil {
		return 0, refused
	}
	return n, err
}
