package engine

import (
	"context"
	"errors"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/turn"
)

// runStep runs the turn of an attempt, or waits for it where another process runs it. Observe receives the turn's
// events and may replace their errors; nil for neither.
func (ts *Turns) runStep(
	ctx context.Context, driver *durable.Driver, run continuo.Run, step durable.Step, chosen resolvedTurn, begin prepareFunc, observe func(turn.Event, error) error,
) error {
	wanted := durable.TurnOf(run, step)
	wanted.Mode, wanted.AgentID, wanted.View, wanted.Model = chosen.mode, chosen.agent, chosen.viewName, chosen.model
	return driver.RunTurn(ctx, wanted, func() (iter.Seq2[turn.Event, error], error) {
		chat, err := ts.startTurn(ctx, run.ProjectID, wanted, Wait, false, begin)
		if err != nil {
			return nil, err
		}
		return chat.Events, nil
	}, observe)
}

// isTransient reports whether a retry a little later may succeed after an error.
func isTransient(err error) bool {
	return errors.Is(err, continuo.ErrUnavailable) || errors.Is(err, continuo.ErrBusy) || errors.Is(err, ErrTooManyTurns)
}
