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
	// Status is the provider's HTTP status, or the one named by an error inside a stream; 0 for none.
	Status int
	// Retryable says that the same request may succeed later.
	Retryable bool
	// Costly says that the upstream has worked on the request for long, so that a retry costs as much again:
	// the caller decides about it, not a wrapper.
	Costly bool
	// RetryAfter is how long the provider asks to wait, 0 when it sent no time.
	RetryAfter time.Duration
	// Message says what was attempted and what failed, for people.
	Message string
	// Err is the cause. For a request that was cancelled or ran out of time it is the context's error, so
	// that errors.Is finds it. Often nil.
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

// AsError returns the *Error in err or makes one: a context's error becomes cancelled or timeout, any other
// error upstream. It returns nil for nil.
func AsError(err error) *Error {
	var known *Error
	var upstreamError *failure.Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &upstreamError):
		return &Error{
			Reason: continuo.FailureReason(upstreamError.Reason), Status: upstreamError.Status, Retryable: upstreamError.Retryable,
			RetryAfter: upstreamError.RetryAfter, Message: upstreamError.Message, Err: upstreamError.Err,
		}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Reason: continuo.ReasonTimeout, Retryable: true, Message: err.Error(), Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Reason: continuo.ReasonCancelled, Message: err.Error(), Err: err}
	default:
		return &Error{Reason: continuo.ReasonUpstream, Message: err.Error(), Err: err}
	}
}

// ContextError returns the error of a call that ctx ended: timeout when its time ran out or its cause is
// context.DeadlineExceeded, else cancelled. It returns nil while ctx is not done.
func ContextError(ctx context.Context) *Error {
	if ended := failure.OfContext(ctx); ended != nil {
		return AsError(ended)
	}
	return nil
}
