package server

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/api"
)

// fail answers with an error, and logs what the answer does not contain.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if isDisconnect(r, err) {
		w.WriteHeader(statusClientClosedRequest)
		return
	}
	p := api.ProblemOf(err)
	s.logCause(w, r, p)
	if p.Allow != "" {
		w.Header().Set("Allow", p.Allow)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge(p))
	}
	if seconds := p.Wait(); seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	if s.options.GatewayError != nil && (strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/v1beta/")) {
		s.options.GatewayError(w, r, p)
		return
	}
	_ = writeJSON(w, p.Status, p)
}

// statusClientClosedRequest is the logged status of a request whose client disconnected before the answer; the number is nginx's.
const statusClientClosedRequest = 499

// isDisconnect reports whether an error only says that the client of a request has disconnected.
func isDisconnect(r *http.Request, err error) bool {
	return r.Context().Err() != nil && errors.Is(err, r.Context().Err())
}

// logCause logs the cause of a problem whose message does not contain it. A client that disconnected is no failure.
func (s *server) logCause(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if p.Cause != nil && !isDisconnect(r, p.Cause) {
		s.options.Logger.ErrorContext(r.Context(), "request_failed", "request_id", requestID(w), "code", p.Code, "error", p.Cause.Error())
	}
}
