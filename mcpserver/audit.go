package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/audit"
)

// audited records the calls of tools, and the resources and prompts that are read.
func (f *projectServer) audited(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if f.options.Audit == nil {
			return next(ctx, method, request)
		}
		event, changes := audit.Event{}, false
		switch request := request.(type) {
		case *mcp.CallToolRequest:
			event.Operation, changes = "mcp."+request.Params.Name, f.changes(request.Params.Name)
			var named struct {
				Conversation string `json:"conversation_id"`
				Session      string `json:"session_id"`
				Task         string `json:"task_id"`
				Agent        string `json:"agent_id"`
				Fact         string `json:"fact_id"`
			}
			_ = json.Unmarshal(request.Params.Arguments, &named) // what is no object names nothing
			event.ConversationID = named.Conversation
			event.Target = strings.Trim(strings.Join([]string{named.Session, named.Task, named.Agent, named.Fact}, "/"), "/")
		case *mcp.ReadResourceRequest:
			event.Operation, event.Target = "mcp."+method, request.Params.URI
		case *mcp.GetPromptRequest:
			event.Operation, event.Target = "mcp."+method, request.Params.Name
		default:
			return next(ctx, method, request)
		}
		if !changes && !f.options.AuditReads {
			return next(ctx, method, request)
		}
		subject := &audit.Subject{}
		result, err := next(audit.WithSubject(ctx, subject), method, request)
		subject.Fill(&event)
		event.Status = statusOf(result, err)
		event.Caller = f.options.Caller
		if caller, ok := audit.CallerOf(ctx); ok {
			event.Caller = caller
		}
		event.ProjectID, event.UserID = f.scope.ProjectID, f.scope.UserID
		if !changes {
			f.options.Audit.Add(event)
		} else if err := f.options.Audit.Commit(ctx, event); err != nil {
			f.options.Logger.ErrorContext(ctx, "audit_delayed", "error", err.Error())
		}
		return result, err
	}
}

// changes reports whether a tool changes something.
func (f *projectServer) changes(name string) bool {
	for _, tool := range f.tools {
		if tool.Name == name {
			return tool.effect != reads
		}
	}
	return false
}

// statusOf is the outcome of a request as an HTTP status.
func statusOf(result mcp.Result, err error) int {
	called, ok := result.(*mcp.CallToolResult)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused) && refused.Code == jsonrpc.CodeInternalError:
		return http.StatusInternalServerError
	case err != nil, ok && called != nil && called.IsError:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
