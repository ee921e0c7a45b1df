package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/turn"
)

// Prepare prepares a turn by its conversation as it is when the turn begins. It may be called again when the
// conversation has changed meanwhile.
type Prepare func(ctx context.Context, conversation continuo.Conversation) (*turn.Runner, turn.Input, error)

// Request is a turn that is to begin.
type Request struct {
	Project string
	Turn    continuo.Turn
	// Conversation is the turn's, as the caller has just read it. Default: it is read.
	Conversation continuo.Conversation
	// Create says that the conversation is a new one, which Log.NewConversation has made, and is stored in the commit that
	// begins the turn. Start then fails with continuo.ErrExists where its key is taken.
	Create   bool
	Policy   OnBusy
	Detached bool
	Prepare  Prepare
	// LeaseFirst says that Prepare is called once, under the conversation's lease: it has effects. Otherwise the lease is
	// taken in the commit of the input, and Prepare is called before.
	LeaseFirst bool
}

// begunTurn is a turn that has its conversation's lease.
type begunTurn struct {
	journal      *turn.Journal
	runner       *turn.Runner
	input        turn.Input
	conversation continuo.Conversation // before the input
}

// errNotPrepared is the error of a prepareFunc.
type errNotPrepared struct{ error }

func (e errNotPrepared) Unwrap() error { return e.error }

// Start waits until the conversation is free, takes its lease, and runs the turn in a goroutine of its own, so
// that a caller that returns early does not stop it.
func (ts *Turns) Start(ctx context.Context, start Request) (*Chat, error) {
	if !start.Create { // one that is refused is never there
		audit.About(ctx, start.Conversation.ID)
	}
	if payer, ok := continuo.PayerOf(ctx); ok && start.Turn.KeyID == "" {
		start.Turn.KeyID = payer.KeyID
	}
	requested := start.Turn
	if err := ts.life.AwaitPlace(ctx, start.Project); err != nil {
		return nil, err
	}
	if err := ts.CheckBudget(ctx, continuo.Payer{ProjectID: start.Project, UserID: start.Conversation.UserID, KeyID: requested.KeyID}); err != nil {
		return nil, err
	}
	if err := ts.life.Admit(start.Project); err != nil {
		return nil, err
	}
	turnCtx, cancel := ts.turnContext(withSession(ctx, start.Conversation), start.Detached)
	turnCtx, traced := span.StartTurn(turnCtx, ts.options.Tracer, requested.ConversationID, requested.ID)
	ts.active.add(requested)
	end := func() {
		traced.End()
		cancel(nil)
		ts.active.remove(requested.ID)
		ts.life.Dismiss(start.Project)
	}
	waits := ts.metrics.TurnWaits()
	begun, leave, err := ts.admitTurn(turnCtx, start, cancel)
	waits()
	if err != nil {
		failure := "busy"
		if prepare := (errNotPrepared{}); errors.As(err, &prepare) {
			err, failure = prepare.error, "not_begun"
		}
		span.Fail(traced, failure)
		err = ts.whyStopped(turnCtx, err)
		end()
		return nil, err
	}
	runs := ts.metrics.TurnRuns()
	done := func() {
		runs()
		ts.active.remove(requested.ID) // before another turn can follow it in the conversation: it is not the newest one then
		leave()
		end()
	}
	audit.About(ctx, begun.conversation.ID)
	chat := &Chat{Conversation: begun.conversation, TurnID: requested.ID}
	if requested.RunID == "" { // the mode and agent that the input sets
		chat.Conversation.ActiveMode = begun.input.Mode
		chat.Conversation.ActiveAgent = cmp.Or(begun.input.AgentID, chat.Conversation.ActiveAgent)
	}
	span.SetMode(traced, string(begun.input.Mode))
	go ts.run(begun.runner, begun.journal, begun.input, func() {
		ts.options.After(begun.conversation, requested, begun.runner)
		done()
	})
	if start.Detached {
		chat.Events = ts.counted(begun.journal.Follow(ctx, 0))
	} else {
		chat.Events = ts.counted(orStop(begun.journal.Follow(context.WithoutCancel(ctx), 0), cancel))
	}
	return chat, nil
}

// CheckBudget refuses a turn or a run whose payer has used up a budget, before anything of it is stored; each of its requests
// is checked, too.
func (ts *Turns) CheckBudget(ctx context.Context, payer continuo.Payer) error {
	release, err := ts.options.Requests.Admit(ctx, payer, 0, 0)
	if err == nil {
		release()
	}
	return err
}

// admitRequest reserves what a request is estimated to use.
func (ts *Turns) admitRequest(ctx context.Context, payer continuo.Payer, provider, model string, tokens int) (release func(), err error) {
	cost := ts.log.PriceUsage(provider, model, continuo.Usage{InputTokens: tokens}).Cost
	return ts.options.Requests.Admit(ctx, payer, int64(tokens), cost.Nano)
}

