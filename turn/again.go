package turn

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// askAgain repeats calls that were interrupted in an earlier turn of the run's step: calls of tools that are safe to
// repeat, and undecided calls, which have not run and for which a person is asked again. The repeated calls and their
// results are appended to the log as new entries.
func (c *toolLoop) askAgain() error {
	calls, err := c.interrupted()
	if err != nil || len(calls) == 0 {
		return err
	}
	stored, err := c.append([]continuo.Entry{{Role: continuo.Assistant, ToolCalls: calls}}, func(stored []continuo.Entry) []Event {
		return []Event{{Kind: Answered, Entry: &stored[0]}}
	}, nil)
	if err != nil {
		return err
	}
	return c.answerCalls(&stored[0], false)
}

// interrupted returns, under new ids, the calls of the step's newest group that were in progress when its program ended
// and that can be repeated. There are none when another answer, or an entry of another step, came later.
func (c *toolLoop) interrupted() ([]continuo.ToolCall, error) {
	conversation, err := c.Log.Conversation(c.ctx, c.conversationID)
	if err != nil {
		return nil, err
	}
	var ids, undecided []string
	for entry, err := range c.Log.Read(c.ctx, conversation, continuo.Range{Backward: true}) {
		switch {
		case err != nil:
			return nil, err
		case entry.Hidden || entry.TurnID == c.journal.turn.ID:
		case entry.RunID != c.journal.turn.RunID || entry.NodeID != c.journal.turn.NodeID:
			return nil, nil
		case entry.PartType == continuo.PartInterrupted:
			ids = append(ids, entry.ToolCallID)
		case entry.PartType == continuo.PartUndecided:
			undecided = append(undecided, entry.ToolCallID)
		case entry.Role == continuo.Assistant && !IsEmptyFailure(&entry):
			return c.repeatable(&entry, ids, undecided), nil
		}
	}
	return nil, nil
}

// IsEmptyFailure reports whether an answer failed before it had any content.
func IsEmptyFailure(answer *continuo.Entry) bool {
	return answer.Error != nil && !answer.HasCalls() && answer.Content.IsEmpty()
}

// repeatable returns, under new ids, the undecided calls of an answer and those of ids whose tools are safe to repeat.
// The calls of a failed answer never began.
func (c *toolLoop) repeatable(answer *continuo.Entry, ids, undecided []string) []continuo.ToolCall {
	var calls []continuo.ToolCall
	for _, call := range answer.ToolCalls {
		found, ok := c.find(call.Name)
		again := slices.Contains(undecided, call.ID) || slices.Contains(ids, call.ID) && tool.IsRepeatable(found)
		if answer.Error == nil && ok && again {
			call.ID = c.Log.NewID("call")
			calls = append(calls, call)
		}
	}
	return calls
}
