package turn

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/window"
)

// toolLoop is one turn in progress.
type toolLoop struct {
	*Runner
	journal        *Journal
	limits         Limits
	in             Input
	conversationID string
	conversation   continuo.Conversation // at the start of the turn
	snapshot       *continuo.Snapshot    // of the log up to the turn's input; nil once it may be out of date
	tools          tool.Set              // of this turn
	usage          continuo.Usage
	newestPlan     *window.Plan  // of the newest round
	noOldThinking  bool          // see continuo.Envelope
	hasCalled      bool          // a round has called tools that ran here: the next one need not
	slots          chan struct{} // slots of concurrent calls
	ctx            context.Context
	clock          *clock // ends ctx
}

func (c *toolLoop) run() error {
	begin := time.Now()
	if err := c.begin(); err != nil {
		if errors.Is(err, continuo.ErrUnavailable) {
			return err // the first entries may be stored: recovery of the turn checks
		}
		if cause := context.Cause(c.ctx); cause != nil && !errors.Is(err, continuo.ErrLeaseLost) {
			err = fmt.Errorf("%w: it was stopped before it began: %w", continuo.ErrNotRunning, cause)
		}
		return errors.Join(err, c.journal.void())
	}
	c.journal.measure(StageBegin, time.Since(begin))
	if c.in.AskAgain {
		if err := c.askAgain(); err != nil {
			return err
		}
	}
	for round := 1; ; round++ {
		answer, err := c.round(round == c.limits.Rounds)
		switch {
		case err != nil:
			return c.ends(err)
		case c.isLast(answer):
			return nil
		case answer.Error != nil:
			return c.fail(answer)
		}
		if err := c.answerCalls(answer, round == c.limits.Rounds); err != nil {
			return err
		}
		c.hasCalled = true
		if c.callsClient(answer) {
			return c.finish(answer)
		}
		if round == c.limits.Rounds {
			return c.giveUp()
		}
	}
}

// ends records why there is no answer: the turn was stopped, or its request cannot be built. It returns an error only
// when that cannot be recorded.
func (c *toolLoop) ends(err error) error {
	var notKept *notKeptError
	switch cause := context.Cause(c.ctx); {
	case errors.Is(err, continuo.ErrLeaseLost), errors.As(err, &notKept):
		return err
	case errors.Is(cause, continuo.ErrLeaseLost):
		return cause
	case cause != nil:
		return c.end(model.AsError(causeOf(c.ctx)))
	}
	reason := continuo.ReasonUpstream
	switch overflow := new(continuo.OverflowError); {
	case errors.Is(err, continuo.ErrUnavailable): // the turn itself has no fault
		reason = continuo.ReasonInterrupted
	case errors.As(err, &overflow):
		reason = continuo.ReasonContextOverflow
	}
	if failed := c.end(&model.Error{Reason: reason, Message: err.Error(), Retryable: reason == continuo.ReasonInterrupted}); failed != nil {
		return errors.Join(err, failed)
	}
	return nil
}

// fail ends a turn with a failed answer: its calls get results, and the turn ends.
func (c *toolLoop) fail(answer *continuo.Entry) error {
	var results []continuo.Entry
	for _, call := range answer.ToolCalls {
		results = append(results, c.resultOf(call, notRun()))
	}
	if c.isLeftToOtherProcess(answer) {
		_, err := c.append(results, toolEvents, keepRunning)
		return err
	}
	_, err := c.append(results, func(stored []continuo.Entry) []Event {
		return append(toolEvents(stored), Event{Kind: Failed, Entry: answer, Plan: c.newestPlan, Usage: c.usage})
	}, ends(continuo.TurnFailed, continuo.TurnEnd{Reason: answer.Error.Reason, Usage: c.usage}))
	return err
}

// begin appends the user's entry, or what a resumed turn needs, unless that was appended when the turn began.
func (c *toolLoop) begin() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.journal.opened {
		c.conversation, c.snapshot = c.journal.conversation, c.journal.snapshot
		c.journal.snapshot = nil
		return nil
	}
	o, err := c.firstEntries(c.ctx, &c.journal.turn, c.in)
	if err == nil {
		err = context.Cause(c.ctx) // what it read may have been in memory
	}
	if err != nil {
		return err
	}
	c.conversation = o.snapshot.Conversation
	for _, blob := range o.blobs {
		c.journal.keep(blob)
	}
	stored, err := c.journal.append(o.entries, o.started, func(update *continuo.TurnUpdate) {
		update.Mode, update.Agent = o.mode, o.agent
	}, c.in.At)
	if err != nil {
		return err
	}
	if o.kept != nil {
		o.kept()
	}
	c.snapshot = o.snapshot.With(stored)
	return nil
}

// resumeNote instructs the model to continue an answer that was cut off.
//
//go:embed resume.md
var resumeNote string

// OpenResults returns results for calls that are open although no turn runs, such as in an import: without them no
// other entry can be appended.
func OpenResults(ctx context.Context, log *continuo.Log, conversation continuo.Conversation) ([]continuo.Entry, error) {
	return openResults(ctx, log, &continuo.Snapshot{Conversation: conversation})
}

