package engine

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
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/turn"
)

// prepareFunc prepares a turn after it has got the conversation's lease, with the conversation as it is then.
type prepareFunc func(ctx context.Context, conversation continuo.Conversation) (*turn.Runner, turn.Input, error)

// startTurn waits until the conversation is free, takes its lease, and runs the turn in a goroutine of its own, so
// that a caller that returns early does not stop it.
func (ts *Turns) startTurn(ctx context.Context, project string, wanted continuo.Turn, policy OnBusy, detached bool, begin prepareFunc) (*Chat, error) {
	if err := ts.life.quota.room(ctx, project); err != nil {
		return nil, err
	}
	if err := ts.life.admit(project); err != nil {
		return nil, err
	}
	turnCtx, cancel := ts.turnContext(ctx, detached)
	turnCtx, traced := span.StartTurn(turnCtx, ts.options.Tracer, wanted.ConversationID, wanted.ID)
	ts.asked.add(wanted)
	waits := ts.metrics.TurnWaits()
	journal, leave, err := ts.admitTurn(turnCtx, wanted, policy, cancel)
	waits()
	if err != nil {
		span.Fail(traced, "busy")
		traced.End()
		err = ts.whyStopped(turnCtx, err)
		cancel(nil)
		ts.asked.remove(wanted.ID)
		ts.life.dismiss(project)
		return nil, err
	}
	runs := ts.metrics.TurnRuns()
	done := func() {
		runs()
		traced.End()
		leave()
		cancel(nil)
		ts.asked.remove(wanted.ID)
		ts.life.dismiss(project)
	}
	runner, input, conversation, err := ts.prepared(journal, begin)
	if err != nil {
		err = errors.Join(ts.whyStopped(turnCtx, err), ts.keeper.Abandon(journal))
		span.Fail(traced, "not_begun")
		done()
		return nil, err
	}
	if wanted.RunID == "" { // the mode and agent that the input will set
		conversation.ActiveMode, conversation.ActiveAgent = input.Mode, cmp.Or(input.AgentID, conversation.ActiveAgent)
	}
	span.SetMode(traced, string(input.Mode))
	go ts.run(runner, journal, input, done)
	chat := &Chat{Conversation: conversation, TurnID: wanted.ID}
	if detached {
		chat.Events = ts.counted(journal.Follow(ctx, 0))
	} else {
		chat.Events = ts.counted(orStop(journal.Follow(context.WithoutCancel(ctx), 0), cancel))
	}
	return chat, nil
}

// prepared reads the conversation of a turn that has the lease, and prepares the turn.
func (ts *Turns) prepared(journal *turn.Journal, begin prepareFunc) (*turn.Runner, turn.Input, continuo.Conversation, error) {
	ctx := journal.Context() // a signal ends it
	conversation, err := ts.log.Conversation(ctx, journal.Turn().ConversationID)
	if err != nil {
		return nil, turn.Input{}, conversation, err
	}
	runner, input, err := begin(ctx, conversation)
	input.Conversation = conversation
	return runner, input, conversation, err
}

// whyStopped replaces the error of a turn that the engine's shutdown or another turn stopped before it began. It
// returns other errors unchanged.
func (ts *Turns) whyStopped(ctx context.Context, err error) error {
	stopped := errors.Is(err, turn.ErrInterrupted) || errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), turn.ErrInterrupted)
	switch {
	case !stopped:
		return err
	case ts.life.closing.Err() != nil:
		return ErrClosing
	}
	return fmt.Errorf("%w: it replaced this one, which was waiting", continuo.ErrBusy)
}

// admitTurn waits for the turns of this process in the conversation's lane, and then for those of other processes.
func (ts *Turns) admitTurn(ctx context.Context, wanted continuo.Turn, policy OnBusy, cancel context.CancelCauseFunc) (*turn.Journal, func(), error) {
	begin := time.Now()
	inLane := policy
	if policy == Reject && ts.isFinishing(ctx, wanted.ConversationID) {
		inLane = Wait
	}
	leave, err := ts.lanes.enter(ctx, wanted.ConversationID, wanted.ID, inLane, ts.options.Wait, cancel)
	if err != nil {
		return nil, nil, err
	}
	journal, err := ts.lease(ctx, wanted, policy, begin.Add(ts.options.Wait))
	if err != nil {
		leave()
		return nil, nil, err
	}
	ts.metrics.Stage(ctx, StageQueue, time.Since(begin))
	return journal, leave, nil
}

