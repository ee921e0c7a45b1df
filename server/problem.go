package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/workflow"
)

// problem is an error as a client sees it:
// {"error": {"type", "code", "message", "param", …}, …}.
type problem struct {
	status  int
	kind    string // the type
	code    string
	message string
	param   string // the field, query parameter or header at fault; empty (null in JSON) for none
	allow   string // the methods that a path takes, of 405
	// retryAfter is in how many seconds to ask again; 0 leaves it open.
	retryAfter int
	// details are further members of the error, beside those of the body besides the error.
	details, beside rawjson.Object
	// cause is what is logged when the message does not tell all.
	cause error
}

// The types of errors: whose move it is.
const (
	invalidRequest = "invalid_request_error" // the client's: change the request
	authentication = "authentication_error"  // the client's: bring a good key
	permission     = "permission_error"      // the client's: this is another's
	notFound       = "not_found_error"
	conflict       = "conflict_error" // the client's: look again, then decide
	rateLimit      = "rate_limit_error"
	upstreamError  = "upstream_error" // the model's provider
	serverError    = "server_error"   // the operator's
)

func (p *problem) Error() string { return p.code + ": " + p.message }

// refuse makes the problem of a request that has to be changed.
func refuse(param, format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, kind: invalidRequest, code: "invalid_request", param: param, message: fmt.Sprintf(format, args...)}
}

// paramError says which part of the request an error is about.
type paramError struct {
	param string
	error
}

func (e *paramError) Unwrap() error { return e.error }

// at adds to an error which part of the request it is about; nil stays nil.
func at(param string, err error) error {
	if err == nil {
		return nil
	}
	return &paramError{param, err}
}

// sentinel is a row of the table of errors.
type sentinel struct {
	err        error
	status     int
	kind, code string
	hidden     bool // the chain may tell of files and hosts: say the sentinel's own words only
}

// sentinels maps errors that are told apart by errors.Is; problemOf has those that carry data.
var sentinels = []sentinel{
	{continuo.ErrNotFound, http.StatusNotFound, notFound, "not_found", false},
	{continuo.ErrBadRange, http.StatusBadRequest, invalidRequest, "bad_range", false},
	{continuo.ErrInvalid, http.StatusBadRequest, invalidRequest, "invalid_request", false},
	{continuo.ErrExists, http.StatusConflict, conflict, "exists", false},
	{continuo.ErrKeyReused, http.StatusConflict, conflict, "idempotency_conflict", false},
	{continuo.ErrBusy, http.StatusConflict, conflict, "conversation_busy", false},
	{continuo.ErrNotRunning, http.StatusConflict, conflict, "not_running", false},
	{engine.ErrTooManyTurns, http.StatusTooManyRequests, rateLimit, "too_many_turns", false},
	{engine.ErrTooManyAgents, http.StatusTooManyRequests, rateLimit, "too_many_agents", false},
	{engine.ErrNotResumable, http.StatusConflict, conflict, "not_resumable", false},
	{engine.ErrRunOver, http.StatusConflict, conflict, "run_over", false},
	{engine.ErrRunWaits, http.StatusConflict, conflict, "run_waiting", false},
	{engine.ErrNoCycle, http.StatusConflict, conflict, "no_cycle", false},
	{continuo.ErrLeaseLost, http.StatusServiceUnavailable, serverError, "lease_lost", true},
	{continuo.ErrReadOnly, http.StatusServiceUnavailable, serverError, "read_only", true},
	{continuo.ErrUnavailable, http.StatusServiceUnavailable, serverError, "store_unavailable", true},
	{continuo.ErrArchived, http.StatusConflict, conflict, "archived", false},
	{continuo.ErrObjectGone, http.StatusInternalServerError, serverError, "object_gone", true},
	{continuo.ErrFull, http.StatusInsufficientStorage, serverError, "disk_full", true},
	{engine.ErrClosing, http.StatusServiceUnavailable, serverError, "closing", true},
	{continuo.ErrClosed, http.StatusServiceUnavailable, serverError, "closing", true},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, serverError, "timeout", true},
}

