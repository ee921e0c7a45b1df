package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/task"
)

// problem is an error of a tool in the form for callers, in structuredContent.error.
type problem struct {
	// For programs: type_error, missing_field and invalid_value are about an argument; others are not_found, not_running,
	// conversation_busy, conflict, rule_broken, archived, context_overflow, too_many_agents, idempotency_conflict, timeout,
	// closing, store_unavailable, internal.
	Type      string `json:"type"`
	Message   string `json:"message"`              // what is wrong and what to do
	Field     string `json:"field,omitempty"`      // the argument, or the path of a part of it, such as conversation_history[2].role
	Index     *int   `json:"index,omitempty"`      // the message or the item of a list that is at fault, from 0
	Rule      string `json:"rule,omitempty"`       // the rule of the log that an entry would break; of the type rule_broken
	ExpectSeq int64  `json:"expect_seq,omitempty"` // the expected next seq; of the type conflict
	NextSeq   int64  `json:"next_seq,omitempty"`   // the actual next seq; of the type conflict

	cause error // logged, when the message does not contain it
}

const internalMessage = "internal error; see the server's log"

// problemOf maps an error to the problem that the caller sees: that of package api, with the names that tools use.
func problemOf(err error) *problem {
	if errors.Is(err, context.Canceled) {
		return &problem{Type: "cancelled", Message: context.Canceled.Error(), cause: err}
	}
	var (
		refused *task.ValidationError
		rule    *continuo.RuleError
		lost    *continuo.ConflictError
	)
	known := api.ProblemOf(err)
	p := &problem{Type: known.Code, Message: known.Message, Field: known.Param, cause: known.Cause}
	switch {
	case errors.As(err, &refused):
		if refused.Index >= 0 {
			p.Index = &refused.Index
		}
	case errors.As(err, &rule):
		p.Type, p.Message, p.Rule = "rule_broken", rule.Message, string(rule.Rule)
	case errors.As(err, &lost):
		p.Field, p.ExpectSeq, p.NextSeq = "expect_seq", lost.Want, lost.Have
	case errors.Is(err, continuo.ErrKeyReused):
		p.Field = "idempotency_key"
	}
	switch p.Type {
	case "invalid_request": // the hand-off format defines the types of invalid arguments
		p.Type = string(cmp.Or(known.Fault, task.InvalidValue))
	case "internal":
		p.Message = internalMessage
	}
	p.Message, p.Field = cut(p.Message, api.MaxMessage), cut(p.Field, api.MaxMessage)
	return p
}

// cut bounds a text and makes it valid UTF-8.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// protocolError is the response to a failed method other than tools/call. A not-found error is about the resource.
func (f *projectServer) protocolError(ctx context.Context, uri string, err error) error {
	var known *jsonrpc.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, continuo.ErrNotFound) && uri != "":
		return resourceNotFound(uri)
	}
	p := problemOf(err)
	f.logCause(ctx, p)
	code := int64(jsonrpc.CodeInvalidParams)
	if p.cause != nil {
		code = jsonrpc.CodeInternalError
	}
	return &jsonrpc.Error{Code: code, Message: p.Type + ": " + p.Message}
}

// resourceNotFound is mcp.ResourceNotFoundError with valid data: the SDK's own is invalid JSON for some URIs, and then
// it closes the connection.
func resourceNotFound(uri string) error {
	return &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams, Message: "Resource not found", Data: rawjson.MustMarshal(map[string]string{"uri": cut(uri, maxURI)}),
	}
}

// logCause logs the cause of a problem whose message does not contain it.
func (f *projectServer) logCause(ctx context.Context, p *problem) {
	if p.cause != nil && p.Type != "cancelled" {
		f.options.Logger.ErrorContext(ctx, "mcp_failed", "type", p.Type, "error", p.cause.Error())
	}
}
