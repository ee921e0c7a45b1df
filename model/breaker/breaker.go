// Package breaker stops asking an upstream that keeps failing, so that callers learn of it at once and
// the upstream is left alone, and asks again after a while with one request.
//
// Only failures that may pass count: time limits, broken connections, rate limits, the upstream's own
// errors. A request that was refused for what it says shows that the upstream works. What a caller
// cancelled, or ran out of time for, says nothing.
//
// Pitfalls: the trial counts as passed with the first visible piece of its answer, so that a long answer
// does not keep everybody else out.
package breaker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// State is what a breaker lets through.
type State string

// The states: everything, one request to try, nothing.
const (
	Closed   State = "closed"
	HalfOpen State = "half_open"
	Open     State = "open"
)

// Options sets up a breaker.
type Options struct {
	// Name is the upstream's, for messages. Default the provider's.
	Name string
	// Failures is how many in a row open the breaker. Default 5.
	Failures int
	// Cooldown is how long it stays open before a request is let through to try. Default 30 s.
	Cooldown time.Duration
	// OnChange is told of each new state, one after the other. It must not use the model. Default none.
	OnChange func(State)
}

// Model is a model behind a breaker. It is safe for concurrent use.
type Model struct {
	model.Model
	options  Options
	breaker  *gobreaker.TwoStepCircuitBreaker[struct{}]
	openedAt atomic.Pointer[time.Time]
}

// errNothing is the outcome of a request that says nothing of the upstream.
var errNothing = errors.New("nothing is known")

// New wraps a model.
func New(inner model.Model, options Options) *Model {
	options.Name = cmp.Or(options.Name, inner.Info().Provider)
	options.Failures = cmp.Or(options.Failures, 5)
	options.Cooldown = cmp.Or(options.Cooldown, 30*time.Second)
	if options.OnChange == nil {
		options.OnChange = func(State) {}
	}
	m := &Model{Model: inner, options: options}
	m.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Timeout: options.Cooldown, OnStateChange: m.changed,
		ReadyToTrip: func(counts gobreaker.Counts) bool {
			return int64(counts.ConsecutiveFailures) >= int64(options.Failures)
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errNothing) },
	})
	return m
}

func (m *Model) changed(_ string, _, to gobreaker.State) {
	state := Closed
	switch to {
	case gobreaker.StateOpen:
		now := time.Now()
		m.openedAt.Store(&now)
		state = Open
	case gobreaker.StateHalfOpen:
		state = HalfOpen
	}
	m.options.OnChange(state)
}

// Stream sends body and yields the answer, or fails at once while the breaker is open; see [model.Model].
func (m *Model) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if ended := model.ContextError(ctx); ended != nil {
			yield(model.Delta{}, ended)
			return
		}
		report, err := m.breaker.Allow()
		if err != nil {
			yield(model.Delta{}, m.refusal(err))
			return
		}
		c := call{report: report, trial: m.breaker.State() == gobreaker.StateHalfOpen}
		defer c.end(errNothing) // when the consumer stops, or fails inside
		for delta, err := range m.Model.Stream(ctx, body) {
			switch {
			case err != nil:
				c.end(outcome(ctx, err))
				yield(model.Delta{}, err)
				return
			case c.trial && delta.Visible():
				c.end(nil)
			}
			if !yield(delta, nil) {
				return
			}
		}
		c.end(nil)
	}
}

// call is a request that the breaker has let through.
type call struct {
	report func(error)
	trial  bool
	ended  bool
}

// end reports the outcome; only the first one counts.
func (c *call) end(outcome error) {
	if !c.ended {
		c.ended = true
		c.report(outcome)
	}
}

// outcome says what a failure tells of the upstream.
func outcome(ctx context.Context, err error) error {
	failed := model.AsError(err)
	switch {
	case ctx.Err() != nil, failed.Reason == continuo.ReasonCancelled, failed.Reason == continuo.ReasonInterrupted:
		return errNothing
	case failed.Retryable:
		return failed
	}
	return nil
}

// refusal is the error of a request that was not made.
func (m *Model) refusal(cause error) *model.Error {
	refused := &model.Error{Reason: continuo.ReasonUpstream, Retryable: true}
	next := "one request is trying it just now"
	if opened := m.openedAt.Load(); opened != nil && errors.Is(cause, gobreaker.ErrOpenState) {
		refused.RetryAfter = max(m.options.Cooldown-time.Since(*opened), time.Millisecond)
		next = fmt.Sprintf("it is tried again in %v", refused.RetryAfter.Round(time.Millisecond))
	}
	refused.Message = fmt.Sprintf("the upstream %s was not asked, because it keeps failing; %s", m.options.Name, next)
	return refused
}
