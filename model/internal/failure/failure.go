// Package failure has the errors of the clients of upstreams, which package model converts to its own. It is
// imported by package model, so that the code that clients share can use it.
package failure

import (
	"context"
	"errors"
	"time"
)

// The reasons, equal to those of the log (continuo.FailureReason).
const (
	Timeout       = "timeout"
	Network       = "network"
	RateLimit     = "rate_limit"
	Upstream      = "upstream"
	ContentFilter = "content_filter"
	Cancelled     = "cancelled"

	ContextOverflow = "context_overflow"
)

// Failure is a failed or broken answer; its members are those of model.Error.
type Failure struct {
	Reason     string
	Status     int
	Retryable  bool
	RetryAfter time.Duration
	Message    string
	Err        error
}

func (f *Failure) Error() string { return f.Message }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// OfContext returns the failure of a call that ctx ended: timeout when its time ran out or its cause is
// context.DeadlineExceeded, else cancelled. It returns nil while ctx is not done.
func OfContext(ctx context.Context) *Failure {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return &Failure{Reason: Timeout, Retryable: true, Message: "the time for the answer ran out", Err: context.DeadlineExceeded}
	}
	return &Failure{Reason: Cancelled, Message: "the request was cancelled", Err: err}
}
