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
func (e *Engine) startTurn(ctx context.Context, project string, wanted continuo.Turn, policy OnBusy, detached bool, begin prepareFunc) (*Chat, error) {
	if err := e.quota.room(ctx, project); err != nil {
		return nil, err
	}
	if err := e.admit(project); err != nil {
		return nil, err
	}
	turnCtx, cancel := e.turnContext(ctx, detached)
	turnCtx, traced := span.StartTurn(turnCtx, e.options.Tracer, wanted.ConversationID, wanted.ID)
	e.asked.add(wanted)
	waits := e.metrics.TurnWaits()
	journal, leave, err := e.admitTurn(turnCtx, wanted, policy, cancel)
	waits()
	if err != nil {
		span.Fail(traced, "busy")
		traced.End()
		err = e.whyStopped(turnCtx, err)
		cancel(nil)
		e.asked.remove(wanted.ID)
		e.dismiss(project)
		return nil, err
	}
	runs := e.metrics.TurnRuns()
	done := func() {
		runs()
		traced.End()
		leave()
		cancel(nil)
		e.asked.remove(wanted.ID)
		e.dismiss(project)
	}
	runner, input, conversation, err := e.prepared(journal, begin)
	if err != nil {
		err = errors.Join(e.whyStopped(turnCtx, err), e.keeper.Abandon(journal))
		span.Fail(traced, "not_begun")
		done()
		return nil, err
	}
	if wanted.RunID == "" { // the mode and agent that the input will set
		conversation.ActiveMode, conversation.ActiveAgent = input.Mode, cmp.Or(input.AgentID, conversation.ActiveAgent)
	}
	span.SetMode(traced, string(input.Mode))
	go e.run(runner, journal, input, done)
	chat := &Chat{Conversation: conversation, TurnID: wanted.ID}
	if detached {
		chat.Events = e.counted(journal.Follow(ctx, 0))
	} else {
		chat.Events = e.counted(orStop(journal.Follow(context.WithoutCancel(ctx), 0), cancel))
	}
	return chat, nil
}

// prepared reads the conversation of a turn that has the lease, and prepares the turn.
func (e *Engine) prepared(journal *turn.Journal, begin prepareFunc) (*turn.Runner, turn.Input, continuo.Conversation, error) {
	ctx := journal.Context() // a signal ends it
	conversation, err := e.Log.Conversation(ctx, journal.Turn().ConversationID)
	if err != nil {
		return nil, turn.Input{}, conversation, err
	}
	runner, input, err := begin(ctx, conversation)
	input.Conversation = conversation
	return runner, input, conversation, err
}

// whyStopped replaces the error of a turn that the engine's shutdown or another turn stopped before it began. It
// returns other errors unchanged.
func (e *Engine) whyStopped(ctx context.Context, err error) error {
	stopped := errors.Is(err, turn.ErrInterrupted) || errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), turn.ErrInterrupted)
	switch {
	case !stopped:
		return err
	case e.closing.Err() != nil:
		return ErrClosing
	}
	return fmt.Errorf("%w: it took the place of this one, which waited", continuo.ErrBusy)
}

// admitTurn waits for the turns of this process in the conversation's lane, and then for those of other processes.
func (e *Engine) admitTurn(ctx context.Context, wanted continuo.Turn, policy OnBusy, cancel context.CancelCauseFunc) (*turn.Journal, func(), error) {
	begin := time.Now()
	inLane := policy
	if policy == Reject && e.isFinishing(ctx, wanted.ConversationID) {
		inLane = Wait
	}
	leave, err := e.lanes.enter(ctx, wanted.ConversationID, wanted.ID, inLane, e.options.Wait, cancel)
	if err != nil {
		return nil, nil, err
	}
	journal, err := e.lease(ctx, wanted, policy, begin.Add(e.options.Wait))
	if err != nil {
		leave()
		return nil, nil, err
	}
	e.metrics.Stage(ctx, StageQueue, time.Since(begin))
	return journal, leave, nil
}

// isFinishing reports whether the turn in a conversation's lane has ended but not left the lane: a client that has
// the answer must not be refused because the conversation is busy.
func (e *Engine) isFinishing(ctx context.Context, conversationID string) bool {
	turnID, alone := e.lanes.holder(conversationID)
	if !alone {
		return false
	}
	found, err := e.Log.Turns().Turn(ctx, conversationID, turnID)
	return err == nil && found.State != continuo.TurnRunning
}

// otherPoll is how often a turn polls the turn of another process that it waits for, where the store does not report
// changes.
const otherPoll = 50 * time.Millisecond

