// Package breaker is a circuit breaker for a model: it stops sending requests to an upstream that keeps
// failing, so that callers fail fast and the upstream is not loaded. After a cooldown it sends one request,
// the trial.
//
// Only failures of the upstream itself count: time limits, broken connections, its own errors (5xx). A rate
// limit, or a request refused for its content, shows that the upstream works. A request that its caller
// cancelled, or whose time ran out, shows nothing.
//
// Failures arrive sooner than answers: of many streams that begin at once, those that break end first. So the
// breaker opens only if consecutive failures outnumber the answers in progress that have shown something.
//
// The trial is a caller's request. If it fails, it waits for the next trial within Patience, so that the
// caller has no disadvantage. Requests that arrive during a trial wait for its outcome.
//
// Pitfalls: the trial has passed with the first visible piece of its answer, so that a long answer does not
// block other requests.
package breaker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/backoff"
	"github.com/continuo-log/continuo/model"
)

// State is the state of a breaker.
type State string

// The states: every request passes, one trial request passes, no request passes.
const (
	Closed   State = "closed"
	HalfOpen State = "half_open"
	Open     State = "open"
)

// Options configures a breaker.
type Options struct {
	// Name is the upstream's name in messages. Default the provider's.
	Name string
	// Failures is how many consecutive failures open the breaker, unless more answers are in progress. Default
	// 5.
	Failures int
	// Cooldown is how long it stays open before a trial. Default 30 s.
	Cooldown time.Duration
	// Patience is how long a request waits for the outcome of a trial, and a failed trial for the next one.
	// Default 0: they fail at once, for callers with another model as a fallback.
	Patience time.Duration
	// OnChange is called with each new state, in order. It must not use the model. Default none.
	OnChange func(State)
}

// Model is a model behind a breaker. It is safe for concurrent use.
type Model struct {
	model.Model
	options    Options
	breaker    *gobreaker.TwoStepCircuitBreaker[struct{}]
	openedAt   atomic.Pointer[time.Time]
	inProgress atomic.Int64 // answers that have shown something and have not ended

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at the end of each trial
}

// errNothing is the outcome of a request that shows nothing about the upstream.
var errNothing = errors.New("nothing is known")

// New wraps a model.
func New(inner model.Model, options Options) *Model {
	options.Name = cmp.Or(options.Name, inner.Info().Provider)
	options.Failures = cmp.Or(options.Failures, 5)
	options.Cooldown = cmp.Or(options.Cooldown, 30*time.Second)
	if options.OnChange == nil {
		options.OnChange = func(State) {}
	}
	m := &Model{Model: inner, options: options, changed: make(chan struct{})}
	m.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Timeout: options.Cooldown, OnStateChange: m.enters,
		ReadyToTrip: func(counts gobreaker.Counts) bool {
			row := int64(counts.ConsecutiveFailures)
			return row >= int64(options.Failures) && row > m.inProgress.Load()
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errNothing) },
	})
	return m
}

// enters handles a change of the breaker's state.
func (m *Model) enters(_ string, _, to gobreaker.State) {
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
		until := time.Now().Add(m.options.Patience)
		for {
			c, refused := m.enter(ctx, until)
			if refused != nil {
				yield(model.Delta{}, refused)
				return
			}
			failed := c.run(ctx, m.Model.Stream(ctx, body), yield)
			if failed == nil {
				return
			}
			if !c.failedTrial || m.pause(ctx, until) != nil {
				yield(model.Delta{}, failed)
				return
			}
		}
	}
}

// enter admits a request, or returns why not. During a trial it waits for the outcome.
func (m *Model) enter(ctx context.Context, until time.Time) (*call, *model.Error) {
	for {
		changed := m.trialEnds()
		if ended := model.ContextError(ctx); ended != nil {
			return nil, ended
		}
		report, err := m.breaker.Allow()
		if err == nil {
			return &call{m: m, report: report, trial: m.breaker.State() == gobreaker.StateHalfOpen}, nil
		}
		wait := time.Until(until)
		if !errors.Is(err, gobreaker.ErrTooManyRequests) || wait <= 0 {
			return nil, m.refusal(err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// pause waits after a failed trial until the next one may begin. It fails if that is later than until.
func (m *Model) pause(ctx context.Context, until time.Time) error {
	left := m.cooldownLeft()
	if time.Now().Add(left).After(until) {
		return context.DeadlineExceeded
	}
	return backoff.Wait(ctx, left+time.Nanosecond) // the breaker is open during the whole cooldown
}

// trialEnds returns a channel that is closed at the end of the next trial.
func (m *Model) trialEnds() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// cooldownLeft is how long the breaker stays open.
func (m *Model) cooldownLeft() time.Duration {
	opened := m.openedAt.Load()
	if opened == nil {
		return 0
	}
	return max(m.options.Cooldown-time.Since(*opened), 0)
}

// call is an admitted request.
type call struct {
	m           *Model
	report      func(error)
	trial       bool
	shown, left bool // a visible piece of the answer was shown; the answer is over
	failedTrial bool // and nothing was shown
	ended       bool
}

// run yields an answer. It returns the failure, which the caller still has to yield.
func (c *call) run(ctx context.Context, answer iter.Seq2[model.Delta, error], yield func(model.Delta, error) bool) error {
	defer c.end(errNothing) // when the consumer stops, or panics
	defer c.leave()
	for delta, err := range answer {
		switch {
		case err != nil:
			counts := outcome(ctx, err)
			c.failedTrial = c.trial && !c.shown && counts != nil && !errors.Is(counts, errNothing)
			c.leave()
			c.end(counts)
			return err
		case delta.Visible():
			c.show()
		}
		if !yield(delta, nil) {
			return nil
		}
	}
	c.end(nil)
	return nil
}

// show counts the call among the answers in progress. A trial has then passed.
func (c *call) show() {
	if c.shown {
		return
	}
	c.shown = true
	c.m.inProgress.Add(1)
	if c.trial {
		c.end(nil)
	}
}

// leave removes the call from the answers in progress.
func (c *call) leave() {
	if c.shown && !c.left {
		c.left = true
		c.m.inProgress.Add(-1)
	}
}

// end reports the outcome; only the first one counts.
func (c *call) end(outcome error) {
	if c.ended {
		return
	}
	c.ended = true
	c.report(outcome)
	if !c.trial {
		return
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	close(c.m.changed)
	c.m.changed = make(chan struct{})
}

// outcome returns what a failure shows about the upstream.
func outcome(ctx context.Context, err error) error {
	failed := model.AsError(err)
	switch {
	case ctx.Err() != nil, failed.Reason == continuo.ReasonCancelled, failed.Reason == continuo.ReasonInterrupted:
		return errNothing
	case failed.Reason == continuo.ReasonRateLimit, failed.Status >= 400 && failed.Status < 500:
		return nil
	case failed.Retryable:
		return failed
	}
	return nil
}

// refusal is the error of a request that was not made.
func (m *Model) refusal(cause error) *model.Error {
	refused := &model.Error{Reason: continuo.ReasonUpstream, Retryable: true}
	next := "one request is trying it just now"
	refused.RetryAfter = time.Second
	if errors.Is(cause, gobreaker.ErrOpenState) {
		refused.RetryAfter = max(m.cooldownLeft(), time.Millisecond)
		next = fmt.Sprintf("it is tried again in %v", refused.RetryAfter.Round(time.Millisecond))
	}
	refused.Message = fmt.Sprintf("the upstream %s was not called, because its circuit breaker is open; %s", m.options.Name, next)
	return refused
}
