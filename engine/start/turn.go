package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/turn"
)

// run runs a turn to its end and calls done.
func (ts *Turns) run(runner *turn.Runner, journal *turn.Journal, input turn.Input, done func()) {
	defer done()
	begin, begun := time.Now(), journal.Turn()
	logger := turnLogger(ts.options.Logger, begun)
	ctx := context.WithoutCancel(journal.Context())
	defer func() {
		if cause := recover(); cause != nil {
			ts.metrics.TurnEnded("error", time.Since(begin))
			logger.ErrorContext(ctx, "turn_panicked", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	err := runner.Run(journal, input)
	switch {
	case errors.Is(err, continuo.ErrLeaseLost): // another process closes it, or its conversation was deleted
		ts.metrics.TurnEnded("error", time.Since(begin))
		span.Fail(trace.SpanFromContext(ctx), "lease_lost")
		logger.WarnContext(ctx, "turn_lease_lost", "error", err.Error())
	case err != nil:
		ts.metrics.TurnEnded("error", time.Since(begin))
		span.Fail(trace.SpanFromContext(ctx), "internal")
		logger.ErrorContext(ctx, "turn_failed", "error", err.Error())
	}
}

// orStop stops a turn when its reader stops reading early.
func orStop(events iter.Seq2[turn.Event, error], cancel context.CancelCauseFunc) iter.Seq2[turn.Event, error] {
	return func(yield func(turn.Event, error) bool) {
		for event, err := range events {
			if !yield(event, err) {
				cancel(nil)
				return
			}
		}
	}
}

// Get finds a turn of a conversation; ErrNotFound. One whose process is gone is closed first.
func (ts *Turns) Get(ctx context.Context, conversation continuo.Conversation, id string) (continuo.Turn, error) {
	found, err := ts.log.Turns().Turn(ctx, conversation.ID, id)
	if err == nil && found.State == continuo.TurnRunning {
		found, err = ts.keeper.RecoverIfAbandoned(ctx, found)
	}
	if err == nil && found.State == continuo.TurnVoid {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return continuo.Turn{}, fmt.Errorf("turn %s: %w", id, err)
	}
	return found, nil
}

// List lists a conversation's turns, the newest first.
func (ts *Turns) List(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	return ts.log.Turns().Turns(ctx, query)
}

// Follow yields a turn's events with ids above after; see [turn.Keeper.Follow].
func (ts *Turns) Follow(ctx context.Context, t continuo.Turn, after int64) iter.Seq2[turn.Event, error] {
	return ts.counted(ts.keeper.Follow(ctx, t.ConversationID, t.ID, after))
}

// counted counts a reader of events while it reads.
func (ts *Turns) counted(events iter.Seq2[turn.Event, error]) iter.Seq2[turn.Event, error] {
	return func(yield func(turn.Event, error) bool) {
		defer ts.metrics.StreamOpens()()
		events(yield)
	}
}

// Cancel stops a running turn permanently, in whichever process it runs; ErrNotRunning when it has ended.
func (ts *Turns) Cancel(ctx context.Context, t continuo.Turn) error {
	return ts.keeper.Signal(ctx, t.ConversationID, t.ID, continuo.TurnSignal{Kind: continuo.SignalCancel})
}

// Decide allows or denies a call that waits for a person's decision. The first decision on a call counts. ErrNotFound
// says that no call of that id waits, ErrNotRunning that the turn has ended.
func (ts *Turns) Decide(ctx context.Context, t continuo.Turn, callID string, decision turn.Decision) error {
	if t.State != continuo.TurnRunning {
		return fmt.Errorf("turn %s: %w", t.ID, continuo.ErrNotRunning)
	}
	_, err := ts.keeper.Decide(ctx, t, callID, decision)
	return err
}

// Waiting lists the calls of a turn that wait for a person's decision, in the order in which they came.
func (ts *Turns) Waiting(ctx context.Context, t continuo.Turn) ([]turn.WaitingCall, error) {
	return ts.keeper.Waiting(ctx, t)
}

// ResumeRequest is a request to resume a turn that failed.
type ResumeRequest struct {
	Turn continuo.Turn
	// Model and View are names; "": those of the failed turn.
	Model, View string
	OnBusy      OnBusy
	Key         string // the idempotency key; "" for none
	Detached    bool
}

// Resume begins a turn that continues where a failed one broke off, without a new message. It fails with
// ErrNotResumable when the turn did not fail, or when the conversation has later turns. For a key that has already
// begun a turn, Resume returns that turn.
func (ts *Turns) Resume(ctx context.Context, request ResumeRequest) (*Chat, error) {
	policy, err := ParseOnBusy(string(request.OnBusy))
	if err != nil {
		return nil, err
	}
	failed := request.Turn
	if failed.RunID != "" {
		return nil, fmt.Errorf("%w: turn %s is a step of the run %s; resume the run", ErrNotResumable, failed.ID, failed.RunID)
	}
	conversation, err := ts.log.Conversation(ctx, failed.ConversationID)
	if err != nil {
		return nil, err
	}
	chosen, err := ts.catalog.Resolve(request.choice(conversation))
	if err != nil {
		return nil, err
	}
	requested := continuo.Turn{ID: ts.log.NewID("turn"), ConversationID: failed.ConversationID}
	requested.Mode, requested.AgentID, requested.Resumes = chosen.Mode, chosen.Agent, failed.ID
	requested.View, requested.Model = chosen.ViewName, chosen.Model
	ts.identify(&requested, request.Key, failed.ID)
	_, unknown := ts.turnNow(ctx, requested.ConversationID, requested.ID)
	if errors.Is(unknown, continuo.ErrNotFound) && failed.State != continuo.TurnRunning { // before another turn is interrupted for it
		if err := ts.checkResumable(ctx, failed, policy == Interrupt); err != nil {
			return nil, err
		}
	}
	return ts.once(ctx, requestedTurn{
		conversation: conversation, wanted: requested, same: request.Key != "", policy: policy, detached: request.Detached,
		begin: ts.prepareResume(failed, request.choice), resume: func(again continuo.Turn) Prepare { return ts.prepareResume(again, request.choice) },
	})
}

// choice is what the resuming turn runs with: the conversation's present mode, whatever that of the failed turn.
func (r ResumeRequest) choice(conversation continuo.Conversation) catalog.TurnSpec {
	mode, agent := catalog.ModeAndAgent(conversation, conversation.ActiveMode, r.Turn.AgentID)
	return catalog.TurnSpec{
		Mode: mode, Agent: agent, Model: cmp.Or(r.Model, r.Turn.Model), ViewName: cmp.Or(r.View, r.Turn.View),
		Alone: conversation.Kind == continuo.KindAgent,
	}
}

// checkResumable refuses to resume a turn that did not fail or is not the newest: of the turns that have ended, or,
// if ofAll, of all.
func (ts *Turns) checkResumable(ctx context.Context, failed continuo.Turn, ofAll bool) error {
	turns, err := ts.log.Turns().Turns(ctx, continuo.TurnQuery{ConversationID: failed.ConversationID, Limit: 2})
	if err != nil {
		return err
	}
	for _, t := range turns {
		if ofAll && t.State == continuo.TurnRunning && t.ID != failed.ID {
			if t, err = ts.keeper.RecoverIfAbandoned(ctx, t); err != nil {
				return err
			}
		}
		switch {
		case t.State == continuo.TurnVoid: // it broke off before it had begun
			continue
		case t.State == continuo.TurnRunning && !ofAll: // the one that resumes
			continue
		case t.ID != failed.ID:
			return fmt.Errorf("%w: turn %s has begun since turn %s; send a message instead", ErrNotResumable, t.ID, failed.ID)
		case t.State != continuo.TurnFailed:
			return fmt.Errorf("%w: turn %s has its answer; send a message instead", ErrNotResumable, failed.ID)
		}
		return nil
	}
	return fmt.Errorf("turn %s: %w", failed.ID, continuo.ErrNotFound)
}

// ErrNotResumable says that a turn cannot be resumed: it did not fail, later turns follow it, or it is a step of a
// run.
var ErrNotResumable = errors.New("the turn cannot be resumed")
