// Package backoff has the waits between attempts: one that a context ends, and one that doubles with each failure.
package backoff

import (
	"context"
	"time"
)

// Wait waits, and returns at once with the error of ctx when that ends.
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

// Doubled is the wait behind so many failures in a row: first behind one, twice as long behind each of the next ten, and
// never more than most. Callers that must not begin together spread it.
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