// lease takes the lease of a conversation. The policy decides whether it waits for a turn of another process.
func (e *Engine) lease(ctx context.Context, wanted continuo.Turn, policy OnBusy, until time.Time) (*turn.Journal, error) {
	patience, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	listener := e.Log.Listen(wanted.ConversationID)
	defer listener.Close()
	told := ""
	for {
		changed := listener.Changed()
		journal, err := e.keeper.Begin(ctx, wanted)
		var busy *continuo.BusyError
		if !errors.As(err, &busy) {
			return journal, err
		}
		switch {
		case policy == Reject:
			return nil, busy
		case policy == Interrupt && told != busy.Turn.ID:
			told = busy.Turn.ID
			err := e.keeper.Signal(ctx, wanted.ConversationID, told, continuo.TurnSignal{Kind: continuo.SignalInterrupt})
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
		return nil, fmt.Errorf("waited %s: %w", e.options.Wait, busy)
	}
}

// run runs a turn to its end and calls done.
func (e *Engine) run(runner *turn.Runner, journal *turn.Journal, input turn.Input, done func()) {
	defer done()
	begin, begun := time.Now(), journal.Turn()
	logger := e.turnLogger(begun)
	ctx := context.WithoutCancel(journal.Context())
	defer func() {
		if cause := recover(); cause != nil {
			e.metrics.turnEnded("error", time.Since(begin), continuo.Usage{})
			logger.ErrorContext(ctx, "turn_panicked", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	e.summarizeFirst(journal, runner, input)
	err := runner.Run(journal, input)
	switch {
	case errors.Is(err, continuo.ErrLeaseLost): // another process closes it, or its conversation was deleted
		e.metrics.turnEnded("error", time.Since(begin), continuo.Usage{})
		span.Fail(trace.SpanFromContext(ctx), "lease_lost")
		logger.WarnContext(ctx, "turn_lease_lost", "error", err.Error())
	case err != nil:
		e.metrics.turnEnded("error", time.Since(begin), continuo.Usage{})
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

// Turn finds a turn of a conversation; ErrNotFound. One whose process is gone is closed first.
func (e *Engine) Turn(ctx context.Context, conversation continuo.Conversation, id string) (continuo.Turn, error) {
	found, err := e.Log.Turns().Turn(ctx, conversation.ID, id)
	if err == nil && found.State == continuo.TurnRunning {
		found, err = e.keeper.RecoverIfAbandoned(ctx, found)
	}
	if err == nil && found.State == continuo.TurnVoid {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return continuo.Turn{}, fmt.Errorf("turn %s: %w", id, err)
	}
	return found, nil
}

// Turns lists a conversation's turns, the newest first.
func (e *Engine) Turns(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	return e.Log.Turns().Turns(ctx, query)
}

// Follow yields a turn's events with ids above after; see [turn.Keeper.Follow].
func (e *Engine) Follow(ctx context.Context, t continuo.Turn, after int64) iter.Seq2[turn.Event, error] {
	return e.counted(e.keeper.Follow(ctx, t.ConversationID, t.ID, after))
}

// counted counts a reader of events while it reads.
func (e *Engine) counted(events iter.Seq2[turn.Event, error]) iter.Seq2[turn.Event, error] {
	return func(yield func(turn.Event, error) bool) {
		defer e.metrics.StreamOpens()()
		events(yield)
	}
}

// Cancel stops a running turn permanently, in whichever process it runs; ErrNotRunning when it has ended.
func (e *Engine) Cancel(ctx context.Context, t continuo.Turn) error {
	return e.keeper.Signal(ctx, t.ConversationID, t.ID, continuo.TurnSignal{Kind: continuo.SignalCancel})
}

// Decide allows or denies a call that waits for a person's decision. The first decision on a call counts. ErrNotFound
// says that no call of that id waits, ErrNotRunning that the turn has ended.
func (e *Engine) Decide(ctx context.Context, t continuo.Turn, callID string, decision turn.Decision) error {
	if t.State != continuo.TurnRunning {
		return fmt.Errorf("turn %s: %w", t.ID, continuo.ErrNotRunning)
	}
	_, err := e.keeper.Decide(ctx, t, callID, decision)
	return err
}

// Waiting lists the calls of a turn that wait for a person's decision, in the order in which they came.
func (e *Engine) Waiting(ctx context.Context, t continuo.Turn) ([]turn.WaitingCall, error) {
	return e.keeper.Waiting(ctx, t)
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
func (e *Engine) Resume(ctx context.Context, request ResumeRequest) (*Chat, error) {
	policy, err := ParseOnBusy(string(request.OnBusy))
	if err != nil {
		return nil, err
	}
	failed := request.Turn
	if failed.RunID != "" {
		return nil, fmt.Errorf("%w: turn %s is a step of the run %s; resume the run", ErrNotResumable, failed.ID, failed.RunID)
	}
	conversation, err := e.Log.Conversation(ctx, failed.ConversationID)
	if err != nil {
		return nil, err
	}
	chosen, err := e.resolve(request.choice(conversation))
	if err != nil {
		return nil, err
	}
	wanted := continuo.Turn{ID: e.Log.NewID("turn"), ConversationID: failed.ConversationID}
	wanted.Mode, wanted.AgentID, wanted.Resumes = chosen.mode, chosen.agent, failed.ID
	wanted.View, wanted.Model = chosen.viewName, chosen.model
	e.identify(&wanted, request.Key, failed.ID)
	_, unknown := e.turnNow(ctx, wanted.ConversationID, wanted.ID)
	if errors.Is(unknown, continuo.ErrNotFound) && failed.State != continuo.TurnRunning { // before another turn is interrupted for it
		if err := e.checkResumable(ctx, failed, policy == Interrupt); err != nil {
			return nil, err
		}
	}
	return e.once(ctx, requestedTurn{
		conversation: conversation, wanted: wanted, same: request.Key != "", policy: policy, detached: request.Detached,
		begin: e.prepareResume(failed, request.choice), resume: func(again continuo.Turn) prepareFunc { return e.prepareResume(again, request.choice) },
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
func (e *Engine) checkResumable(ctx context.Context, failed continuo.Turn, ofAll bool) error {
	turns, err := e.Log.Turns().Turns(ctx, continuo.TurnQuery{ConversationID: failed.ConversationID, Limit: 2})
	if err != nil {
		return err
	}
	for _, t := range turns {
		if ofAll && t.State == continuo.TurnRunning && t.ID != failed.ID {
			if t, err = e.keeper.RecoverIfAbandoned(ctx, t); err != nil {
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
