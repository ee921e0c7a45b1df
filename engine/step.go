package engine

import (
	"context"
	"errors"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/turn"
)

// stepTurn is the turn of an attempt.
type stepTurn struct {
	chosen     resolvedTurn
	prepare    prepareFunc
	leaseFirst bool // see turnStart
	// observe receives the turn's events and may replace their errors; nil for neither.
	observe func(turn.Event, error) error
}

// runStep runs the turn of an attempt, or waits for it where another process runs it.
func (ts *Turns) runStep(ctx context.Context, driver *durable.Driver, run continuo.Run, step durable.Step, t stepTurn) error {
	wanted := durable.TurnOf(run, step)
	wanted.Mode, wanted.AgentID, wanted.View, wanted.Model = t.chosen.mode, t.chosen.agent, t.chosen.viewName, t.chosen.model
	return driver.RunTurn(ctx, wanted, func() (iter.Seq2[turn.Event, error], error) {
		chat, err := ts.startTurn(ctx, turnStart{project: run.ProjectID, wanted: wanted, policy: Wait, prepare: t.prepare, leaseFirst: t.leaseFirst})
		if err != nil {
			return nil, err
		}
		return chat.Events, nil
	}, t.observe)
}

// isTransient reports whether a retry a little later may succeed after an error.
func isTransient(err error) bool {
	return errors.Is(err, continuo.ErrUnavailable) || errors.Is(err, continuo.ErrBusy) || errors.Is(err, ErrTooManyTurns)
}
