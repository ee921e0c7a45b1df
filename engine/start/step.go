package start

import (
	"context"
	"errors"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/turn"
)

// Step is the turn of an attempt.
type Step struct {
	Chosen     catalog.ResolvedTurn
	Prepare    Prepare
	LeaseFirst bool // see Request
	// Observe receives the turn's events and may replace their errors; nil for neither.
	Observe func(turn.Event, error) error
}

// RunStep runs the turn of an attempt, or waits for it where another process runs it.
func (ts *Turns) RunStep(ctx context.Context, driver *durable.Driver, run continuo.Run, step durable.Step, t Step) error {
	requested := durable.TurnOf(run, step)
	requested.Mode, requested.AgentID, requested.View, requested.Model = t.Chosen.Mode, t.Chosen.Agent, t.Chosen.ViewName, t.Chosen.Model
	return driver.RunTurn(ctx, requested, func() (iter.Seq2[turn.Event, error], error) {
		chat, err := ts.Start(ctx, Request{Project: run.ProjectID, Turn: requested, Policy: Wait, Prepare: t.Prepare, LeaseFirst: t.LeaseFirst})
		if err != nil {
			return nil, err
		}
		return chat.Events, nil
	}, t.Observe)
}

// IsTransient reports whether a retry a little later may succeed after an error.
func IsTransient(err error) bool {
	return errors.Is(err, continuo.ErrUnavailable) || errors.Is(err, continuo.ErrBusy) || errors.Is(err, lifecycle.ErrTooManyTurns)
}
