package model

import (
	"errors"
	"fmt"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model/internal/failure"
)

// What the clients of upstreams report arrives whole, in the log's own words.
func TestAsErrorOfAFailure(t *testing.T) {
	cause := errors.New("cause")
	for message, want := range map[string]continuo.FailureReason{
		failure.Timeout: continuo.ReasonTimeout, failure.Network: continuo.ReasonNetwork, failure.RateLimit: continuo.ReasonRateLimit,
		failure.Upstream: continuo.ReasonUpstream, failure.ContentFilter: continuo.ReasonContentFilter, failure.Cancelled: continuo.ReasonCancelled,
	} {
		got := AsError(fmt.Errorf("turn: %w", &failure.Failure{
			Reason: message, Status: 429, Retryable: true, RetryAfter: time.Second, Message: "slow down", Err: cause,
		}))
		if *got != (Error{Reason: want, Status: 429, Retryable: true, RetryAfter: time.Second, Message: "slow down", Err: cause}) {
			t.Errorf("%s: got %+v", message, got)
		}
	}
}
