package engine

import (
	"context"
	"time"
)

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
			e.logger.ErrorContext(ctx, "recovery_failed", "error", err.Error())
		}
		if resumed, err := e.Runs.ResumeAbandoned(ctx, quietRun); err != nil && ctx.Err() == nil {
			e.logger.ErrorContext(ctx, "runs_not_resumed", "error", err.Error())
		} else if resumed > 0 {
			e.logger.WarnContext(ctx, "runs_resumed", "runs", resumed)
		}
		e.Crews.CheckSessions(ctx)
		if err := e.Turns.Prune(ctx, keepEvents); err != nil && ctx.Err() == nil {
			e.logger.ErrorContext(ctx, "events_not_pruned", "error", err.Error())
		}
		if _, err := e.log.Sweep(ctx); err != nil && ctx.Err() == nil {
			e.logger.ErrorContext(ctx, "objects_not_swept", "error", err.Error())
		}
	}
}
