package engine

import (
	"context"
	"errors"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

// steps takes a run's steps until nothing is left to do. One that is alone is carried out here, several side by side.
func (e *Engine) steps(ctx context.Context, run continuo.Run) error {
	t := newTracker(e, run)
	ctx, cancel := context.WithCancelCause(ctx)
	beside := &besides{engine: e, busy: map[string]bool{}, changed: make(chan struct{}, 1)}
	defer beside.wait()
	defer func() { cancel(context.Cause(ctx)) }()
	listener := e.Log.Listen(run.ConversationID)
	defer listener.Close()
	for ctx.Err() == nil {
		changed := listener.Changed()
		if err := beside.failed(); err != nil {
			cancel(err)
			return err
		}
		if err := t.catchUp(ctx); err != nil {
			return err
		}
		steps := t.state.Steps()
		switch {
		case len(steps) == 0:
			beside.wait()
			e.metrics.RunRests(t.state.Run)
			e.options.Logger.InfoContext(ctx, "run_rests", "conversation_id", run.ConversationID, "run_id", run.ID, "state", t.state.Run, "reason", e.spoken(t.state.Reason))
			return beside.failed()
		case len(steps) == 1 && !steps[0].Beside && !beside.any() && steps[0].Branch == "":
			if err := e.take(ctx, t, steps[0]); err != nil && !errors.Is(err, errMoved) {
				return err
			}
		case steps[0].Kind == workflow.StepRecord:
			if err := e.recordRun(ctx, t, t.state.Record()); err != nil && !errors.Is(err, errMoved) {
				return err
			}
		default:
			begun, err := e.branchOff(ctx, t, steps)
			if err != nil && !errors.Is(err, errMoved) {
				return err
			}
			if begun {
				continue
			}
			for _, step := range steps {
				if !step.Beside {
					beside.start(ctx, t.clone(), step)
				}
			}
			if !beside.await(ctx, listener, changed) {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// take does what a step says.
func (e *Engine) take(ctx context.Context, t *tracker, step workflow.Step) error {
	switch {
	case step.Kind == workflow.StepRecord:
		return e.recordRun(ctx, t, t.state.Record())
	case step.Kind == workflow.StepBegin && step.Branch != "":
		return e.stepBeside(ctx, t, step)
	case step.Kind == workflow.StepBegin:
		err := e.step(ctx, t, step)
		e.leaveRoom(ctx, 0)
		return err
	case step.Kind == workflow.StepAttend && step.Branch != "":
		return e.attendBeside(ctx, t, step)
	case step.Kind == workflow.StepAttend:
		return e.attend(ctx, t, step)
	}
	return e.awaitRetry(ctx, t, step)
}

// besides are the steps of a run that this process takes side by side.
type besides struct {
	engine  *Engine
	group   sync.WaitGroup
	mu      sync.Mutex
	busy    map[string]bool // by node
	err     error           // the first that stays
	changed chan struct{}   // has room for one: a step was taken
}

// start takes a step, unless one of its node is being taken. What fails for a reason that passes is tried again.
func (b *besides) start(ctx context.Context, t *tracker, step workflow.Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[step.Node.ID] {
		return
	}
	b.busy[step.Node.ID] = true
	b.group.Go(func() {
		err := b.engine.take(ctx, t, step)
		if passes(err) {
			b.engine.options.Logger.WarnContext(ctx, "run_waits", "run_id", t.run.ID, "node_id", step.Node.ID, "error", err.Error())
			b.engine.pause(ctx, drivePatience)
			err = nil
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.busy, step.Node.ID)
		if err != nil && !errors.Is(err, errMoved) && b.err == nil {
			b.err = err
		}
		select {
		case b.changed <- struct{}{}:
		default:
		}
	})
}

func (b *besides) wait() { b.group.Wait() }

func (b *besides) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *besides) any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.busy) > 0
}

// await waits until a step was taken or the run's log may have changed; false when ctx is done.
func (b *besides) await(ctx context.Context, listener *continuo.Listener, logged <-chan struct{}) bool {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	took := make(chan struct{})
	go func() {
		defer close(took)
		select {
		case <-b.changed:
			cancel()
		case <-waits.Done():
		}
	}()
	listener.Wait(waits, logged, retryPoll)
	cancel()
	<-took
	return ctx.Err() == nil
}

// passes reports whether an error says that something can be done a little later.
func passes(err error) bool {
	return errors.Is(err, continuo.ErrUnavailable) || errors.Is(err, continuo.ErrBusy) || errors.Is(err, ErrTooManyTurns)
}
