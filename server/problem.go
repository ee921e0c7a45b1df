package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/secret"
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
	allow   string // the methods that a path accepts, for 405
	// retryAfter is the delay in seconds before a retry; 0 means the default of the status, and retryNever that a retry
	// fails in the same way.
	retryAfter int
	// details are further members of "error"; beside are further members of the body, next to "error".
	details, beside rawjson.Object
	// cause is what is logged when the message does not contain it.
	cause error
}

// The types of errors: they say who has to act.
const (
	invalidRequest = "invalid_request_error" // the client's: change the request
	authentication = "authentication_error"  // the client's: send a valid key
	permission     = "permission_error"      // the client's: the resource is another owner's
	notFound       = "not_found_error"
	conflict       = "conflict_error" // the client's: read the current state, then decide
	rateLimit      = "rate_limit_error"
	upstreamError  = "upstream_error" // the model's provider
	serverError    = "server_error"   // the operator's
)

func (p *problem) Error() string { return p.code + ": " + p.message }

// refuse makes the problem of a request that the client has to change.
func refuse(param, format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, kind: invalidRequest, code: "invalid_request", param: param, message: fmt.Sprintf(format, args...)}
}

// paramError adds to an error the part of the request that it is about.
type paramError struct {
	param string
	error
}

func (e *paramError) Unwrap() error { return e.error }

// at adds to an error the part of the request that it is about; nil stays nil.
func at(param string, err error) error {
	if err == nil {
		return nil
	}
	return &paramError{param, err}
}

// answers maps classes of errors to HTTP statuses.
var answers = map[engine.ErrorClass]struct {
	status int
	kind   string
}{
	engine.ClassInternal:    {http.StatusInternalServerError, serverError},
	engine.ClassInvalid:     {http.StatusBadRequest, invalidRequest},
	engine.ClassNotFound:    {http.StatusNotFound, notFound},
	engine.ClassForbidden:   {http.StatusForbidden, permission},
	engine.ClassConflict:    {http.StatusConflict, conflict},
	engine.ClassRateLimited: {http.StatusTooManyRequests, rateLimit},
	engine.ClassUnavailable: {http.StatusServiceUnavailable, serverError},
	engine.ClassDiskFull:    {http.StatusInsufficientStorage, serverError},
	engine.ClassTimeout:     {http.StatusGatewayTimeout, serverError},
}

// problemOf maps an error to the problem that the client sees. An unknown error is an internal error, whose text is not
// shown.
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
			details: overflowDetails(overflow),
		}
	}
	if kind, ok := engine.KindOf(err); ok {
		return problemOfKind(kind, err)
	}
	return &problem{
		status: http.StatusInternalServerError, kind: serverError, code: "internal",
		message: "the server failed; its log has the reason under the request id of this response", cause: err,
	}
}

// problemOfKind maps an error of a known kind.
func problemOfKind(kind engine.ErrorKind, err error) *problem {
	answer := answers[kind.Class]
	p := &problem{status: answer.status, kind: answer.kind, code: kind.Code, message: secret.Text(kind.Message(err))}
	if kind.Hidden {
		p.cause = err
	}
	if kind.Code == "idempotency_conflict" {
		p.param = idempotencyHeader
	}
	return p
}

// overflowDetails are the sizes of an overflow, for programs.
func overflowDetails(e *continuo.OverflowError) rawjson.Object {
	return members("view", e.View, "model", e.Model, "context_window", e.ModelWindow, "limits", e.Limits, "prompt", e.Prompt,
		"answer_tokens", e.Answer, "newest_user", e.NewestUser, "open_group", e.OpenGroup, "open_cycle", e.OpenCycle)
}

// members makes JSON members of alternating names and values.
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
	object = append(object, p.details...)
	if seconds := p.asksToWait(); seconds > 0 { // streams have no such header
		object.Set("retry_after", rawjson.MustMarshal(seconds))
	}
	return object
}

// MarshalJSON writes the whole body.
func (p *problem) MarshalJSON() ([]byte, error) {
	body := members("error", p.errorJSON())
	return rawjson.Marshal(append(body, p.beside...))
}

// retryNever is the retryAfter of an error that a retry does not change.
const retryNever = -1

// asksToWait is the delay in seconds after which a client may retry; 0 for errors that waiting does not resolve.
func (p *problem) asksToWait() int {
	switch {
	case p.retryAfter == retryNever:
		return 0
	case p.retryAfter > 0:
		return p.retryAfter
	}
	switch p.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		return 1
	case http.StatusServiceUnavailable:
		return 5
	}
	return 0
}

// fail answers with an error, and logs what the answer does not contain.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if hasLeft(r, err) {
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
	if seconds := p.asksToWait(); seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	_ = writeJSON(w, p.status, p)
}

// statusClientGone is the logged status of a request whose client disconnected before the answer; the number is nginx's.
const statusClientGone = 499

// hasLeft reports whether an error only says that the client of a request has disconnected.
func hasLeft(r *http.Request, err error) bool {
	return r.Context().Err() != nil && errors.Is(err, r.Context().Err())
}

// logCause logs the cause of a problem whose message does not contain it. A client that disconnected is no failure.
func (s *server) logCause(w http.ResponseWriter, r *http.Request, p *problem) {
	if p.cause != nil && !hasLeft(r, p.cause) {
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
