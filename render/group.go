package render

import (
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// group is a message with the results of its calls; most messages have none.
type group struct {
	head    *window.Message
	results []window.Message // in the order of the log
}

// groupsOf splits messages into groups. A result that answers no open call of the message before it, and
// a call without a result, are errors.
func groupsOf(messages []window.Message) ([]group, error) {
	groups := make([]group, 0, len(messages))
	var open []string
	for i := range messages {
		m := &messages[i]
		if m.Role == continuo.Tool {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return nil, misplaced(i, m, fmt.Sprintf("it answers %q, which is no open call of the message before it", m.ToolCallID))
			}
			open = slices.Delete(open, at, at+1)
			last := &groups[len(groups)-1]
			last.results = messages[i-len(last.results) : i+1] // results follow their head
			continue
		}
		if len(open) > 0 {
			return nil, misplaced(i, m, fmt.Sprintf("the calls %q before it have no result", open))
		}
		switch m.Role {
		case continuo.Assistant:
			for _, call := range m.ToolCalls {
				if slices.Contains(open, call.ID) {
					return nil, misplaced(i, m, fmt.Sprintf("two of its calls have the id %q", call.ID))
				}
				open = append(open, call.ID)
			}
		case continuo.System, continuo.User:
		default:
			return nil, misplaced(i, m, "its role is not one of system, user, assistant, tool")
		}
		groups = append(groups, group{head: m})
	}
	if len(open) > 0 {
		i := len(messages) - 1
		return nil, misplaced(i, &messages[i], fmt.Sprintf("the calls %q have no result", open))
	}
	return groups, nil
}

func misplaced(index int, m *window.Message, problem string) error {
	return fmt.Errorf("%w: message %d (%s, seq %d): %s: render whole groups only", continuo.ErrInvalid, index, m.Role, m.Seq, problem)
}

// callOrder returns the results in the order of the calls.
func (g group) callOrder() []*window.Message {
	ordered := make([]*window.Message, len(g.results))
	for i := range g.results {
		result := &g.results[i]
		if i >= len(g.head.ToolCalls) || g.head.ToolCalls[i].ID != result.ToolCallID {
			return g.sorted()
		}
		ordered[i] = result
	}
	return ordered
}

// sorted is callOrder for results that are not in the order of the calls.
func (g group) sorted() []*window.Message {
	position := make(map[string]int, len(g.head.ToolCalls))
	for i, call := range g.head.ToolCalls {
		position[call.ID] = i
	}
	ordered := make([]*window.Message, len(g.results))
	for i := range g.results {
		ordered[position[g.results[i].ToolCallID]] = &g.results[i]
	}
	return ordered
}