func openResults(ctx context.Context, log *continuo.Log, snapshot *continuo.Snapshot) ([]continuo.Entry, error) {
	group, err := log.OpenGroupOf(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	var results []continuo.Entry
	for _, call := range group.OpenCalls() {
		results = append(results, interruptedCall(call, group.Hidden))
	}
	return results, nil
}

// CheckFits refuses, with a *continuo.OverflowError, a message that no request in a conversation could hold. For a
// conversation that does not exist yet only the project must be set.
func (r *Runner) CheckFits(ctx context.Context, conversation continuo.Conversation, message continuo.Content) error {
	if err := r.check(); err != nil {
		return err
	}
	fewest := r.toolOffer(ctx).tools(conversation, false)
	in, err := windowInput(0, with(r.envelope(r.own(), r.Speaker.Dialect()), fewest, r.ClientTools), r.Model.Info())
	if err != nil {
		return err
	}
	return r.View.CheckFits(in, message)
}

// now returns the conversation up to the turn's own newest entry.
func (c *toolLoop) now() continuo.Conversation {
	conversation := c.conversation
	conversation.LastSeq = max(conversation.LastSeq, c.journal.lastSeq())
	return conversation
}

// append adds entries of the turn to the log together with the events returned by eventsOf. It also works after the turn
// was cancelled.
func (c *toolLoop) append(entries []continuo.Entry, eventsOf func([]continuo.Entry) []Event, more func(*continuo.TurnUpdate)) ([]continuo.Entry, error) {
	return c.appendAt(entries, eventsOf, more, 0)
}

// appendAt is append at a seq, 0 for any.
func (c *toolLoop) appendAt(entries []continuo.Entry, eventsOf func([]continuo.Entry) []Event, more func(*continuo.TurnUpdate), at int64) ([]continuo.Entry, error) {
	c.snapshot = nil // it lacks the new entries
	return c.journal.append(withTurnFields(entries, &c.journal.turn, c.in), eventsOf, more, at)
}

// tag sets an entry's turn, the run's step, and the author of an answer. An entry with a RunEvent has its own run
// fields.
func tag(entry *continuo.Entry, turn *continuo.Turn, author *continuo.Author) {
	entry.TurnID = turn.ID
	if entry.Role == continuo.Assistant {
		entry.Author = author
	}
	if entry.RunEvent == nil {
		entry.RunID, entry.WorkflowID, entry.NodeID = turn.RunID, turn.WorkflowID, turn.NodeID
	}
}

// answered appends an answer. An answer without calls ends the turn in the same commit.
func (c *toolLoop) answered(answer continuo.Entry) (*continuo.Entry, error) {
	var last func(*continuo.TurnUpdate)
	kind, state, reason := Finished, continuo.TurnFinished, continuo.FailureReason("")
	if answer.Error != nil {
		kind, state, reason = Failed, continuo.TurnFailed, answer.Error.Reason
	}
	left := c.isLeftToOtherProcess(&answer)
	switch {
	case !c.isLast(&answer):
	case left:
		last = keepRunning
	default:
		last = ends(state, continuo.TurnEnd{Reason: reason, Usage: c.usage})
	}
	eventsOf := func(stored []continuo.Entry) []Event {
		events := []Event{{Kind: Answered, Entry: &stored[0]}}
		if last != nil && !left {
			events = append(events, Event{Kind: kind, Entry: &stored[0], Plan: c.newestPlan, Usage: c.usage})
		}
		return events
	}
	var stored []continuo.Entry
	var err error
	if last != nil && answer.Error == nil && c.in.Conclude != nil {
		stored, err = c.concluded(answer, eventsOf, last)
	} else {
		stored, err = c.append([]continuo.Entry{answer}, eventsOf, last)
	}
	if err != nil {
		return nil, err
	}
	return &stored[0], nil
}

// maxConcludeAttempts bounds how often Conclude is called again because of another append.
const maxConcludeAttempts = 64

// concluded appends a turn's final answer with the entries of Conclude.
func (c *toolLoop) concluded(answer continuo.Entry, eventsOf func([]continuo.Entry) []Event, last func(*continuo.TurnUpdate)) (stored []continuo.Entry, err error) {
	for range maxConcludeAttempts {
		behind, at := c.in.Conclude(&answer)
		stored, err = c.appendAt(append([]continuo.Entry{answer}, behind...), eventsOf, last, at)
		if moved := new(continuo.ConflictError); !errors.As(err, &moved) {
			return stored, err
		}
	}
	return nil, err
}

// giveUp ends a turn whose model requested tools although its last request offered none.
func (c *toolLoop) giveUp() error {
	return c.end(&model.Error{
		Reason:  continuo.ReasonTurnLimit,
		Message: fmt.Sprintf("the model still asked for tools after %d rounds, the limit of a turn (turn.max_rounds)", c.limits.Rounds),
	})
}

// end closes a turn with an entry that says why there is no answer.
func (c *toolLoop) end(failure *model.Error) error {
	_, err := c.answered((&model.Answer{}).Entry(failure))
	return err
}
