// Package backoff implements the delays between attempts: one that a context ends, and one that doubles with each
// failure.
package backoff

import (
	"context"
	"time"
)

// Wait waits, and returns the error of ctx at once if that ends.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// doublings is how often a wait doubles at most: to a thousand times the first.
const doublings = 10

// Doubled is the delay after a number of consecutive failures: first after one, twice as long after each of the next
// ten, and never more than most. Callers that must not retry simultaneously add jitter.
func Doubled(first, most time.Duration, failures int) time.Duration {
	d := min(first, most)
	for range min(failures-1, doublings) {
		if d > most/2 {
			return most // 2*d may be too large for a Duration
		}
		d *= 2
	}
	return d
}
