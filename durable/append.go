package durable

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// Append appends entries of a run outside of its turns. If calls have no results yet it waits for the turn that made
// them, or, if that turn has ended, first appends results for them.
func (d *Driver) Append(
	ctx context.Context, conversationID string, entries []continuo.Entry, options continuo.AppendOptions,
) ([]continuo.Entry, error) {
	listener := d.options.Log.Listen(conversationID)
	defer listener.Close()
	for {
		changed := listener.Changed()
		stored, err := d.options.Log.Append(ctx, conversationID, entries, options)
		var rule *continuo.RuleError
		if !errors.As(err, &rule) || rule.Rule != continuo.RuleUnanswered {
			return stored, err
		}
		running, err := d.RunningTurn(ctx, conversationID)
		if err != nil {
			return nil, err
		}
		if running == nil {
			if err := d.answerOpenCalls(ctx, conversationID); err != nil {
				return nil, err
			}
			continue
		}
		if !listener.Wait(ctx, changed, TurnPoll) {
			return nil, context.Cause(ctx)
		}
	}
}

// answerOpenCalls appends results for calls without results, whose turn has ended.
func (d *Driver) answerOpenCalls(ctx context.Context, conversationID string) error {
	conversation, err := d.options.Log.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	results, err := turn.OpenResults(ctx, d.options.Log, conversation)
	if err != nil || len(results) == 0 {
		return err
	}
	_, err = d.options.Log.Append(ctx, conversationID, results, continuo.AppendOptions{ExpectSeq: conversation.LastSeq + 1})
	if conflict := new(continuo.ConflictError); errors.As(err, &conflict) {
		return nil // another process has done so
	}
	return err
}

// EndCorrupt ends a run that cannot be read, once, by an event of the given kind.
func (d *Driver) EndCorrupt(ctx context.Context, run continuo.Run, kind continuo.RunEventKind, reason string) error {
	end := continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: "run_event", Content: continuo.Text("The run ended: " + reason),
		Mode: continuo.ModeRun, RunID: run.ID, WorkflowID: run.WorkflowID,
		RunEvent: &continuo.RunEvent{Kind: kind, Reason: reason},
	}
	key := fmt.Sprintf("run/%s/unread/%s", run.ID, kind)
	_, err := d.Append(ctx, run.ConversationID, []continuo.Entry{end}, continuo.AppendOptions{Key: key, Identity: key})
	return err
}
