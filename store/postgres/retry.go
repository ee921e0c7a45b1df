package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	firstPause   = 5 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// errRetry means that a transaction wrote nothing because of a conflict with another one.
var errRetry = errors.New("another transaction was in the way")

// retryTransient calls attempt until it succeeds, fails permanently, or Options.Patience has passed, and
// returns the result of the last call. It makes no call if ctx is already cancelled, and does not interrupt a
// call.
func (s *Store) retryTransient(ctx context.Context, attempt func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	began := time.Now()
	for pause := time.Duration(0); ; pause = min(max(2*pause, firstPause), longestPause) {
		err := attempt()
		if err == nil || ctx.Err() != nil || !passes(err) || time.Since(began)+pause > s.options.Patience {
			return orCancelled(ctx, err)
		}
		if !s.gate.wait(ctx, pause/2+rand.N(pause/2+1)) {
			return orCancelled(ctx, err)
		}
	}
}

// orCancelled returns the error of ctx if a cancellation caused the failure.
func orCancelled(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !isVerdict(err) {
		return ctx.Err()
	}
	return err
}
