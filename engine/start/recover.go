package start

import (
	"context"
	"time"
)

// Recover closes turns whose process is gone, and returns how many; see [turn.Keeper.Recover].
func (ts *Turns) Recover(ctx context.Context) (int, error) {
	recovered, err := ts.keeper.RecoverAll(ctx)
	if recovered > 0 {
		ts.options.Logger.WarnContext(ctx, "turns_recovered", "turns", recovered)
	}
	return recovered, err
}

// pruneAtOnce is the number of turns whose events one write deletes.
const pruneAtOnce = 100

// Prune deletes the events of turns that ended more than keepEvents ago.
func (ts *Turns) Prune(ctx context.Context, keepEvents time.Duration) error {
	for {
		pruned, err := ts.log.Turns().PruneTurnEvents(ctx, time.Now().Add(-keepEvents), pruneAtOnce)
		if err != nil || pruned < pruneAtOnce {
			return err
		}
	}
}
