package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/audit"
)

// ServeHTTP answers a request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.limited.ServeHTTP(w, r) }

// serve gives a request an id, authenticates and routes it, recovers, logs and counts.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	bounded := withWriteLimit(w)
	defer bounded.setDeadline()
	reserved := &reservation{budget: &s.budget}
	defer reserved.release()
	r.Body = &meteredBody{ReadCloser: r.Body, reservation: reserved}
	answer := &recorder{ResponseWriter: bounded}
	header := answer.Header()
	header.Set(requestIDHeader, s.engine.Conversations.NewID("req"))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	pattern, caller := "none", caller{}
	event := &audited{server: s, subject: &audit.Subject{}}
	answer.before = func(status int) {
		if event.request == nil { // refused before it was routed
			event.request = r
		}
		event.pattern, event.caller = pattern, s.callerForAudit(r, caller, requestID(answer))
		event.record(status)
	}
	if r.Method == http.MethodGet { // other requests begin work that outlives them
		r = r.WithContext(continuo.WithMemory(r.Context(), reserved))
	}
	r, traced := s.trace(r)
	defer func() {
		cause, half := recover(), answer.began
		if cause != nil && cause != http.ErrAbortHandler {
			s.recovered(answer, r, cause)
		}
		if !answer.began {
			answer.before(cmp.Or(answer.status, http.StatusOK))
		}
		s.logRequest(r, pattern, caller, answer, time.Since(begin))
		endTrace(traced, pattern, answer.status)
		if cause == http.ErrAbortHandler || cause != nil && half {
			panic(http.ErrAbortHandler) // the client must not take a truncated answer for a complete one
		}
	}()
	if s.cors.begin(answer, r) {
		pattern = "preflight"
		return
	}
	handler, found := s.mux.Handler(r)
	routed := found != "" && path.Clean(r.URL.Path) == r.URL.Path
	if routed {
		pattern = found
	}
	caller, err := s.authenticate(r, pattern)
	switch {
	case err != nil:
		s.fail(answer, r, err)
		return
	case !routed:
		s.fail(answer, r, s.noRoute(handler, found, r))
		return
	}
	if err := reserved.grow(r.ContentLength); err != nil { // at once, before the client sends a large body in vain
		s.fail(answer, r, err)
		return
	}
	r = withCaller(r, caller)
	r = r.WithContext(audit.WithSubject(audit.WithCaller(r.Context(), s.callerForAudit(r, caller, requestID(answer))), event.subject))
	if isUpgrade(r) {
		r = r.WithContext(api.WithAllowance(r.Context(), func() error { return s.rateLimits.check(caller.keyID, time.Now()) }))
	}
	event.request = r
	s.mux.ServeHTTP(answer, r)
}

const requestIDHeader = "X-Request-Id"

// requestID is the id that the answer carries.
func requestID(w http.ResponseWriter) string {
	return cmp.Or(w.Header().Get("X-Continuo-Request-Id"), w.Header().Get(requestIDHeader)) // of an upstream's answer, the second is the upstream's
}

// recovered answers a panic like any other internal error.
func (s *server) recovered(w *recorder, r *http.Request, cause any) {
	s.options.Logger.ErrorContext(r.Context(), "request_panicked", "request_id", requestID(w), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if !w.began {
		s.fail(w, r, api.ProblemOf(fmt.Errorf("panic: %v", cause)))
	}
}

// noRoute explains why no route matches a request: the mux's own handler knows which methods a path has.
func (s *server) noRoute(handler http.Handler, found string, r *http.Request) error {
	allowed := ""
	if found == "" { // the mux's own answer; a route that an unclean path redirects to must not run
		probe := headerOnly{http.Header{}}
		handler.ServeHTTP(probe, r)
		allowed = probe.header.Get("Allow")
	}
	if allowed == "" {
		return &api.Problem{
			Status: http.StatusNotFound, Type: api.NotFound, Code: "not_found",
			Message: fmt.Sprintf("there is nothing at %s; the calls are listed at / and in /openapi.json", r.URL.Path),
		}
	}
	return &api.Problem{
		Status: http.StatusMethodNotAllowed, Type: api.InvalidRequest, Code: "method_not_allowed", Allow: allowed,
		Message: fmt.Sprintf("%s does not take %s; it takes %s", r.URL.Path, r.Method, allowed),
	}
}

// headerOnly is a response of which only the header is used.
type headerOnly struct{ header http.Header }

func (h headerOnly) Header() http.Header          { return h.header }
func (headerOnly) Write(data []byte) (int, error) { return len(data), nil }
func (headerOnly) WriteHeader(int)                {}

// recorder records the status of the answer, and whether it has begun.
type recorder struct {
	http.ResponseWriter
	began  bool
	status int
	before func(status int) // called before the answer begins
}

// begin notes the status, once.
func (r *recorder) begin(status int) {
	if !r.began && status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		r.before(status)
		r.began, r.status = true, status
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	r.begin(status)
	r.ResponseWriter.WriteHeader(status)
}

// Write records the status 200 unless another was set.
func (r *recorder) Write(data []byte) (int, error) {
	r.begin(http.StatusOK)
	return r.ResponseWriter.Write(data)
}

// logRequest logs a request, and counts it.
func (s *server) logRequest(r *http.Request, pattern string, caller caller, answer *recorder, took time.Duration) {
	status := answer.status
	if status == 0 {
		status = http.StatusOK
	}
	s.metrics.answered(r.Method, pattern, status, took)
	level := slog.LevelInfo
	switch {
	case status >= http.StatusInternalServerError:
		level = slog.LevelWarn
	case s.operations[pattern].Probe || s.operations[pattern].ID == "metrics":
		level = slog.LevelDebug
	}
	attributes := []any{"method", r.Method, "route", pattern, "status", status, "duration_ms", took.Milliseconds(), "request_id", requestID(answer)}
	if caller.keyID != "" {
		attributes = append(attributes, "project", caller.scope.ProjectID, "key_id", caller.keyID)
	}
	s.options.Logger.Log(r.Context(), level, "request", attributes...)
}
