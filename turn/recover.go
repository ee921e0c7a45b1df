package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// idLeap is added to the ids of a recovered turn's last events: readers may have received events that the killed
// program had not stored, and must not take the last events for those.
const idLeap = 1 << 20

// Recover closes a turn whose process is gone: partial text becomes an assistant entry with the reason interrupted,
// calls with incomplete arguments become its partial calls, and calls without a result get one that says so. It is one
// commit, so Recover itself may be killed. It reports false when another process closed the turn first. A turn that
// KeeperOptions.TakeUp takes continues in this process instead; one that it leaves stays unchanged.
func (k *Keeper) Recover(ctx context.Context, seen continuo.Turn) (bool, error) {
	done, err := k.lockRecovery(ctx, seen.ID)
	if done == nil {
		return false, err
	}
	defer done()
	if decision, err := k.options.TakeUp(ctx, seen); decision != RecoveryClose || err != nil {
		return decision == RecoveryTaken, err
	}
	return k.closeSeen(ctx, seen)
}

// Close closes a running turn whose process is gone, without asking KeeperOptions.TakeUp; see [Keeper.Recover].
func (k *Keeper) Close(ctx context.Context, seen continuo.Turn) (bool, error) {
	done, err := k.lockRecovery(ctx, seen.ID)
	if done == nil {
		return false, err
	}
	defer done()
	return k.closeSeen(ctx, seen)
}

func (k *Keeper) closeSeen(ctx context.Context, seen continuo.Turn) (bool, error) {
	turn, err := k.store.TakeTurn(ctx, seen, k.options.Owner, k.options.Lease)
	if errors.Is(err, continuo.ErrLeaseLost) || errors.Is(err, continuo.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		err = k.close(ctx, turn)
	}
	if errors.Is(err, continuo.ErrLeaseLost) || errors.Is(err, continuo.ErrNotFound) { // or the conversation was deleted
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("close turn %s of conversation %s, which broke off: %w", seen.ID, seen.ConversationID, err)
	}
	k.options.Meter.TurnRecovered()
	return true, nil
}

