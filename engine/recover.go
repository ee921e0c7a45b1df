package engine

import (
	"context"
	"fmt"
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

// ResumeAbandoned resumes runs whose process is gone: those in the state running with no event for the time quiet and no
// turn under way. It returns how many.
func (rs *Runs) ResumeAbandoned(ctx context.Context, quiet time.Duration) (resumed int, err error) {
	resumed, err = rs.driver.ResumeAbandoned(ctx, quiet)
	if err != nil {
		err = fmt.Errorf("resume runs that broke off: %w", err)
	}
	return resumed, err
}

// quietRun is the time without an event after which a run's process is assumed gone. If it is not, two processes
// drive the run, which is harmless.
const quietRun = 10 * time.Second

// Watch closes turns and resumes runs whose process is gone, checks the programs of roles, and deletes expired turn
// events and unreferenced objects, at every interval, until ctx is done. Failures are logged and retried at the next
// interval.
func (e *Engine) Watch(ctx context.Context, interval, keepEvents time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := e.Turns.Recover(ctx); err != nil && ctx.Err() == nil {
			e.options.Logger.ErrorContext(ctx, "recovery_failed", "error", err.Error())
		}
		if resumed, err := e.Runs.ResumeAbandoned(ctx, quietRun); err != nil && ctx.Err() == nil {
			e.options.Logger.ErrorContext(ctx, "runs_not_resumed", "error", err.Error())
		} else if resumed > 0 {
			e.options.Logger.WarnContext(ctx, "runs_resumed", "runs", resumed)
		}
		e.Crews.sessions.check(ctx)
		if err := e.Turns.prune(ctx, keepEvents); err != nil && ctx.Err() == nil {
			e.options.Logger.ErrorContext(ctx, "events_not_pruned", "error", err.Error())
		}
		if _, err := e.Log.Sweep(ctx); err != nil && ctx.Err() == nil {
			e.options.Logger.ErrorContext(ctx, "objects_not_swept", "error", err.Error())
		}
	}
}

// pruneAtOnce is the number of turns whose events one write deletes.
const pruneAtOnce = 100

// prune deletes the events of turns that ended more than keepEvents ago.
func (ts *Turns) prune(ctx context.Context, keepEvents time.Duration) error {
	for {
		pruned, err := ts.log.Turns().PruneTurnEvents(ctx, time.Now().Add(-keepEvents), pruneAtOnce)
		if err != nil || pruned < pruneAtOnce {
			return err
		}
	}
}
