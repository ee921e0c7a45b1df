package engine

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// change appends what makes says of a run as it stands, and says it anew where somebody else was faster. It
// appends nothing where makes gives nothing. It waits no longer than a turn waits for its conversation.
func (e *Engine) change(ctx context.Context, run continuo.Run, makes func(*workflow.State) ([]continuo.Entry, error)) error {
	return e.changeOnce(ctx, run, once{}, makes)
}

// once is what a change of a run is known again by; the zero value for one that is not.
type once struct{ key, identity string }

// changeOnce is change that does nothing where it was done before.
func (e *Engine) changeOnce(ctx context.Context, run continuo.Run, same once, makes func(*workflow.State) ([]continuo.Entry, error)) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.options.Wait, fmt.Errorf("run %s: %w: calls in its conversation wait for their results", run.ID, continuo.ErrBusy))
	defer cancel()
	defer func() {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil { // whatever was under way when the time was up
			err = context.Cause(ctx)
		}
	}()
	t := newTracker(e, run)
	for {
		if err := t.catchUp(ctx); err != nil {
			return err
		}
		if done, err := e.wasDone(ctx, run, same); err != nil || done {
			return err
		}
		entries, err := makes(t.state)
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := e.recordOnce(ctx, t, entries, same); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// wasDone reports whether a change of a run was made before; continuo.ErrKeyReused where its key made another one.
func (e *Engine) wasDone(ctx context.Context, run continuo.Run, same once) (bool, error) {
	if same.key == "" {
		return false, nil
	}
	receipt, err := e.Log.Receipt(ctx, run.ConversationID, same.key)
	switch {
	case errors.Is(err, continuo.ErrNotFound):
		return false, nil
	case err == nil && receipt.Fingerprint != same.identity:
		err = fmt.Errorf("run %s: %w: it repaired the run in another way", run.ID, continuo.ErrKeyReused)
	}
	return err == nil, err
}

// errMoved says that a run has gone on since it was looked at.
var errMoved = errors.New("the run has gone on")

// recordRun appends entries that follow of how a run stands. It is errMoved where the log has gone on since it was
// read: of those who saw it stand so the first counts.
func (e *Engine) recordRun(ctx context.Context, t *tracker, entries []continuo.Entry) error {
	return e.recordOnce(ctx, t, entries, once{})
}

// recordOnce is recordRun for entries that a key appends once.
func (e *Engine) recordOnce(ctx context.Context, t *tracker, entries []continuo.Entry, same once) error {
	_, err := e.appendRun(ctx, t.run.ConversationID, entries, continuo.AppendOptions{ExpectSeq: t.next, Key: same.key, Identity: same.identity})
	if moved := new(continuo.ConflictError); errors.As(err, &moved) {
		return errMoved
	}
	return err
}

// endUnread ends a run whose events cannot be followed any more: a text is gone, or they make no sense.
func (e *Engine) endUnread(ctx context.Context, run continuo.Run, kind continuo.RunEventKind, reason string) error {
	ended := continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: "run_event", Content: continuo.Text("The run ended: " + reason), Mode: continuo.ModeRun,
		RunID: run.ID, WorkflowID: run.WorkflowID, RunEvent: &continuo.RunEvent{Kind: kind, Reason: reason},
	}
	key := fmt.Sprintf("run/%s/unread/%s", run.ID, kind)
	_, err := e.appendRun(ctx, run.ConversationID, []continuo.Entry{ended}, continuo.AppendOptions{Key: key, Identity: hashOf(key)})
	return err
}

// appendRun appends entries of a run outside of its turns. Where calls stand open it waits for the turn that
// made them, or, when nobody carries that on any more, answers them first.
func (e *Engine) appendRun(ctx context.Context, conversationID string, entries []continuo.Entry, options continuo.AppendOptions) ([]continuo.Entry, error) {
	listener := e.Log.Listen(conversationID)
	defer listener.Close()
	for {
		changed := listener.Changed()
		stored, err := e.Log.Append(ctx, conversationID, entries, options)
		var rule *continuo.RuleError
		if !errors.As(err, &rule) || rule.Rule != continuo.RuleUnanswered {
			return stored, err
		}
		running, err := e.runningTurn(ctx, conversationID)
		if err != nil {
			return nil, err
		}
		if running == nil {
			if err := e.answerOpen(ctx, conversationID); err != nil {
				return nil, err
			}
			continue
		}
		if !listener.Wait(ctx, changed, otherPoll) {
			return nil, context.Cause(ctx)
		}
	}
}

// answerOpen answers calls that stand open although no turn runs.
func (e *Engine) answerOpen(ctx context.Context, conversationID string) error {
	conversation, err := e.Log.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	results, err := turn.OpenResults(ctx, e.Log, conversation)
	if err != nil || len(results) == 0 {
		return err
	}
	_, err = e.Log.Append(ctx, conversationID, results, continuo.AppendOptions{ExpectSeq: conversation.LastSeq + 1})
	if conflict := new(continuo.ConflictError); errors.As(err, &conflict) {
		return nil // somebody else was faster
	}
	return err
}
