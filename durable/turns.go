package durable

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// TurnPoll is how often a turn that runs in another process is polled, where the store does not report changes.
const TurnPoll = 50 * time.Millisecond

// TurnOf is the turn of an attempt, without its settings. Its id is the same in every process, so that it begins
// once.
func TurnOf(run continuo.Run, step Step) continuo.Turn {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d/%d", run.ID, step.Name, step.Visit, step.Attempt))
	id := "turn_" + strings.TrimPrefix(step.ConversationID, "conv_") + "_" + hex.EncodeToString(sum[:6])
	t := continuo.Turn{ID: id, ConversationID: step.ConversationID}
	t.RunID, t.WorkflowID, t.NodeID, t.KeyID = run.ID, run.WorkflowID, step.Name, run.KeyID
	return t
}

// StartTurn begins a turn and returns its events.
type StartTurn func() (iter.Seq2[turn.Event, error], error)

// RunTurn runs the turn of an attempt to its end, or waits for it where another process runs it. Observe receives the
// turn's events, and returns their errors or others instead; nil for none. ErrStale from start or from an event, and
// a turn whose lease this process has lost, are no error: the result of the attempt is in the log.
func (d *Driver) RunTurn(ctx context.Context, t continuo.Turn, start StartTurn, observe func(turn.Event, error) error) error {
	events, err := start()
	switch {
	case errors.Is(err, continuo.ErrExists): // another process runs it
		return d.AwaitTurn(ctx, t.ConversationID, t.ID)
	case errors.Is(err, ErrStale):
		return nil
	case err != nil:
		return err
	}
	var lost error
	for event, err := range events {
		if lost = err; observe != nil {
			lost = observe(event, err)
		}
	}
	switch {
	case errors.Is(lost, ErrStale):
		return nil
	case errors.Is(lost, continuo.ErrLeaseLost), errors.Is(lost, continuo.ErrNotRunning), errors.Is(lost, continuo.ErrNotFound):
		return nil // another process closes it, or it was stopped before it had begun
	}
	return lost
}

// AwaitTurn waits for the end of a turn, in whichever process it runs.
func (d *Driver) AwaitTurn(ctx context.Context, conversationID, turnID string) error {
	ctx, cancel := d.untilDraining(ctx)
	defer cancel()
	listener := d.options.Log.Listen(conversationID)
	defer listener.Close()
	changed := listener.Changed()
	for _, err := range d.options.Keeper.Follow(ctx, conversationID, turnID, 0) {
		if err != nil && !errors.Is(err, continuo.ErrNotFound) { // it may have become void
			return err
		}
	}
	listener.Wait(ctx, changed, TurnPoll) // the caller reads the run again, and must not do so at once where the turn was void
	return nil
}

// untilDraining is a context that ends with ErrClosing when nothing may begin any more.
func (d *Driver) untilDraining(parent context.Context) (ctx context.Context, cancel func()) {
	ctx, cancelCause := context.WithCancelCause(parent)
	stop := context.AfterFunc(d.options.Draining, func() { cancelCause(ErrClosing) })
	return ctx, func() {
		stop()
		cancelCause(nil)
	}
}

// findTurn finds a turn that has begun, and closes it where its process is gone; nil where there is none.
func (d *Driver) findTurn(ctx context.Context, conversationID, turnID string) (*continuo.Turn, error) {
	found, err := d.options.Log.Turns().Turn(ctx, conversationID, turnID)
	if err == nil && found.State == continuo.TurnRunning {
		found, err = d.options.Keeper.RecoverIfAbandoned(ctx, found)
	}
	switch {
	case errors.Is(err, continuo.ErrNotFound), err == nil && found.State == continuo.TurnVoid:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &found, nil
}

// RunningTurn returns the running turn of a conversation; nil for none. A turn whose process is gone is closed.
func (d *Driver) RunningTurn(ctx context.Context, conversationID string) (*continuo.Turn, error) {
	newest, err := d.options.Log.Turns().Turns(ctx, continuo.TurnQuery{ConversationID: conversationID, Limit: 1})
	if err != nil || len(newest) == 0 || newest[0].State != continuo.TurnRunning {
		return nil, err
	}
	recovered, err := d.options.Keeper.RecoverIfAbandoned(ctx, newest[0])
	if err != nil || recovered.State != continuo.TurnRunning {
		return nil, err
	}
	return &recovered, nil
}

// RunningTurns returns the running turns of a run in the given conversations.
func (d *Driver) RunningTurns(ctx context.Context, runID string, conversations []string) ([]continuo.Turn, error) {
	var turns []continuo.Turn
	for _, id := range conversations {
		running, err := d.RunningTurn(ctx, id)
		switch {
		case errors.Is(err, continuo.ErrNotFound):
		case err != nil:
			return nil, err
		case running != nil && running.RunID == runID:
			turns = append(turns, *running)
		}
	}
	return turns, nil
}

// CancelTurns stops the running turns of a run in the given conversations, in whichever process they run, and returns
// them. It does not wait for their ends.
func (d *Driver) CancelTurns(ctx context.Context, runID string, conversations []string) ([]continuo.Turn, error) {
	turns, err := d.RunningTurns(ctx, runID, conversations)
	for _, running := range turns {
		signal := continuo.TurnSignal{Kind: continuo.SignalCancel}
		failed := d.options.Keeper.Signal(ctx, running.ConversationID, running.ID, signal)
		if failed != nil && !errors.Is(failed, continuo.ErrNotRunning) {
			err = cmp.Or(err, failed)
		}
	}
	return turns, err
}
