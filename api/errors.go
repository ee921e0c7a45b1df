package api

import (
	"context"
	"errors"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/workflow"
)

// ErrorClass is the kind of an error: it determines the HTTP status and the exit code.
type ErrorClass int

// The classes of errors.
const (
	ClassInternal    ErrorClass = iota // a failure of the program; its details are not shown
	ClassInvalid                       // the request has to be changed
	ClassNotFound                      // what the request names does not exist
	ClassForbidden                     // it exists, but the caller has no access to it
	ClassConflict                      // the state of the resource does not allow it
	ClassRateLimited                   // too many requests: the same request may succeed later
	ClassUnavailable                   // a resource cannot be reached for now
	ClassGone                          // it was there, and was removed
	ClassDiskFull
	ClassTimeout
)

// classes maps each class to an HTTP status, the type of the problem and the exit code of the program.
var classes = map[ErrorClass]struct {
	status int
	kind   ErrorType
	exit   int
}{
	ClassInternal:    {http.StatusInternalServerError, ServerError, 1},
	ClassInvalid:     {http.StatusBadRequest, InvalidRequest, 2},
	ClassNotFound:    {http.StatusNotFound, NotFound, 3},
	ClassForbidden:   {http.StatusForbidden, Permission, 4},
	ClassConflict:    {http.StatusConflict, Conflict, 4},
	ClassRateLimited: {http.StatusTooManyRequests, RateLimit, 4},
	ClassUnavailable: {http.StatusServiceUnavailable, ServerError, 1},
	ClassGone:        {http.StatusGone, NotFound, 3},
	ClassDiskFull:    {http.StatusInsufficientStorage, ServerError, 1},
	ClassTimeout:     {http.StatusGatewayTimeout, ServerError, 1},
}

// ExitCode is the exit code of a program that failed with an error of this class.
func (c ErrorClass) ExitCode() int { return classes[c].exit }

// ErrorKind is a row of the table of errors that every adapter uses.
type ErrorKind struct {
	Err   error
	Code  string // machine-readable, the same in every protocol
	Class ErrorClass
	// Hidden says that the error's chain may name files and hosts: only the text of Err is shown.
	Hidden bool
}

// errorKinds is the table; the first row that matches an error counts. Errors with data (rule, conflict, overflow,
// validation) are types of their own.
var errorKinds = []ErrorKind{
	{continuo.ErrNotFound, "not_found", ClassNotFound, false},
	{continuo.ErrBadRange, "bad_range", ClassInvalid, false},
	{continuo.ErrInvalid, "invalid_request", ClassInvalid, false},
	{continuo.ErrExists, "exists", ClassConflict, false},
	{continuo.ErrOtherUser, "other_user", ClassForbidden, false},
	{continuo.ErrKeyReused, "idempotency_conflict", ClassConflict, false},
	{continuo.ErrBusy, "conversation_busy", ClassConflict, false},
	{continuo.ErrNotRunning, "not_running", ClassConflict, false},
	{continuo.ErrArchived, "archived", ClassConflict, false},
	{engine.ErrUnknownAgent, "invalid_request", ClassInvalid, false},
	{engine.ErrNotResumable, "not_resumable", ClassConflict, false},
	{engine.ErrRunOver, "run_over", ClassConflict, false},
	{engine.ErrDecided, "decided", ClassConflict, false},
	{engine.ErrRunWaits, "run_waiting", ClassConflict, false},
	{engine.ErrRunInProgress, "run_in_progress", ClassConflict, false},
	{workflow.ErrNotRepairable, "not_repairable", ClassConflict, false},
	{engine.ErrNoCycle, "no_cycle", ClassConflict, false},
	{engine.ErrTooManyTurns, "too_many_turns", ClassRateLimited, false},
	{ledger.ErrBudget, "budget_exceeded", ClassRateLimited, false},
	{engine.ErrTooManyAgents, "too_many_agents", ClassRateLimited, false},
	{continuo.ErrLeaseLost, "lease_lost", ClassUnavailable, true},
	{continuo.ErrReadOnly, "read_only", ClassUnavailable, true},
	{continuo.ErrUnavailable, "store_unavailable", ClassUnavailable, true},
	{engine.ErrClosing, "closing", ClassUnavailable, true},
	{continuo.ErrClosed, "closing", ClassUnavailable, true},
	{continuo.ErrFull, "disk_full", ClassDiskFull, true},
	{continuo.ErrFeedPruned, "feed_pruned", ClassGone, false},
	{errFeedRestored, "feed_restored", ClassGone, false},
	{continuo.ErrObjectGone, "object_gone", ClassInternal, true},
	{context.DeadlineExceeded, "timeout", ClassTimeout, true},
}

// KindOf finds an error's row of the table; ok is false where there is none.
func KindOf(err error) (kind ErrorKind, ok bool) {
	for _, row := range errorKinds {
		if errors.Is(err, row.Err) {
			return row, true
		}
	}
	return ErrorKind{Err: err, Code: "internal"}, false
}

// Message is the text that callers are shown for an error of this kind.
func (k ErrorKind) Message(err error) string {
	if k.Hidden {
		return k.Err.Error()
	}
	return err.Error()
}
