package gateway

import (
	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// The types of events about MCP servers.
const (
	eventMCPCallInProgress = "response.mcp_call.in_progress"
	eventMCPCallCompleted  = "response.mcp_call.completed"
	eventMCPCallFailed     = "response.mcp_call.failed"
	eventMCPListInProgress = "response.mcp_list_tools.in_progress"
	eventMCPListCompleted  = "response.mcp_list_tools.completed"
)

// argumentEvents are the types of the events with the arguments of calls, by the types of their items.
var argumentEvents = map[string]struct{ delta, done string }{
	responses.TypeFunctionCall: {responses.EventArgumentsDelta, responses.EventArgumentsDone},
	responses.TypeCustomCall:   {responses.EventInputDelta, responses.EventInputDone},
	typeMCPCall:                {"response.mcp_call_arguments.delta", "response.mcp_call_arguments.done"},
}

// firstItems adds the items with which the output begins: the tools of MCP servers, and approved calls, which have run.
func (s *responseStream) firstItems() (wire string) {
	for _, first := range s.first {
		index := len(s.items)
		s.items, s.shown[first.id] = append(s.items, first), true
		about := func(kind string) string {
			return s.send(responses.Event{Type: kind, ItemID: first.id, OutputIndex: &index})
		}
		wire += s.send(responses.Event{Type: responses.EventItemAdded, OutputIndex: &index, Item: first.raw})
		switch kind, _ := kindOf(first.raw); kind {
		case typeMCPListing:
			wire += about(eventMCPListInProgress) + about(eventMCPListCompleted)
		default:
			wire += about(eventMCPCallInProgress) + about(endOfMCP(first))
		}
		wire += s.send(responses.Event{Type: responses.EventItemDone, OutputIndex: &index, Item: first.raw})
	}
	return wire
}

// run begins the calls of MCP servers that an answer has.
func (s *responseStream) run(answer *continuo.Entry) {
	marks := mcpMarks(answer)
	for i, call := range answer.ToolCalls {
		mark, ok := marks[call.ID]
		if !ok || mark.Asks {
			continue
		}
		mark.Arguments = call.Arguments
		ref := refOf(answer, firstCallIndex+i)
		for index := range s.items {
			if s.items[index].id == ref.id(typeMCPCall) {
				s.running[call.ID] = openMCP{ref, mark, index}
			}
		}
	}
}

// endMCP ends the call of an MCP server that a result answers.
func (s *responseStream) endMCP(result *continuo.Entry) string {
	open, ok := s.running[result.ToolCallID]
	if !ok {
		return ""
	}
	delete(s.running, result.ToolCallID)
	done := mcpCallItem(open.ref, open.mark, result)
	s.items[open.index] = done
	return s.send(responses.Event{Type: endOfMCP(done), ItemID: done.id, OutputIndex: &open.index}) +
		s.send(responses.Event{Type: responses.EventItemDone, OutputIndex: &open.index, Item: done.raw})
}

// endOfMCP is the type of the event that says how a call ended.
func endOfMCP(call item) string {
	if statusOf(call.raw) == responses.StatusCompleted {
		return eventMCPCallCompleted
	}
	return eventMCPCallFailed
}