// problemOf says how an error is shown to a client. What it does not know is an internal error, of which
// nothing is shown.
func problemOf(err error) *problem {
	p := problemWithout(err)
	var where *paramError
	if p.param == "" && p.status < http.StatusInternalServerError && errors.As(err, &where) {
		p.param = where.param
	}
	p.message = bounded(p.message)
	return p
}

func problemWithout(err error) *problem {
	var (
		known    *problem
		rule     *continuo.RuleError
		lost     *continuo.ConflictError
		overflow *continuo.OverflowError
		problems *workflow.Problems
		refused  *task.ValidationError
	)
	switch {
	case errors.As(err, &known):
		with := *known
		return &with
	case errors.As(err, &problems):
		return workflowInvalid(problems)
	case errors.As(err, &refused):
		return taskInvalid(refused)
	case errors.As(err, &rule):
		return &problem{status: http.StatusUnprocessableEntity, kind: invalidRequest, code: string(rule.Rule), message: rule.Error()}
	case errors.As(err, &lost):
		return &problem{
			status: http.StatusConflict, kind: conflict, code: "conflict", message: lost.Error(),
			details: members("expect_seq", lost.Want, "next_seq", lost.Have),
		}
	case errors.As(err, &overflow):
		return &problem{
			status: http.StatusRequestEntityTooLarge, kind: invalidRequest, code: "context_overflow", message: overflow.Error(),
			details: members("view", overflow.View, "limits", overflow.Limits, "prompt", overflow.Prompt, "newest_user", overflow.NewestUser, "open_group", overflow.OpenGroup),
		}
	}
	for _, row := range sentinels {
		if !errors.Is(err, row.err) {
			continue
		}
		p := &problem{status: row.status, kind: row.kind, code: row.code, message: err.Error()}
		switch row.err {
		case continuo.ErrKeyReused:
			p.param = idempotencyHeader
		case engine.ErrTooManyTurns:
			p.retryAfter = 1
		}
		if row.hidden {
			p.message, p.cause = row.err.Error(), err
		}
		return p
	}
	return &problem{
		status: http.StatusInternalServerError, kind: serverError, code: "internal",
		message: "the server failed; its log has the reason under the request id of this response", cause: err,
	}
}

// members makes JSON members of names and values in turn.
func members(pairs ...any) rawjson.Object {
	var object rawjson.Object
	for i := 0; i < len(pairs); i += 2 {
		object.Set(pairs[i].(string), rawjson.MustMarshal(pairs[i+1]))
	}
	return object
}

// errorJSON is the value of the member "error".
func (p *problem) errorJSON() rawjson.Object {
	object := members("type", p.kind, "code", p.code, "message", p.message, "param", nil)
	if p.param != "" {
		object.Set("param", rawjson.MustMarshal(p.param))
	}
	return append(object, p.details...)
}

// MarshalJSON writes the whole body.
func (p *problem) MarshalJSON() ([]byte, error) {
	body := members("error", p.errorJSON())
	return rawjson.Marshal(append(body, p.beside...))
}

// fail answers with an error, and logs what the client is not told.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
		w.WriteHeader(statusClientGone)
		return
	}
	p := problemOf(err)
	s.logCause(w, r, p)
	if p.allow != "" {
		w.Header().Set("Allow", p.allow)
	}
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", p.challenge())
	}
	if p.status == http.StatusServiceUnavailable {
		p.retryAfter = 5
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	_ = writeJSON(w, p.status, p)
}

// statusClientGone is what the log says of a request whose client went away before its answer; the
// number is nginx's.
const statusClientGone = 499

// logCause logs the error behind a problem that does not tell it.
func (s *server) logCause(w http.ResponseWriter, r *http.Request, p *problem) {
	if p.cause != nil {
		s.options.Logger.ErrorContext(r.Context(), "request_failed", "request_id", requestID(w), "code", p.code, "error", p.cause.Error())
	}
}

// maxMessage bounds an error's message, which may quote the request, in Unicode characters.
const maxMessage = 600

func bounded(text string) string {
	if utf8.RuneCountInString(text) <= maxMessage {
		return text
	}
	return string([]rune(text)[:maxMessage-1]) + "…"
}
