package retry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/model/retry"
)

// bucket is an upstream with a token bucket: it takes so many requests a second and refuses the others at once.
type bucket struct {
	modeltest.Script
	perSecond, burst float64
	asks             time.Duration // Retry-After; 0 for none
	thinks           time.Duration // until the first text
	opens            chan struct{} // until it is closed, requests arrive and are neither taken nor refused; nil: at once

	mu       sync.Mutex
	tokens   float64
	filled   time.Time
	refusals int
	taken    []string // the bodies of the requests that it took, in order
}

func (b *bucket) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if b.opens != nil {
			<-b.opens
		}
		if !b.take(string(body)) {
			yield(model.Delta{}, &model.Error{
				Reason: continuo.ReasonRateLimit, Status: 429, Retryable: true, RetryAfter: b.asks, Message: "slow down",
			})
			return
		}
		select {
		case <-time.After(b.thinks):
		case <-ctx.Done():
			yield(model.Delta{}, model.ContextError(ctx))
			return
		}
		_ = yield(model.Delta{Text: "ok"}, nil) && yield(model.Delta{Finish: "stop"}, nil)
	}
}

func (b *bucket) take(body string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.filled.IsZero() {
		b.tokens = b.burst
	} else {
		b.tokens = min(b.burst, b.tokens+b.perSecond*now.Sub(b.filled).Seconds())
	}
	b.filled = now
	if b.tokens < 1 {
		b.refusals++
		return false
	}
	b.tokens--
	b.taken = append(b.taken, body)
	return true
}

// ask makes one request and returns its error.
func ask(ctx context.Context, m model.Model, body string) *model.Error {
	var failed *model.Error
	for _, err := range m.Stream(ctx, []byte(body)) {
		failed = model.AsError(err)
	}
	return failed
}

// TestABurstBeyondTheRateLimit: 200 requests that reach an upstream of 20 a second before it refuses the first of them are all
// answered, about as fast as the upstream lets them, with few requests that are refused; and a single one afterwards is
// answered at once.
func TestABurstBeyondTheRateLimit(t *testing.T) {
	for _, test := range []struct {
		name     string
		upstream *bucket
		took     time.Duration // at most, for all
		refusals int           // at most, besides the 180 of the burst
	}{
		{"quick", &bucket{perSecond: 20, burst: 20, asks: time.Second}, 14 * time.Second, 120},
		{"thinks for 20 s", &bucket{perSecond: 20, burst: 20, asks: time.Second, thinks: 20 * time.Second}, 55 * time.Second, 120},
		{"does not say how long", &bucket{perSecond: 20, burst: 20}, 14 * time.Second, 120},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := 0
				test.upstream.opens = make(chan struct{})
				m := retry.New(test.upstream, retry.Options{OnLimit: func(time.Duration, int) { limits++ }})
				begin := time.Now()
				var all sync.WaitGroup
				for range 200 {
					all.Go(func() {
						if failed := ask(t.Context(), m, ""); failed != nil {
							t.Errorf("refused: %v", failed)
						}
					})
				}
				synctest.Wait()
				close(test.upstream.opens)
				all.Wait()
				took, refused := time.Since(begin), test.upstream.refusals-180
				t.Logf("took %v; %d refusals besides the burst's, in %d limits", took, refused, limits)
				if took > test.took || refused > test.refusals || limits == 0 || limits > 20 {
					t.Errorf("took %v, want %v; %d refusals, want %d; told of %d limits", took, test.took, refused, test.refusals, limits)
				}
				time.Sleep(time.Second)
				if failed := ask(t.Context(), m, ""); failed != nil || time.Since(begin)-took != time.Second+test.upstream.thinks {
					t.Errorf("one alone: %v after %v", failed, time.Since(begin)-took)
				}
				synctest.Wait()
			})
		})
	}
}

// TestTheLineIsFair: requests are taken in the order in which they came, those that were refused included, and one
// that leaves the line takes nobody else's place.
func TestTheLineIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := &bucket{perSecond: 1, burst: 1, asks: time.Second}
		m := retry.New(upstream, retry.Options{})
		gone, leave := context.WithCancel(t.Context())
		var want []string
		for n := range 30 {
			body, ctx := fmt.Sprint(n), t.Context()
			if n%10 == 5 {
				ctx = gone
			} else {
				want = append(want, body)
			}
			go func() {
				if failed := ask(ctx, m, body); failed != nil && ctx != gone {
					t.Errorf("%s: %v", body, failed)
				}
			}()
			synctest.Wait()
		}
		leave()
		time.Sleep(time.Minute)
		synctest.Wait() // orders what the requests wrote before what is read here
		if !slices.Equal(upstream.taken, want) {
			t.Errorf("taken %v, want %v", upstream.taken, want)
		}
	})
}

// TestWhatWaitsTooLong: a request does not wait when that is in vain, waits for as long as it may otherwise, and is told
// in how long to come again.
func TestWhatWaitsTooLong(t *testing.T) {
	for _, test := range []struct {
		name   string
		asks   time.Duration
		within time.Duration // of the caller
		took   time.Duration
		after  time.Duration // Retry-After of the error
	}{
		{"asks for longer", time.Hour, 24 * time.Hour, 0, time.Hour},
		{"asks for longer than the turn has", 20 * time.Second, 10 * time.Second, 0, 20 * time.Second},
		{"asks again and again", 25 * time.Second, 24 * time.Hour, 50 * time.Second, 25 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := retry.New(&bucket{asks: test.asks}, retry.Options{QueueSetting: "turn.wait_timeout"})
				ctx, cancel := context.WithTimeout(t.Context(), test.within)
				defer cancel()
				begin := time.Now()
				failed := ask(ctx, m, "")
				if failed == nil || failed.Reason != continuo.ReasonRateLimit || !failed.Retryable || failed.RetryAfter != test.after || time.Since(begin) != test.took {
					t.Errorf("after %v: %+v", time.Since(begin), failed)
				}
				if !strings.Contains(failed.Message, "slow down: a request waits for at most 1m0s") || !strings.Contains(failed.Message, "turn.wait_timeout") {
					t.Errorf("says %q", failed.Message)
				}
				if test.took > 0 {
					return // the limit is over before the next one has waited for too long
				}
				if failed = ask(ctx, m, ""); failed == nil || !strings.Contains(failed.Message, "this one was not sent") {
					t.Errorf("the next one: %v", failed)
				}
			})
		})
	}
}

func TestLeavingTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := retry.New(&bucket{asks: 30 * time.Second}, retry.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		begin := time.Now()
		if failed := ask(ctx, m, ""); !errors.Is(failed, context.Canceled) || time.Since(begin) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), failed)
		}
	})
}
