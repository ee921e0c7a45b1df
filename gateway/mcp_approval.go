package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/render"
)

// expandMCP replaces the items of MCP calls in a request's input by what they are to its model: functions of this server,
// and their results. A client's approval is the result of its call, which is not known yet.
func (a *responsesAPI) expandMCP(ctx context.Context, q *responseRequest) error {
	if q.mcp == nil {
		return nil
	}
	var items []json.RawMessage
	requests := map[string]mcpApproval{}
	for i, raw := range q.items {
		var one mcpItem
		kind, _ := kindOf(raw)
		if strings.HasPrefix(kind, "mcp_") {
			if err := json.Unmarshal(raw, &one); err != nil {
				return api.Refuse(fmt.Sprintf("input[%d]", i), "%s", err)
			}
		}
		switch kind {
		case typeMCPListing:
		case typeMCPCall:
			items = append(items, one.call(), functionOutput(one.ID, one.result()))
		case typeMCPRequest:
			requests[one.ID] = mcpApproval{request: one.ID, call: one.ID, mark: mcpMark{Server: one.ServerLabel, Name: one.Name, Arguments: one.Arguments}}
			items = append(items, one.call())
		case typeMCPResponse:
			approval, known := requests[one.ApprovalRequestID]
			if !known {
				var err error
				if approval, err = a.approvalRequest(ctx, one.ApprovalRequestID); err != nil {
					return err
				}
			}
			if slices.ContainsFunc(q.mcp.approvals, func(other mcpApproval) bool { return other.call == approval.call }) {
				return api.Refuse(fmt.Sprintf("input[%d]", i), "the request answers the approval %s twice", api.Bounded(one.ApprovalRequestID))
			}
			approval.mark.Request, approval.mark.Denied, approval.mark.Reason = approval.request, !one.Approve, one.Reason
			approval.at = i
			q.mcp.approvals = append(q.mcp.approvals, approval)
			items = append(items, functionOutput(approval.call, deniedText(one.Reason)))
		default:
			items = append(items, raw)
		}
	}
	q.items = items
	return nil
}

// mcpItem is an item about a call of an MCP server.
type mcpItem struct {
	ID                string          `json:"id"`
	ServerLabel       string          `json:"server_label"`
	Name              string          `json:"name"`
	Arguments         string          `json:"arguments"`
	Output            *string         `json:"output"`
	Error             json.RawMessage `json:"error"` // a string, or an object with one
	ApprovalRequestID string          `json:"approval_request_id"`
	Approve           bool            `json:"approve"`
	Reason            string          `json:"reason"`
}

func (i *mcpItem) call() json.RawMessage {
	return rawjson.MustMarshal(rawjson.Object{
		text("type", responses.TypeFunctionCall), text("call_id", i.ID), text("name", render.ToolName(i.ServerLabel+"."+i.Name)), text("arguments", i.Arguments),
	})
}

func (i *mcpItem) result() string {
	if i.Output != nil {
		return *i.Output
	}
	if message, ok := rawjson.String(i.Error); ok {
		return message
	}
	return string(i.Error)
}

func functionOutput(call, output string) json.RawMessage {
	return rawjson.MustMarshal(rawjson.Object{text("type", responses.TypeFunctionCallOutput), text("call_id", call), text("output", output)})
}

// deniedText is the result of a call that the client did not approve.
func deniedText(reason string) string {
	if reason == "" {
		return "error: not run: it was not approved"
	}
	return "error: not run: it was not approved: " + reason
}

// mcpApproval is a client's answer to the question whether a call may run.
type mcpApproval struct {
	request, call string // the ids of the question and of the call
	mark          mcpMark
	at            int // in the input
}

// approvalRequest finds the question of an id in the log.
func (a *responsesAPI) approvalRequest(ctx context.Context, id string) (mcpApproval, error) {
	unknown := api.Refuse("input", "there is no request for an approval %s that could be answered", api.Bounded(id))
	ref, ok := parseItemID(id)
	if !ok {
		return mcpApproval{}, unknown
	}
	conversation, err := a.engine.Conversations.Find(ctx, a.scope, ref.conversation)
	if errors.Is(err, continuo.ErrNotFound) {
		return mcpApproval{}, unknown
	}
	if err != nil {
		return mcpApproval{}, err
	}
	for entry, err := range a.engine.Conversations.Read(ctx, conversation, continuo.Range{From: ref.seq, To: ref.seq}) {
		if err != nil {
			return mcpApproval{}, err
		}
		marks, at := mcpMarks(&entry), ref.index-firstCallIndex
		if at < 0 || at >= len(entry.ToolCalls) {
			break
		}
		call := entry.ToolCalls[at]
		if mark, ok := marks[call.ID]; ok && mark.Asks {
			mark.Arguments = call.Arguments
			return mcpApproval{request: id, call: call.ID, mark: mark}, nil
		}
	}
	return mcpApproval{}, unknown
}

// approve sets the calls that a request approves, and marks the entries with their results.
func (m *mcpTools) approve(wanted *engine.ClientRequest) error {
	for _, approval := range m.approvals {
		at := slices.IndexFunc(wanted.Entries, func(entry continuo.Entry) bool {
			return entry.Role == continuo.Tool && entry.ToolCallID == approval.call
		})
		entry := &wanted.Entries[at]
		entry.Vendor = withVendor(entry.Vendor, mcpMember, rawjson.MustMarshal(approval.mark))
		if approval.mark.Denied {
			entry.PartType = continuo.PartToolError
			continue
		}
		name := render.ToolName(approval.mark.Server + "." + approval.mark.Name)
		found, ok := m.tools[name]
		if !ok {
			return api.Refuse(fmt.Sprintf("input[%d]", approval.at), "the request has no tool %s of an MCP server %s, which the approval is about: send the tools again", api.Bounded(approval.mark.Name), api.Bounded(approval.mark.Server))
		}
		if wanted.Approved == nil {
			wanted.Approved = map[string]engine.ApprovedCall{}
		}
		wanted.Approved[approval.call] = engine.ApprovedCall{Tool: found, Arguments: approval.mark.Arguments}
	}
	return nil
}
