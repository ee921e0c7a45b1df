// Package retry retries a model's request after a transient failure, if nothing of the answer has been shown
// yet.
//
// Invisible deltas (usage, the model's exact name) are held back until the first visible piece. From then on
// the attempt is final, even if it fails: a reader never sees text twice. Waits grow exponentially and are
// random between zero and the maximum (full jitter), so that callers that failed together do not retry
// together; the provider's Retry-After is the minimum.
//
// A rate limit is not a failure: the requests of all callers wait in one queue, in order of arrival, until
// the upstream accepts them again (see queue). A rate-limited request does not count as an attempt.
//
// Pitfalls: each attempt is a request of its own, so timeouts of a request belong inside this wrapper.
package retry

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/backoff"
	"github.com/continuo-log/continuo/model"
)

// Options bounds the attempts.
type Options struct {
	// Attempts is the maximum number of requests, including the first. Default 4.
	Attempts int
	// FirstWait is the longest wait after the first failure; it doubles with each one. Default 500 ms.
	FirstWait time.Duration
	// MaxWait is the longest single wait. If a provider asks for more, there is no further attempt. Default
	// 30 s.
	MaxWait time.Duration
	// MaxTotal is how long after the start of the first attempt a last one may begin. Default 2 min.
	MaxTotal time.Duration
	// QueueWait bounds how long a request waits in total while the upstream limits the rate. Default 1 min.
	QueueWait time.Duration
	// QueueSetting is the name of QueueWait's setting in messages. Default none.
	QueueSetting string
	// OnLimit is called when the upstream begins to limit the rate, or limits it again after it had accepted
	// requests, with how long nothing is sent and how many requests wait. It must be quick, and must not use
	// the model. Default none.
	OnLimit func(wait time.Duration, waiting int)
	// OnRetry is called before each retry, with the number of the failed attempt, from 1, its error, and the
	// wait until the next one. Default none. It must be safe for concurrent use.
	OnRetry func(attempt int, err error, wait time.Duration)
	// Random returns numbers in [0, 1). Default rand.Float64. It must be safe for concurrent use.
	Random func() float64
}

// Model is a model whose requests are retried. It is safe for concurrent use.
type Model struct {
	model.Model
	options Options
	queue   queue
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
	if options.OnLimit == nil {
		options.OnLimit = func(time.Duration, int) {}
	}
	options.QueueWait = cmp.Or(options.QueueWait, time.Minute)
	return &Model{
		Model: inner, options: options,
		queue: queue{random: options.Random, onLimit: options.OnLimit, setting: options.QueueSetting},
	}
}

// Stream sends body until an attempt yields visible output, and yields that attempt; see [model.Model]. The
// error is the last attempt's, and its message contains the number of attempts. A request that forwards a client's
// ([model.WithForwarding]) is sent once.
func (m *Model) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	if model.ForwardingOf(ctx) != nil {
		return m.Model.Stream(ctx, body) // the client retries
	}
	return func(yield func(model.Delta, error) bool) {
		r := request{m: m, ctx: ctx, body: body, yield: yield, ticket: m.queue.arrive(m.options.QueueWait), begin: time.Now()}
		r.run()
	}
}

// request is one call of Stream, with all of its attempts.
type request struct {
	m       *Model
	ctx     context.Context //nolint:containedctx // lives as long as the call
	body    []byte
	yield   func(model.Delta, error) bool
	ticket  *ticket
	begin   time.Time    // start of the first attempt, without the time in the queue
	refused *model.Error // error of the newest attempt, if it was refused because of the rate
	tried   int          // number of attempts, without refused ones
}

func (r *request) run() {
	for {
		queued := time.Now()
		pass, err := r.ticket.enter(r.ctx, r.refused)
		if err != nil {
			r.yield(model.Delta{}, err)
			return
		}
		r.begin = r.begin.Add(time.Since(queued))
		if r.attempt(pass) {
			return
		}
	}
}

// attempt makes one attempt, and waits if another follows. It reports whether it was the last.
func (r *request) attempt(pass *pass) (last bool) {
	a := attempt{yield: r.yield, accepted: pass.accepted}
	failed := a.run(r.m.Model.Stream(r.ctx, r.body))
	limited := failed != nil && failed.Reason == continuo.ReasonRateLimit && failed.Retryable && !a.shown
	if limited {
		r.refused = failed
		r.m.options.OnRetry(r.tried+1, failed, pass.refused(failed.RetryAfter))
		return false
	}
	pass.ended()
	if failed == nil {
		return true
	}
	r.tried++
	wait, note, again := r.m.next(r.ctx, failed, r.tried, r.begin)
	if a.shown || !again {
		a.fail(explained(failed, r.tried, note))
		return true
	}
	r.m.options.OnRetry(r.tried, failed, wait)
	if backoff.Wait(r.ctx, wait) != nil {
		r.yield(model.Delta{}, model.ContextError(r.ctx))
		return true
	}
	return false
}

// next decides whether to retry after a failure, and when. The note says why not, if the failure itself does
// not show it.
func (m *Model) next(ctx context.Context, failed *model.Error, tried int, begin time.Time) (wait time.Duration, note string, again bool) {
	if failed.Costly {
		return 0, "it is not retried automatically, because the upstream had begun to work and a retry costs as much", false
	}
	if !failed.Retryable || model.IsFormatRefusal(failed) || tried >= m.options.Attempts || ctx.Err() != nil {
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

// backoff returns a random wait after a failed attempt.
func (m *Model) backoff(tried int) time.Duration {
	return time.Duration(m.options.Random() * float64(backoff.Doubled(m.options.FirstWait, m.options.MaxWait, tried)))
}

// explained adds the number of attempts and the note to a failure's message.
func explained(failed *model.Error, tried int, note string) *model.Error {
	final := *failed
	if tried > 1 {
		final.Message = strings.TrimRight(final.Message, ".") + fmt.Sprintf(" (tried %d times)", tried)
	}
	if note != "" {
		final.Message += ": " + note
	}
	return &final
}