// lockRecovery ensures that one goroutine of this process at a time closes a turn: several would take the lease from each
// other and none would finish. While another goroutine closes the turn, alone waits for it and returns nil.
func (k *Keeper) lockRecovery(ctx context.Context, turnID string) (done func(), err error) {
	k.mu.Lock()
	other, busy := k.recovering[turnID]
	if !busy {
		own := make(chan struct{})
		k.recovering[turnID] = own
		k.mu.Unlock()
		return func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			delete(k.recovering, turnID)
			close(own)
		}, nil
	}
	k.mu.Unlock()
	select {
	case <-other:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close writes the end of a turn that this process took over.
func (k *Keeper) close(ctx context.Context, turn continuo.Turn) error {
	partial, err := k.readPartialTurn(ctx, turn)
	if err != nil {
		return err
	}
	if !partial.started {
		update := continuo.TurnUpdate{ConversationID: turn.ConversationID, TurnID: turn.ID, Fence: turn.Fence, State: continuo.TurnVoid}
		_, err := k.store.UpdateTurn(ctx, update)
		return err
	}
	err = k.write(ctx, turn, partial, partial.entries(turn))
	var rule *continuo.RuleError
	if errors.As(err, &rule) { // a turn that cannot be closed would block its conversation permanently
		err = k.write(ctx, turn, partial, partial.atLeast(turn))
	}
	return err
}

// write closes a turn with entries.
func (k *Keeper) write(ctx context.Context, turn continuo.Turn, partial *partialTurn, entries []continuo.Entry) error {
	update := continuo.TurnUpdate{ConversationID: turn.ConversationID, TurnID: turn.ID, Fence: turn.Fence}
	id := turn.LastEvent + idLeap
	updateWith := func(stored []continuo.Entry) continuo.TurnUpdate {
		done := update
		var emitted []Event
		for i := range stored {
			kind := Answered
			if stored[i].Role == continuo.Tool {
				kind = ToolDone
			}
			emitted = append(emitted, Event{Kind: kind, Entry: &stored[i]})
		}
		last := partial.lastFailure
		if last == nil {
			last = newestAssistant(stored)
		}
		done.State, done.End = continuo.TurnFailed, continuo.TurnEnd{Reason: last.Error.Reason, Usage: partial.usage}
		emitted = append(emitted, Event{Kind: Failed, Entry: last, Plan: partial.plan, Usage: partial.usage})
		for i := range emitted {
			emitted[i].ID, emitted[i].TurnID = id+int64(i), turn.ID
			done.Events = append(done.Events, encode(&emitted[i]))
		}
		return done
	}
	if len(entries) == 0 {
		_, err := k.store.UpdateTurn(ctx, updateWith(nil))
		return err
	}
	_, err := k.options.Log.Append(ctx, turn.ConversationID, entries, continuo.AppendOptions{Turn: updateWith})
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

// partialTurn is the state that a turn's process left behind.
type partialTurn struct {
	started     bool
	starts      int              // in how many processes
	mode        continuo.Mode    // of the turn's entries
	author      *continuo.Author // the role of a crew that speaks; nil for none
	plan        *window.Plan     // of the newest round
	round       *continuo.Round  // of the request in progress; nil between rounds
	answer      model.Answer     // the part of its answer that arrived
	open        continuo.Group   // calls without a result
	asked       []string         // ids of calls without a person's decision
	lastFailure *continuo.Entry  // the turn's newest answer, if it is one that failed
	usage       continuo.Usage
}

// readPartialTurn reads a turn's events and its entries in the log.
func (k *Keeper) readPartialTurn(ctx context.Context, turn continuo.Turn) (*partialTurn, error) {
	partial := &partialTurn{}
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
			partial.take(&event)
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
	if partial.open, err = k.options.Log.OpenGroup(ctx, conversation); err != nil {
		return nil, err
	}
	return partial, partial.readLog(ctx, k.options.Log, conversation, turn.ID, first)
}

// partial returns the text of the unfinished answer.
func (r *partialTurn) partial() string {
	if r.round == nil {
		return ""
	}
	return r.answer.Text()
}

// take applies an event to the state.
func (r *partialTurn) take(e *Event) {
	switch e.Kind {
	case Started:
		r.started = true
		r.starts++
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
		r.round, r.asked = nil, nil
	case Asked:
		r.asked = append(r.asked, e.Call.ID)
	case Decided:
		r.asked = slices.DeleteFunc(r.asked, func(id string) bool { return id == e.Call.ID })
	}
}

// readLog sums up the usage of the turn's rounds, and finds its mode and whether the last round failed.
func (r *partialTurn) readLog(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, turnID string, first int64) error {
	for entry, err := range log.Read(ctx, conversation, continuo.Range{From: max(first, 1)}) {
		switch {
		case err != nil:
			return err
		case entry.TurnID != turnID:
			continue
		}
		r.mode = entry.Mode
		if event := entry.RunEvent; event != nil && event.Kind == continuo.RunNodeBegan {
			r.author = entry.Author
		}
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

// entries returns the entries that close the turn.
func (r *partialTurn) entries(turn continuo.Turn) []continuo.Entry {
	var broken []continuo.Entry
	if r.lastFailure == nil {
		broken = r.broken()
	}
	return r.behindOpen(turn, broken)
}

// atLeast returns the entries that close a turn whose answer breaks a rule of the log: only the answer's text is kept.
func (r *partialTurn) atLeast(turn continuo.Turn) []continuo.Entry {
	if r.lastFailure != nil {
		return r.behindOpen(turn, nil)
	}
	return r.behindOpen(turn, []continuo.Entry{textOf(r.broken()[0])})
}

// textOf reduces a failed answer to its text, because a rule may have refused the rest. The error counts the removed
// calls.
func textOf(answer continuo.Entry) continuo.Entry {
	failure := *answer.Error
	failure.PartialToolCalls = nil
	if n := len(answer.ToolCalls) + len(answer.Error.PartialToolCalls); n > 0 {
		failure.Message += fmt.Sprintf("; %d calls of tools could not be kept", n)
	}
	return continuo.Entry{Role: continuo.Assistant, Content: answer.Content, Error: &failure, Round: answer.Round}
}

// behindOpen puts the results of open calls before entries of the turn.
func (r *partialTurn) behindOpen(turn continuo.Turn, more []continuo.Entry) []continuo.Entry {
	var entries []continuo.Entry
	for _, call := range r.open.OpenCalls() {
		result := interruptedCall(call, r.open.Hidden)
		if slices.Contains(r.asked, call.ID) {
			result.PartType = continuo.PartUndecided
			result.Content = continuo.Text("error: not run: the program ended before anybody decided whether it may")
		}
		entries = append(entries, result)
	}
	entries = append(entries, more...)
	for i := range entries {
		entries[i].Mode, entries[i].AgentID = cmp.Or(r.mode, turn.Mode), turn.AgentID
		tag(&entries[i], &turn, r.author)
	}
	return entries
}

// broken returns the answer that records the interruption, with the content that had arrived.
func (r *partialTurn) broken() []continuo.Entry {
	failure := &model.Error{Reason: continuo.ReasonInterrupted, Message: "the program that ran the turn ended, or was out of touch for too long", Retryable: true}
	if r.round == nil {
		return []continuo.Entry{(&model.Answer{}).Entry(failure)}
	}
	answer := r.answer.Entry(failure)
	answer.Round = r.round
	entries := []continuo.Entry{answer}
	for _, call := range answer.ToolCalls {
		entries = append(entries, interruptedCall(call, false))
	}
	return entries
}

// interruptedCall returns the result of a call that got none.
func interruptedCall(call continuo.ToolCall, hidden bool) continuo.Entry {
	return continuo.Entry{
		Role: continuo.Tool, ToolCallID: call.ID, ToolName: call.Name, PartType: continuo.PartInterrupted, Hidden: hidden,
		Content: continuo.Text("error: interrupted: the program ended before this call had a result; it may or may not have been carried out"),
	}
}

// addUsage adds a round's usage to a sum.
func addUsage(sum *continuo.Usage, round *continuo.Round) {
	if round == nil || round.Usage == nil {
		return
	}
	sum.Add(*round.Usage)
}
