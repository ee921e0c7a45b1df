package turn

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// askAgain makes calls again that were interrupted in an earlier turn of the run's step, where their tools say
// that this does no harm. The calls and their results stand in the log as the interrupted ones do.
func (c *cycle) askAgain() error {
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

// interrupted returns the calls, with ids of their own, that the step's newest group had under way when its
// program ended and that are safe to repeat. There are none once anything else was said since.
func (c *cycle) interrupted() ([]continuo.ToolCall, error) {
	conversation, err := c.Log.Conversation(c.ctx, c.conversationID)
	if err != nil {
		return nil, err
	}
	var ids []string
	for entry, err := range c.Log.Read(c.ctx, conversation, continuo.Range{Backward: true}) {
		switch {
		case err != nil:
			return nil, err
		case entry.Hidden || entry.TurnID == c.journal.turn.ID:
		case entry.RunID != c.journal.turn.RunID || entry.NodeID != c.journal.turn.NodeID:
			return nil, nil
		case entry.PartType == continuo.PartInterrupted:
			ids = append(ids, entry.ToolCallID)
		case entry.Role == continuo.Assistant && !saysNothing(&entry):
			return c.repeatable(&entry, ids), nil
		}
	}
	return nil, nil
}

// saysNothing reports whether an answer broke off before it had said anything.
func saysNothing(answer *continuo.Entry) bool {
	return answer.Error != nil && !answer.HasCalls() && answer.Content.IsEmpty()
}

// repeatable returns those calls of an answer that have one of the ids and are safe to repeat, under new ids. The
// calls of an answer that broke off never began.
func (c *cycle) repeatable(answer *continuo.Entry, ids []string) []continuo.ToolCall {
	var calls []continuo.ToolCall
	for _, call := range answer.ToolCalls {
		found, ok := c.find(call.Name)
		if answer.Error == nil && slices.Contains(ids, call.ID) && ok && tool.IsRepeatable(found) {
			call.ID = c.Log.NewID("call")
			calls = append(calls, call)
		}
	}
	return calls
}
