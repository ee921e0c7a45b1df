package engine

import (
	"context"
	"fmt"
	"time"
)

// Recover closes turns whose process is gone, and returns how many; see [turn.Keeper.Recover].
func (e *Engine) Recover(ctx context.Context) (int, error) {
	recovered, err := e.keeper.RecoverAll(ctx)
	if recovered > 0 {
		e.options.Logger.WarnContext(ctx, "turns_recovered", "turns", recovered)
	}
	return recovered, err
}

// ResumeRuns resumes runs whose process is gone: those that run, that have had no event for quiet, and that have no turn
// under way. It returns how many.
func (e *Engine) ResumeRuns(ctx context.Context, quiet time.Duration) (resumed int, err error) {
	resumed, err = e.runs.ResumeAbandoned(ctx, quiet)
	if err != nil {
		err = fmt.Errorf("resume runs that broke off: %w", err)
	}
	return resumed, err
}

// quietRun is for how long nothing was heard of a run that is taken for one whose process is gone. Where it is not,
// two processes go on with it, which does no harm.
const quietRun = 10 * time.Second

// Watch looks for turns and runs whose process is gone, for events that need not be kept any longer, and for objects
// that nothing names any more, at every interval, until ctx is done. What fails is logged and tried again.
func (e *Engine) Watch(ctx context.Context, interval, keepEvents time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := e.Recover(ctx); err != nil && ctx.Err() == nil {
			e.options.Logger.ErrorContext(ctx, "recovery_failed", "error", err.Error())
		}
		if resumed, err := e.ResumeRuns(ctx, quietRun); err != nil && ctx.Err() == nil {
			e.options.Logger.ErrorContext(ctx, "runs_not_resumed", "error", err.Error())
		} else if resumed > 0 {
			e.options.Logger.WarnContext(ctx, "runs_resumed", "runs", resumed)
		}
		e.sessions.check(ctx)
		if err := e.prune(ctx, keepEvents); err != nil && ctx.Err() == nil {
			e.options.Logger.ErrorContext(ctx, "events_not_pruned", "error", err.Error())
		}
		if _, err := e.Log.Sweep(ctx); err != nil && ctx.Err() == nil {
			e.options.Logger.ErrorContext(ctx, "objects_not_swept", "error", err.Error())
		}
	}
}

// pruneAtOnce is of how many turns one write removes the events.
const pruneAtOnce = 100

// prune removes the events of turns that ended long ago.
func (e *Engine) prune(ctx context.Context, keepEvents time.Duration) error {
	for {
		pruned, err := e.Log.Turns().PruneTurnEvents(ctx, time.Now().Add(-keepEvents), pruneAtOnce)
		if err != nil || pruned < pruneAtOnce {
			return err
		}
	}
}
