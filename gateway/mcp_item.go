package gateway

import (
	"encoding/json"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// The types of items about MCP servers.
const (
	typeMCPCall     = "mcp_call"
	typeMCPListing  = "mcp_list_tools"
	typeMCPRequest  = "mcp_approval_request"
	typeMCPResponse = "mcp_approval_response"
)

// mcpMember is the member of an entry's vendor data that marks calls of MCP servers: of an answer, those calls by their ids;
// of a result, the call that the client was asked about.
const mcpMember = "gateway_mcp"

// mcpMark says which tool of which server a call is of.
type mcpMark struct {
	Server    string `json:"server_label"`
	Name      string `json:"name"`
	Asks      bool   `json:"asks,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	// Request is the question that the client has answered, Denied and Reason its answer; of a result.
	Request string `json:"approval_request_id,omitempty"`
	Denied  bool   `json:"denied,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// mcpMarks are the marks of an answer's calls.
func mcpMarks(entry *continuo.Entry) (marks map[string]mcpMark) {
	if entry.Role == continuo.Assistant {
		_ = json.Unmarshal(entry.Vendor[mcpMember], &marks) // what cannot be read is no mark
	}
	return marks
}

// mcpAnswered is the mark of the result of a call that the client was asked about.
func mcpAnswered(entry *continuo.Entry) (mark mcpMark, ok bool) {
	if entry.Role != continuo.Tool || entry.Vendor[mcpMember] == nil {
		return mark, false
	}
	return mark, json.Unmarshal(entry.Vendor[mcpMember], &mark) == nil
}

// mcpCallItem is a call of an MCP server, with its result where there is one.
func mcpCallItem(ref itemRef, mark mcpMark, result *continuo.Entry) item {
	status, output, failure := responses.StatusInProgress, json.RawMessage("null"), json.RawMessage("null")
	switch {
	case result == nil:
	case result.PartType == continuo.PartToolError:
		status, failure = "failed", rawjson.MustMarshal(result.Content.String())
	default:
		status, output = responses.StatusCompleted, rawjson.MustMarshal(result.Content.String())
	}
	return newItem(ref, typeMCPCall, append([]rawjson.Field{text("status", status)}, append(mcpCallMembers(mark),
		rawjson.Field{Key: "approval_request_id", Value: nullable(mark.Request)},
		rawjson.Field{Key: "output", Value: output}, rawjson.Field{Key: "error", Value: failure})...))
}

// mcpRequestItem asks the client whether a call may run.
func mcpRequestItem(ref itemRef, mark mcpMark) item {
	return newItem(ref, typeMCPRequest, mcpCallMembers(mark))
}

func mcpCallMembers(mark mcpMark) []rawjson.Field {
	return []rawjson.Field{text("server_label", mark.Server), text("name", mark.Name), text("arguments", mark.Arguments)}
}

// mcpResponseItem is the client's answer.
func mcpResponseItem(ref itemRef, mark mcpMark) item {
	return newItem(ref, typeMCPResponse, []rawjson.Field{
		text("approval_request_id", mark.Request), {Key: "approve", Value: rawjson.MustMarshal(!mark.Denied)}, {Key: "reason", Value: nullable(mark.Reason)},
	})
}

// mcpListItem lists the tools of a server.
func mcpListItem(ref itemRef, listing mcpListing, tools []mcpListed) item {
	return newItem(ref, typeMCPListing, []rawjson.Field{
		text("server_label", listing.Label), {Key: "tools", Value: rawjson.MustMarshal(tools)}, {Key: "error", Value: json.RawMessage("null")},
	})
}

func nullable(value string) json.RawMessage {
	if value == "" {
		return json.RawMessage("null")
	}
	return rawjson.MustMarshal(value)
}

// firstMCPItems are the items with which the output of a response begins: the tools of servers that are new to the
// conversation, and the calls that the client has approved. Entries are the turn's, from the seq first on.
func firstMCPItems(conversation string, first int64, listings []mcpListing, entries []continuo.Entry) (items []item) {
	for i, listing := range listings {
		if listing.Tools != nil {
			items = append(items, mcpListItem(itemRef{conversation, first, firstOwnIndex + i}, listing, listing.Tools))
		}
	}
	for i := range entries {
		if mark, ok := mcpAnswered(&entries[i]); ok && !mark.Denied {
			items = append(items, mcpCallItem(itemRef{conversation, first + int64(i), 1}, mark, &entries[i]))
		}
	}
	return items
}

// itemList makes the items of entries, which are added in the order of the log: a call of an MCP server has its result.
type itemList struct {
	items []item
	calls map[string]continuo.ToolCall
	open  map[string]openMCP // by the ids of calls
}

// openMCP is a call of an MCP server whose result has not been added.
type openMCP struct {
	ref   itemRef
	mark  mcpMark
	index int // among the items
}

// add adds the items of an entry.
func (l *itemList) add(entry *continuo.Entry) {
	if l.calls == nil {
		l.calls, l.open = map[string]continuo.ToolCall{}, map[string]openMCP{}
	}
	if open, ok := l.open[entry.ToolCallID]; ok && entry.Role == continuo.Tool {
		l.items[open.index] = mcpCallItem(open.ref, open.mark, entry)
		delete(l.open, entry.ToolCallID)
		return
	}
	before := len(l.items)
	l.items = append(l.items, itemsOf(entry, l.calls[entry.ToolCallID])...)
	marks := mcpMarks(entry)
	for i, call := range entry.ToolCalls {
		l.calls[call.ID] = call
		mark, ok := marks[call.ID]
		if !ok || mark.Asks || entry.Hidden {
			continue
		}
		mark.Arguments = call.Arguments
		ref := refOf(entry, firstCallIndex+i)
		for at := before; at < len(l.items); at++ {
			if l.items[at].id == ref.id(typeMCPCall) {
				l.open[call.ID] = openMCP{ref, mark, at}
			}
		}
	}
}

// statusOf is the status of an item.
func statusOf(raw json.RawMessage) string {
	from, to, ok := rawjson.Find(raw, "status")
	if !ok {
		return ""
	}
	status, _ := rawjson.String(raw[from:to])
	return status
}