// whyStopped replaces the error of a turn that the engine's shutdown or another turn stopped before it began. It
// returns other errors unchanged.
func (ts *Turns) whyStopped(ctx context.Context, err error) error {
	stopped := errors.Is(err, turn.ErrInterrupted) || errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), turn.ErrInterrupted)
	switch {
	case !stopped:
		return err
	case ts.life.Closing.Err() != nil:
		return lifecycle.ErrClosing
	}
	return fmt.Errorf("%w: it replaced this one, which was waiting", continuo.ErrBusy)
}

// admitTurn waits for the turns of this process in the conversation's lane, and then for those of other processes.
func (ts *Turns) admitTurn(ctx context.Context, start Request, cancel context.CancelCauseFunc) (*begunTurn, func(), error) {
	entered := time.Now()
	id := start.Turn.ConversationID
	inLane := start.Policy
	if inLane == Reject && ts.isFinishing(ctx, id) {
		inLane = Wait
	}
	leave, waited, err := ts.lanes.enter(ctx, id, start.Turn.ID, inLane, ts.options.Wait, cancel)
	if err != nil {
		return nil, nil, err
	}
	if waited {
		start.Conversation = continuo.Conversation{}
	}
	begun, err := ts.beginTurn(ctx, start, entered)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return begun, leave, nil
}

// isFinishing reports whether the turn in a conversation's lane has ended but not left the lane: a client that has
// the answer must not be refused because the conversation is busy.
func (ts *Turns) isFinishing(ctx context.Context, conversationID string) bool {
	turnID, unqueued := ts.lanes.holder(conversationID)
	if !unqueued {
		return false
	}
	found, err := ts.log.Turns().Turn(ctx, conversationID, turnID)
	return err == nil && found.State != continuo.TurnRunning
}

// beginTurn takes the lease of a conversation. The policy decides whether it waits for a turn of another process.
func (ts *Turns) beginTurn(ctx context.Context, start Request, entered time.Time) (*begunTurn, error) {
	id := start.Turn.ConversationID
	patience, cancel := context.WithDeadline(ctx, entered.Add(ts.options.Wait))
	defer cancel()
	listener := ts.log.Listen(id)
	defer listener.Close()
	interrupted := ""
	for {
		changed, tried := listener.Changed(), time.Now()
		begun, err := ts.tryBegin(ctx, start)
		var busy *continuo.BusyError
		var conflict *continuo.ConflictError
		switch {
		case err == nil:
			ts.metrics.Stage(ctx, metrics.StageQueue, tried.Sub(entered))
			return begun, nil
		case errors.As(err, &errNotPrepared{}):
			return nil, err
		case errors.As(err, &conflict): // the log has grown since the conversation was read
			start.Conversation = continuo.Conversation{}
			continue
		case !errors.As(err, &busy):
			return nil, err
		case start.Policy == Reject:
			return nil, busy
		case start.Policy == Interrupt && interrupted != busy.Turn.ID:
			interrupted = busy.Turn.ID
			err := ts.keeper.Signal(ctx, id, interrupted, continuo.TurnSignal{Kind: continuo.SignalInterrupt})
			if err != nil && !errors.Is(err, continuo.ErrNotRunning) {
				return nil, err
			}
		}
		start.Conversation = continuo.Conversation{}
		if listener.Wait(patience, changed, durable.TurnPoll) {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("waited %s: %w", ts.options.Wait, busy)
	}
}

// tryBegin takes the lease of a conversation that is free, and appends the turn's input in the same commit, unless the
// turn must do something under the lease before.
func (ts *Turns) tryBegin(ctx context.Context, start Request) (*begunTurn, error) {
	if !start.LeaseFirst {
		begun, err := ts.prepared(ctx, start)
		if err != nil {
			return nil, err
		}
		begun.input.Create = start.Create
		begun.journal, err = begun.runner.Begin(ctx, ts.keeper, start.Turn, begun.input)
		return begun, err
	}
	if start.Create {
		if err := ts.log.CreateNew(ctx, start.Conversation); err != nil {
			return nil, err
		}
	}
	journal, err := ts.keeper.Begin(ctx, start.Turn)
	if err != nil {
		return nil, err
	}
	start.Conversation = continuo.Conversation{}        // what was read before the lease may be out of date
	begun, err := ts.prepared(journal.Context(), start) // a signal ends it
	if err != nil {
		return nil, errNotPrepared{errors.Join(err, ts.keeper.Abandon(journal))}
	}
	begun.journal = journal
	return begun, nil
}

// prepared prepares a turn, after it has read its conversation where the caller has not.
func (ts *Turns) prepared(ctx context.Context, start Request) (*begunTurn, error) {
	begun := &begunTurn{conversation: start.Conversation}
	var err error
	if begun.conversation.ID == "" {
		if begun.conversation, err = ts.log.Conversation(ctx, start.Turn.ConversationID); err != nil {
			return nil, errNotPrepared{err}
		}
	}
	if begun.runner, begun.input, err = start.Prepare(ctx, begun.conversation); err != nil {
		return nil, errNotPrepared{err}
	}
	begun.input.Conversation = begun.conversation
	return begun, nil
}
