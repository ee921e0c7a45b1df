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

// errAgain says that another transaction was in the way of one that wrote nothing.
var errAgain = errors.New("another transaction was in the way")

// retryTransient calls attempt until it succeeds or fails for good, or until Options.Patience has passed, and
// returns what the last call did. The first call is made whatever ctx says; whoever begins something that
// is not safe to break off looks at ctx before.
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

// orCancelled says that the caller gave up where that is why something failed.
func orCancelled(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !isVerdict(err) {
		return ctx.Err()
	}
	return err
}
