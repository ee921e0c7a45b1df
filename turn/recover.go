package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// idLeap is how far the ids of a recovered turn's last events are above those that were kept: readers may
// have seen events that the killed program had not yet brought to the store, and must not take the last
// ones for what they know.
const idLeap = 1 << 20

// Recover closes a turn whose process is gone: partial text becomes an assistant entry with the reason
// interrupted, calls that were cut off move to its partial calls, calls without a result get one that says
// so. All of it is one commit, so that it may be killed too. It reports false when another process was
// faster.
func (k *Keeper) Recover(ctx context.Context, seen continuo.Turn) (bool, error) {
	turn, err := k.store.TakeTurn(ctx, seen, k.options.Owner, k.options.Lease)
	if errors.Is(err, continuo.ErrLeaseLost) || errors.Is(err, continuo.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		err = k.close(ctx, turn)
	}
	if errors.Is(err, continuo.ErrLeaseLost) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("close turn %s of conversation %s, which broke off: %w", seen.ID, seen.ConversationID, err)
	}
	k.options.Meter.TurnRecovered()
	return true, nil
}

// close writes the end of a turn that this process took over.
func (k *Keeper) close(ctx context.Context, turn continuo.Turn) error {
	left, err := k.remains(ctx, turn)
	if err != nil {
		return err
	}
	update := continuo.TurnUpdate{ConversationID: turn.ConversationID, TurnID: turn.ID, Fence: turn.Fence}
	if !left.started {
		update.State = continuo.TurnVoid
		_, err := k.store.UpdateTurn(ctx, update)
		return err
	}
	entries := left.entries(turn)
	id := turn.LastEvent + idLeap
	tell := func(stored []continuo.Entry) continuo.TurnUpdate {
		done := update
		var told []Event
		for i := range stored {
			kind := Answered
			if stored[i].Role == continuo.Tool {
				kind = ToolDone
			}
			told = append(told, Event{Kind: kind, Entry: &stored[i]})
		}
		last := left.lastFailure
		if last == nil {
			last = newestAssistant(stored)
		}
		done.State, done.End = continuo.TurnFailed, continuo.TurnEnd{Reason: last.Error.Reason, Usage: left.usage}
		told = append(told, Event{Kind: Failed, Entry: last, Plan: left.plan, Usage: left.usage})
		for i := range told {
			told[i].ID, told[i].TurnID = id+int64(i), turn.ID
			done.Events = append(done.Events, encode(&told[i]))
		}
		return done
	}
	if len(entries) == 0 {
		_, err = k.store.UpdateTurn(ctx, tell(nil))
		return err
	}
	_, err = k.options.Log.Append(ctx, turn.ConversationID, entries, continuo.AppendOptions{Turn: tell})
	return err
}

func newestAssistant(entries []continuo.Entry) *continuo.Entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Role == continuo.Assistant {
			return &entries[i]
		}
	}
	return nil
}

// remains is what a turn left behind.
type remains struct {
	started     bool
	mode        continuo.Mode   // of the turn's entries
	plan        *continuo.Plan  // of the newest round
	round       *continuo.Round // of the request that was under way; nil between rounds
	answer      model.Answer    // what had come of it
	open        continuo.Group  // calls without a result
	lastFailure *continuo.Entry // the turn's newest answer, if it is one that failed
	usage       continuo.Usage
}

// remains reads a turn's events and what stands in the log of it.
func (k *Keeper) remains(ctx context.Context, turn continuo.Turn) (*remains, error) {
	left := &remains{}
	var first int64
	for after := int64(0); ; {
		page, err := k.store.TurnEvents(ctx, turn.ConversationID, turn.ID, after, eventPage)
		if err != nil {
			return nil, err
		}
		for _, stored := range page {
			event, err := decode(turn.ID, stored)
			if err != nil {
				return nil, err
			}
			left.take(&event)
			if event.Kind == Started && event.Entry != nil {
				first = event.Entry.Seq
			}
			after = event.ID
		}
		if len(page) == 0 {
			break
		}
	}
	conversation, err := k.options.Log.Conversation(ctx, turn.ConversationID)
	if err != nil {
		return nil, err
	}
	if left.open, err = k.options.Log.OpenGroup(ctx, conversation); err != nil {
		return nil, err
	}
	return left, left.readLog(ctx, k.options.Log, conversation, turn.ID, first)
}

// take follows an event.
func (r *remains) take(e *Event) {
	switch e.Kind {
	case Started:
		r.started = true
	case Planned:
		r.plan, r.round, r.answer = e.Plan, e.Round, model.Answer{}
		if e.Round != nil {
			r.answer.Provider = e.Round.Provider
		}
	case TextDelta:
		r.answer.Add(model.Delta{Text: e.Text})
	case ReasoningDelta:
		r.answer.Add(model.Delta{Reasoning: e.Text, Signature: e.Signature})
	case CallDelta:
		r.answer.Add(model.Delta{ToolCall: e.Delta})
	case Answered:
		r.round = nil
	}
}

// readLog sums up what the turn's rounds used, and finds out its mode and whether the last round failed.
func (r *remains) readLog(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, turnID string, first int64) error {
	for entry, err := range log.Read(ctx, conversation, continuo.Range{From: max(first, 1)}) {
		switch {
		case err != nil:
			return err
		case entry.TurnID != turnID:
			continue
		}
		r.mode = entry.Mode
		if entry.Role != continuo.Assistant {
			continue
		}
		addUsage(&r.usage, entry.Round)
		r.lastFailure = nil
		if entry.Error != nil {
			r.lastFailure = &entry
		}
	}
	return nil
}

// entries makes what closes the turn.
func (r *remains) entries(turn continuo.Turn) []continuo.Entry {
	var entries []continuo.Entry
	for _, id := range r.open.Open {
		entries = append(entries, interruptedCall(id, r.open.Hidden))
	}
	if r.lastFailure == nil {
		entries = append(entries, r.broken()...)
	}
	for i := range entries {
		entries[i].Mode, entries[i].AgentID, entries[i].TurnID = cmp.Or(r.mode, turn.Mode), turn.AgentID, turn.ID
	}
	return entries
}

// broken makes the answer that says that the turn broke off, with what had come of it.
func (r *remains) broken() []continuo.Entry {
	failure := &model.Error{Reason: continuo.ReasonInterrupted, Message: "the program ended during the turn", Retryable: true}
	if r.round == nil {
		return []continuo.Entry{(&model.Answer{}).Entry(failure)}
	}
	answer := r.answer.Entry(failure)
	answer.Round = r.round
	entries := []continuo.Entry{answer}
	for _, call := range answer.ToolCalls {
		result := interruptedCall(call.ID, false)
		result.ToolName = call.Name
		entries = append(entries, result)
	}
	return entries
}

// interruptedCall answers a call that got no result.
func interruptedCall(id string, hidden bool) continuo.Entry {
	return continuo.Entry{
		Role: continuo.Tool, ToolCallID: id, PartType: "tool_error", Hidden: hidden,
		Content: continuo.Text("error: interrupted: the program ended before this call had a result; it may or may not have been carried out"),
	}
}

// addUsage adds a round's usage to a sum.
func addUsage(sum *continuo.Usage, round *continuo.Round) {
	if round == nil || round.Usage == nil {
		return
	}
	sum.InputTokens += round.Usage.InputTokens
	sum.OutputTokens += round.Usage.OutputTokens
	sum.CachedTokens += round.Usage.CachedTokens
	sum.CacheWriteTokens += round.Usage.CacheWriteTokens
	sum.ReasoningTokens += round.Usage.ReasoningTokens
}
