package durable

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Execution is a run that a worker drives; see [Execute].
type Execution interface {
	// Advance takes steps until none is due, or one fails.
	Advance(ctx context.Context) error
	// BreakOff and IsSupported are those of the machine.
	BreakOff(ctx context.Context, reason string) error
	IsSupported(ctx context.Context) bool
}

// Execute makes the execution of a machine.
func Execute[K Attempt[K]](d *Driver, run continuo.Run, m Machine[K]) Execution {
	return &execution[K]{Machine: m, driver: d, run: run}
}

type execution[K Attempt[K]] struct {
	Machine[K]
	driver *Driver
	run    continuo.Run
}

// Advance executes a single step in this goroutine, and several in one goroutine each.
func (x *execution[K]) Advance(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	branches := newBranches(x)
	defer branches.wait()
	defer func() { cancel(context.Cause(ctx)) }()
	listener := x.driver.options.Log.Listen(x.run.ConversationID)
	defer listener.Close()
	for ctx.Err() == nil {
		changed := listener.Changed()
		if err := branches.failed(); err != nil {
			cancel(err)
			return err
		}
		if err := x.CatchUp(ctx); err != nil {
			return err
		}
		steps := x.Steps()
		if len(steps) == 0 {
			branches.wait()
			x.Idle(ctx)
			return branches.failed()
		}
		var err error
		switch first := x.Describe(steps[0]); {
		case first.Kind == Record:
			_, err = x.Append(ctx, x.Record()...)
		case len(steps) == 1 && !first.Branched && !branches.any():
			err = x.take(ctx, steps[0])
		default:
			err = branches.take(ctx, steps, listener, changed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take executes a step.
func (x *execution[K]) take(ctx context.Context, step K) error {
	described := x.Describe(step)
	switch described.Kind {
	case Attend:
		return x.attend(ctx, step, described)
	case Wait:
		return x.awaitRetry(ctx, step, described)
	}
	err := x.Begin(ctx, step)
	if !described.Branched {
		x.driver.yieldToOthers(ctx, 0)
	}
	return err
}

// attend waits for the turn of an attempt that has begun, and applies its result.
func (x *execution[K]) attend(ctx context.Context, step K, described Step) error {
	found, err := x.driver.findTurn(ctx, described.ConversationID, TurnOf(x.run, described).ID)
	switch {
	case err != nil:
		return err
	case found == nil:
		return x.follow(ctx, x.Lost(step))
	case found.State == continuo.TurnRunning:
		return x.driver.AwaitTurn(ctx, found.ConversationID, found.ID)
	}
	// The turn's entries are in the log by now, but may be newer than what was read.
	if err := x.CatchUp(ctx); err != nil {
		return err
	}
	now, nowDescribed := x.current(described.Name) // the step may have been stopped and resumed meanwhile
	if nowDescribed.Kind != Attend || !nowDescribed.SameAttempt(described) {
		return nil
	}
	decision, err := x.Ended(ctx, now, *found)
	if err != nil {
		return err
	}
	return x.follow(ctx, decision)
}

// current is the due step of a name, by the entries that were read; the zero Step for none.
func (x *execution[K]) current(name string) (step K, described Step) {
	for _, step := range x.Steps() {
		if described := x.Describe(step); described.Name == name && described.Kind != Record {
			return step, described
		}
	}
	return step, described
}

// follow applies the decision on an attempt.
func (x *execution[K]) follow(ctx context.Context, decision Decision[K]) error {
	if decision.Next == nil || len(decision.Entries) > 0 {
		_, err := x.Append(ctx, decision.Entries...)
		return err
	}
	if decision.Yield {
		x.driver.yieldToOthers(ctx, decision.Attempts)
	}
	return x.Begin(ctx, *decision.Next)
}

// retryPoll is how often a run that waits to retry a step is polled, where the store does not report changes.
const retryPoll = 5 * time.Second

// awaitRetry waits until the next attempt of a step may begin, or until the run has changed, and begins the attempt.
func (x *execution[K]) awaitRetry(ctx context.Context, step K, described Step) error {
	wait := described.Until.Sub(x.driver.options.Log.Now())
	if wait <= 0 {
		return x.Begin(ctx, step.After())
	}
	ctx, cancel := x.driver.untilDraining(ctx)
	defer cancel()
	listener := x.driver.options.Log.Listen(x.run.ConversationID)
	defer listener.Close()
	changed := listener.Changed()
	if err := x.CatchUp(ctx); err != nil {
		return err
	}
	if _, now := x.current(described.Name); now.Kind != Wait {
		return nil
	}
	listener.Wait(ctx, changed, min(wait, retryPoll))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
