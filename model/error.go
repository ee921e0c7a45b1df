package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model/internal/failure"
)

// Error is a failed or broken answer. It holds no key and no header of the request.
type Error struct {
	Reason continuo.FailureReason
	// Status is the provider's HTTP status, or the one that an error inside a stream named; 0 for none.
	Status int
	// Retryable says that the same request may succeed later.
	Retryable bool
	// Costly says that the upstream has been at work on the request for long, so that another try costs as much
	// again: it is for the caller to decide, not for a wrapper.
	Costly bool
	// RetryAfter is how long the provider asks to wait, 0 when it did not say.
	RetryAfter time.Duration
	// Message says what was tried and what went wrong, for people.
	Message string
	// Err is the cause: of a request that was cancelled or ran out of time the context's error, so that
	// errors.Is finds it. Often nil.
	Err error
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model call failed (%s, status %d): %s", e.Reason, e.Status, e.Message)
	}
	return fmt.Sprintf("model call failed (%s): %s", e.Reason, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError finds the *Error in err or makes one: of a context's error cancelled or timeout, of anything
// else upstream. It returns nil for nil.
func AsError(err error) *Error {
	var known *Error
	var told *failure.Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &told):
		return &Error{
			Reason: continuo.FailureReason(told.Reason), Status: told.Status, Retryable: told.Retryable,
			RetryAfter: told.RetryAfter, Message: told.Message, Err: told.Err,
		}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Reason: continuo.ReasonTimeout, Retryable: true, Message: err.Error(), Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Reason: continuo.ReasonCancelled, Message: err.Error(), Err: err}
	default:
		return &Error{Reason: continuo.ReasonUpstream, Message: err.Error(), Err: err}
	}
}

// ContextError says that ctx ended a call: as timeout when its time ran out, or when whoever cancelled
// it gave context.DeadlineExceeded as the cause, else as cancelled. It returns nil while ctx lives.
func ContextError(ctx context.Context) *Error {
	if ended := failure.OfContext(ctx); ended != nil {
		return AsError(ended)
	}
	return nil
}
