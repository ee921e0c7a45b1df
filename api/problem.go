package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/secret"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/workflow"
)

// Problem is an error as a client sees it: {"error": {"type", "code", "message", "param", …}, …}.
type Problem struct {
	Status  int // of HTTP
	Type    ErrorType
	Code    string
	Message string
	Param   string // the field, query parameter or header at fault; empty (null in JSON) for none
	Allow   string // the methods that a path accepts, for 405
	// RetryAfter is the delay in seconds before a retry; 0 means the default of the status, and RetryNever that a retry
	// fails in the same way.
	RetryAfter int
	Details    ErrorDetails
	// Turn is what the turn has produced that failed with this error; nil for other errors, and for a turn whose message
	// is not in the log.
	Turn *PartialAnswer
	// Fault classifies an invalid argument, for protocols whose errors do so. Default: it has a value that is not allowed.
	Fault task.ErrorType
	// Cause is what is logged when the message does not contain it.
	Cause error
}

// ErrorType says who has to act.
type ErrorType string

// The types of errors.
const (
	InvalidRequest ErrorType = "invalid_request_error" // the client: change the request
	Authentication ErrorType = "authentication_error"  // the client: send a valid key
	Permission     ErrorType = "permission_error"      // the client: the resource is another owner's
	NotFound       ErrorType = "not_found_error"
	Conflict       ErrorType = "conflict_error" // the client: read the current state, then decide
	RateLimit      ErrorType = "rate_limit_error"
	UpstreamError  ErrorType = "upstream_error" // the model's provider
	ServerError    ErrorType = "server_error"   // the operator
)

// RetryNever is the RetryAfter of an error that a retry does not change.
const RetryNever = -1

func (p *Problem) Error() string { return p.Code + ": " + p.Message }

// Refuse makes the problem of a request that the client has to change.
func Refuse(param, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusBadRequest, Type: InvalidRequest, Code: "invalid_request", Param: param, Message: fmt.Sprintf(format, args...)}
}

// paramError adds to an error the part of the request that it is about.
type paramError struct {
	param string
	error
}

func (e *paramError) Unwrap() error { return e.error }

// At adds to an error the part of the request that it is about; nil stays nil.
func At(param string, err error) error {
	if err == nil {
		return nil
	}
	return &paramError{param, err}
}

// ProblemOf maps an error to the problem that the client sees. An unknown error is an internal error, whose text is not
// shown.
func ProblemOf(err error) *Problem {
	p := problemWithout(err)
	var where *paramError
	if p.Param == "" && p.Status < http.StatusInternalServerError && errors.As(err, &where) {
		p.Param = where.param
	}
	p.Message = Bounded(p.Message)
	return p
}

func problemWithout(err error) *Problem {
	var (
		known    *Problem
		rule     *continuo.RuleError
		lost     *continuo.ConflictError
		overflow *continuo.OverflowError
		cut      *continuo.TruncatedError
		problems *workflow.Problems
		refused  *task.ValidationError
	)
	switch {
	case errors.As(err, &known):
		with := *known
		return &with
	case errors.As(err, &problems):
		return FileInvalid("workflow_invalid", "the workflow's file is not right", problems)
	case errors.As(err, &refused):
		p := Refuse(refused.Field, "%s", refused.Message)
		p.Code = string(refused.Type)
		return p
	case errors.As(err, &rule):
		return &Problem{Status: http.StatusUnprocessableEntity, Type: InvalidRequest, Code: string(rule.Rule), Message: rule.Error()}
	case errors.As(err, &lost):
		return &Problem{
			Status: http.StatusConflict, Type: Conflict, Code: "conflict", Message: lost.Error(),
			Details: ErrorDetails{SeqConflict: &SeqConflict{ExpectSeq: lost.Want, NextSeq: lost.Have}},
		}
	case errors.As(err, &overflow):
		return &Problem{
			Status: http.StatusRequestEntityTooLarge, Type: InvalidRequest, Code: "context_overflow", Message: overflow.Error(),
			Details: ErrorDetails{Overflow: overflowOf(overflow)},
		}
	case errors.As(err, &cut):
		return &Problem{Status: http.StatusRequestEntityTooLarge, Type: InvalidRequest, Code: "context_overflow", Message: cut.Error()}
	}
	if kind, ok := KindOf(err); ok {
		return problemOfKind(kind, err)
	}
	return &Problem{
		Status: http.StatusInternalServerError, Type: ServerError, Code: "internal",
		Message: "the server failed; its log has the reason under the request id of this response", Cause: err,
	}
}

// problemOfKind maps an error of a known kind.
func problemOfKind(kind ErrorKind, err error) *Problem {
	class := classes[kind.Class]
	p := &Problem{Status: class.status, Type: class.kind, Code: kind.Code, Message: secret.Text(kind.Message(err))}
	if kind.Hidden {
		p.Cause = err
	}
	if budget := new(ledger.BudgetError); errors.As(err, &budget) {
		p.RetryAfter = int(math.Ceil(budget.Wait.Seconds()))
	}
	if kind.Code == "idempotency_conflict" {
		p.Param = idempotencyHeader
	}
	return p
}

// BrokenFile is a file of a workflow or a crew that is invalid, so that it cannot be used.
type BrokenFile struct {
	File     string         `json:"file"` // its name, without the folder
	Problems []ShownProblem `json:"problems" doc:"minItems=1"`
}

// ShownProblem is one error in a file.
type ShownProblem struct {
	File    string `json:"file"` // its name, without the folder
	Line    int    `json:"line" minimum:"0"`
	Column  int    `json:"column" minimum:"0"`
	Message string `json:"message"` // what is wrong, and what to do
}

// ShownProblems converts the errors of a file to the form for clients.
func ShownProblems(problems *workflow.Problems) []ShownProblem {
	shown := []ShownProblem{}
	for _, p := range problems.List {
		shown = append(shown, ShownProblem{filepath.Base(p.File), p.Line, p.Column, p.Message})
	}
	return shown
}

// FileInvalid is the problem of an invalid file.
func FileInvalid(code, message string, problems *workflow.Problems) *Problem {
	shown := ShownProblems(problems)
	p := &Problem{Status: http.StatusUnprocessableEntity, Type: InvalidRequest, Code: code, Message: message, Details: ErrorDetails{Problems: shown}}
	if len(shown) > 0 {
		first := shown[0]
		p.Message += fmt.Sprintf(": %s:%d:%d: %s", first.File, first.Line, first.Column, first.Message)
	}
	if more := len(shown) - 1; more > 0 {
		p.Message += fmt.Sprintf("; and %d more", more)
	}
	return p
}

// Wait is the delay in seconds after which a client may retry; 0 for errors that waiting does not resolve.
func (p *Problem) Wait() int {
	switch {
	case p.RetryAfter == RetryNever:
		return 0
	case p.RetryAfter > 0:
		return p.RetryAfter
	}
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		return 1
	case http.StatusServiceUnavailable:
		return 5
	}
	return 0
}

// MaxMessage bounds an error's message, which may quote the request, in Unicode characters.
const MaxMessage = 600

// Bounded cuts a text that an error quotes.
func Bounded(text string) string {
	if utf8.RuneCountInString(text) <= MaxMessage {
		return text
	}
	return string([]rune(text)[:MaxMessage-1]) + "…"
}

// suggestion is the end of an error about an unknown name: the nearest known name, or all of them.
func suggestion(name string, known []string) string {
	if found := nearest.Name(name, known); found != "" {
		return "; did you mean " + found + "?"
	}
	if len(known) == 0 {
		return "; there are none"
	}
	return "; allowed: " + joined(known)
}
