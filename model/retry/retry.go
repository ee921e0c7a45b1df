// Package retry tries a model's request again when it failed for a passing reason and nothing of the
// answer has been shown yet.
//
// What a reader could not see (usage, the model's exact name) is held back until the first visible piece
// comes. From then on the attempt is the answer, whatever becomes of it: a reader never sees text twice.
// Waits grow exponentially and are drawn from zero to the whole of it (full jitter), so that callers that
// failed together do not come back together; what the provider asks for in Retry-After is the least.
//
// Pitfalls: each attempt is a request of its own, so limits on the time of one belong inside this wrapper.
package retry

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/continuo-log/continuo/model"
)

// Options bounds the attempts.
type Options struct {
	// Attempts is how often a request is made at most, the first time included. Default 4.
	Attempts int
	// FirstWait is the most that is waited after the first failure; it doubles with each one. Default 500 ms.
	FirstWait time.Duration
	// MaxWait is the most that is waited at once. A provider that asks for more gets no further attempt.
	// Default 30 s.
	MaxWait time.Duration
	// MaxTotal is how long after the beginning of the first attempt a last one may begin. Default 2 min.
	MaxTotal time.Duration
	// OnRetry is told of each failure that another attempt follows: the failed attempt, from 1, its error,
	// and the wait until the next one. Default none. It must be safe for concurrent use.
	OnRetry func(attempt int, err error, wait time.Duration)
	// Random gives numbers from 0 up to 1, 1 left out. Default rand.Float64. It must be safe for concurrent use.
	Random func() float64
}

// Model is a model whose requests are tried again. It is safe for concurrent use.
type Model struct {
	model.Model
	options Options
}

// New wraps a model.
func New(inner model.Model, options Options) *Model {
	options.Attempts = cmp.Or(options.Attempts, 4)
	options.FirstWait = cmp.Or(options.FirstWait, 500*time.Millisecond)
	options.MaxWait = cmp.Or(options.MaxWait, 30*time.Second)
	options.MaxTotal = cmp.Or(options.MaxTotal, 2*time.Minute)
	if options.OnRetry == nil {
		options.OnRetry = func(int, error, time.Duration) {}
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return &Model{Model: inner, options: options}
}

// Stream sends body until an attempt shows something, and yields that attempt; see [model.Model]. The
// error is the last attempt's, with how often it was tried in its message.
func (m *Model) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		begin := time.Now()
		for tried := 1; ; tried++ {
			a := attempt{yield: yield}
			failed := a.run(m.Model.Stream(ctx, body))
			if failed == nil {
				return
			}
			wait, note, again := m.next(ctx, failed, tried, begin)
			if a.shown || !again {
				a.fail(explained(failed, tried, note))
				return
			}
			m.options.OnRetry(tried, failed, wait)
			if err := pause(ctx, wait); err != nil {
				yield(model.Delta{}, err)
				return
			}
		}
	}
}

// next decides whether to try again after a failure, and when. The note says why not, where that is not
// plain from the failure itself.
func (m *Model) next(ctx context.Context, failed *model.Error, tried int, begin time.Time) (wait time.Duration, note string, again bool) {
	if !failed.Retryable || tried >= m.options.Attempts || ctx.Err() != nil {
		return 0, "", false
	}
	wait = max(m.backoff(tried), failed.RetryAfter)
	deadline, limited := ctx.Deadline()
	switch {
	case wait > m.options.MaxWait:
		return 0, fmt.Sprintf("it asks to wait %v, longer than the limit of %v", failed.RetryAfter, m.options.MaxWait), false
	case limited && time.Until(deadline) <= wait:
		return 0, fmt.Sprintf("another try after %v would be too late for the turn", wait.Round(time.Millisecond)), false
	case time.Since(begin)+wait > m.options.MaxTotal:
		return 0, fmt.Sprintf("another try after %v would exceed the limit of %v for all tries", wait.Round(time.Millisecond), m.options.MaxTotal), false
	}
	return wait, "", true
}

// backoff draws the wait after a failed attempt.
func (m *Model) backoff(tried int) time.Duration {
	ceiling := m.options.FirstWait
	for range tried - 1 {
		if ceiling >= m.options.MaxWait {
			break
		}
		ceiling *= 2
	}
	return time.Duration(m.options.Random() * float64(min(ceiling, m.options.MaxWait)))
}

// pause waits, and returns at once when ctx ends.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return model.ContextError(ctx)
	}
}

// explained is a failure with what was done about it in its message.
func explained(failed *model.Error, tried int, note string) *model.Error {
	told := *failed
	if tried > 1 {
		told.Message += fmt.Sprintf(" (tried %d times)", tried)
	}
	if note != "" {
		told.Message += ": " + note
	}
	return &told
}