// isFinishing reports whether the turn in a conversation's lane has ended but not left the lane: a client that has
// the answer must not be refused because the conversation is busy.
func (ts *Turns) isFinishing(ctx context.Context, conversationID string) bool {
	turnID, alone := ts.lanes.holder(conversationID)
	if !alone {
		return false
	}
	found, err := ts.log.Turns().Turn(ctx, conversationID, turnID)
	return err == nil && found.State != continuo.TurnRunning
}

// otherPoll is how often a turn polls the turn of another process that it waits for, where the store does not report
// changes.
const otherPoll = 50 * time.Millisecond

// lease takes the lease of a conversation. The policy decides whether it waits for a turn of another process.
func (ts *Turns) lease(ctx context.Context, wanted continuo.Turn, policy OnBusy, until time.Time) (*turn.Journal, error) {
	patience, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	listener := ts.log.Listen(wanted.ConversationID)
	defer listener.Close()
	told := ""
	for {
		changed := listener.Changed()
		journal, err := ts.keeper.Begin(ctx, wanted)
		var busy *continuo.BusyError
		if !errors.As(err, &busy) {
			return journal, err
		}
		switch {
		case policy == Reject:
			return nil, busy
		case policy == Interrupt && told != busy.Turn.ID:
			told = busy.Turn.ID
			err := ts.keeper.Signal(ctx, wanted.ConversationID, told, continuo.TurnSignal{Kind: continuo.SignalInterrupt})
			if err != nil && !errors.Is(err, continuo.ErrNotRunning) {
				return nil, err
			}
		}
		if listener.Wait(patience, changed, otherPoll) {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("waited %s: %w", ts.options.Wait, busy)
	}
}

// run runs a turn to its end and calls done.
func (ts *Turns) run(runner *turn.Runner, journal *turn.Journal, input turn.Input, done func()) {
	defer done()
	begin, begun := time.Now(), journal.Turn()
	logger := turnLogger(ts.options.Logger, begun)
	ctx := context.WithoutCancel(journal.Context())
	defer func() {
		if cause := recover(); cause != nil {
			ts.metrics.turnEnded("error", time.Since(begin), continuo.Usage{})
			logger.ErrorContext(ctx, "turn_panicked", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	ts.options.Before(journal, runner, input)
	err := runner.Run(journal, input)
	switch {
	case errors.Is(err, continuo.ErrLeaseLost): // another process closes it, or its conversation was deleted
		ts.metrics.turnEnded("error", time.Since(begin), continuo.Usage{})
		span.Fail(trace.SpanFromContext(ctx), "lease_lost")
		logger.WarnContext(ctx, "turn_lease_lost", "error", err.Error())
	case err != nil:
		ts.metrics.turnEnded("error", time.Since(begin), continuo.Usage{})
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
	chosen, err := ts.catalog.resolve(request.choice(conversation))
	if err != nil {
		return nil, err
	}
	wanted := continuo.Turn{ID: ts.log.NewID("turn"), ConversationID: failed.ConversationID}
	wanted.Mode, wanted.AgentID, wanted.Resumes = chosen.mode, chosen.agent, failed.ID
	wanted.View, wanted.Model = chosen.viewName, chosen.model
	ts.identify(&wanted, request.Key, failed.ID)
	_, unknown := ts.turnNow(ctx, wanted.ConversationID, wanted.ID)
	if errors.Is(unknown, continuo.ErrNotFound) && failed.State != continuo.TurnRunning { // before another turn is interrupted for it
		if err := ts.checkResumable(ctx, failed, policy == Interrupt); err != nil {
			return nil, err
		}
	}
	return ts.once(ctx, requestedTurn{
		conversation: conversation, wanted: wanted, same: request.Key != "", policy: policy, detached: request.Detached,
		begin: ts.prepareResume(failed, request.choice), resume: func(again continuo.Turn) prepareFunc { return ts.prepareResume(again, request.choice) },
	})
}

// choice is what the resuming turn runs with: the conversation's present mode, whatever that of the failed turn.
func (r ResumeRequest) choice(conversation continuo.Conversation) turnChoice {
	mode, agent := modeAndAgent(conversation, conversation.ActiveMode, r.Turn.AgentID)
	return turnChoice{
		mode: mode, agent: agent, model: cmp.Or(r.Model, r.Turn.Model), viewName: cmp.Or(r.View, r.Turn.View),
		alone: conversation.Kind == continuo.KindAgent,
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
			return fmt.Errorf("%w: the conversation has gone on with turn %s since turn %s; send a message instead", ErrNotResumable, t.ID, failed.ID)
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
