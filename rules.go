package continuo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Rule names one rule of the log. Imports name their repairs by the same names.
type Rule string

// The rules that every append checks. The names follow the validator codes of docs/protocol-rules.md.
const (
	RuleUnknownRole     Rule = "unknown_role"
	RuleNullContent     Rule = "null_content"
	RuleEmptyAssistant  Rule = "empty_assistant"
	RuleMisplacedCalls  Rule = "misplaced_tool_calls"
	RuleMissingCallID   Rule = "missing_call_id"
	RuleDuplicateCallID Rule = "duplicate_call_id"
	RuleBadFunction     Rule = "bad_function"
	RuleToolMissingID   Rule = "tool_missing_id"
	RuleOrphanTool      Rule = "orphan_tool"
	RuleUnknownCallID   Rule = "unknown_call_id"
	RuleDuplicateAnswer Rule = "duplicate_answer"
	RuleHiddenResult    Rule = "hidden_result"
	RuleUnanswered      Rule = "unanswered"
	RuleInvalidUTF8     Rule = "invalid_utf8"
	RuleInvalidJSON     Rule = "invalid_json"
	RuleTooLarge        Rule = "too_large"
	RuleRepairs         Rule = "repairs_outside_import"
	RuleModeUnknown     Rule = "unknown_mode"
)

// Group is the state of the newest group at a position of a log: the calls of an assistant entry, and those without a
// result yet. The zero value is a log without open calls.
type Group struct {
	Calls  []ToolCall // the last assistant entry's, in order
	Open   []string   // the ids of those without a result yet, in order
	Hidden bool       // the calls are for people only
}

// Accept checks an entry against the rules and advances the state. A hidden entry that an import repaired (it has
// Repairs) is accepted anywhere and does not change the state. On an error the state does not change.
func (g *Group) Accept(e *Entry) *RuleError {
	if err := checkShape(e); err != nil {
		return err
	}
	return g.advance(e)
}

// advance is Accept for an entry whose shape has been checked.
func (g *Group) advance(e *Entry) *RuleError {
	switch {
	case e.Hidden && len(e.Repairs) > 0:
		return nil
	case e.Role == Tool:
		if err := g.answerable(e.ToolCallID); err != nil {
			return err
		}
		if e.Hidden != g.Hidden {
			return broken(RuleHiddenResult, "a result is hidden if and only if its call is: a group is shown together or not at all")
		}
		g.answer(e.ToolCallID)
		return nil
	case len(g.Open) > 0:
		return broken(RuleUnanswered, "a %s entry cannot come while calls are open: append a tool entry for %s first",
			e.Role, strings.Join(g.Open, ", "))
	case e.HasCalls():
		*g = Group{Calls: e.ToolCalls, Hidden: e.Hidden}
		for _, call := range g.Calls {
			g.Open = append(g.Open, call.ID)
		}
	default:
		*g = Group{}
	}
	return nil
}

// OpenCalls returns the calls without a result yet, in order.
func (g *Group) OpenCalls() []ToolCall {
	var open []ToolCall
	for _, call := range g.Calls {
		if slices.Contains(g.Open, call.ID) {
			open = append(open, call)
		}
	}
	return open
}

// answerable returns an error when a result does not belong to an open call.
func (g *Group) answerable(callID string) *RuleError {
	switch {
	case slices.Contains(g.Open, callID):
		return nil
	case slices.ContainsFunc(g.Calls, func(call ToolCall) bool { return call.ID == callID }):
		return broken(RuleDuplicateAnswer, "the call %q has its result already", callID)
	case len(g.Open) > 0:
		return broken(RuleUnknownCallID, "no open call has the id %q; open are %s", callID, strings.Join(g.Open, ", "))
	default:
		return broken(RuleOrphanTool, "no call is open that %q could answer", callID)
	}
}

// answer closes an open call.
func (g *Group) answer(callID string) {
	at := slices.Index(g.Open, callID)
	g.Open = slices.Delete(slices.Clone(g.Open), at, at+1)
}

// checkShape checks an entry on its own, without the log.
func checkShape(e *Entry) *RuleError {
	switch e.Role {
	case System, User, Assistant, Tool:
	case "developer":
		return broken(RuleUnknownRole, "role developer is not one of the log's: a developer message is a system entry")
	default:
		return broken(RuleUnknownRole, "role %q is not one of system, user, assistant, tool", e.Role)
	}
	switch e.Mode {
	case "", ModeChat, ModeAgent, ModeRun:
	default:
		return broken(RuleModeUnknown, "mode %q is not one of chat, agent, run", e.Mode)
	}
	if err := checkText(e); err != nil {
		return err
	}
	if err := checkRaw(e); err != nil {
		return err
	}
	if len(e.ToolCalls) > 0 && e.Role != Assistant {
		return broken(RuleMisplacedCalls, "only an assistant entry may have tool_calls")
	}
	if err := checkCalls(e.ToolCalls); err != nil {
		return err
	}
	if e.Hidden && len(e.Repairs) > 0 {
		return nil
	}
	switch e.Role {
	case Assistant:
		if e.Content.IsNull() && len(e.ToolCalls) == 0 && e.Error == nil && e.Reasoning == nil {
			return broken(RuleEmptyAssistant, "an assistant entry needs content, tool_calls, reasoning or an error")
		}
	case Tool:
		if e.ToolCallID == "" {
			return broken(RuleToolMissingID, "a tool entry needs the tool_call_id that it answers")
		}
		fallthrough
	default:
		if e.Content.IsNull() || e.Content.IsParts() && len(e.Content.Parts()) == 0 {
			return broken(RuleNullContent, "a %s entry needs content: a string or a list of parts", e.Role)
		}
	}
	return nil
}

// maxCalls bounds the calls of one entry.
const maxCalls = 4096

func checkCalls(calls []ToolCall) *RuleError {
	if len(calls) > maxCalls {
		return broken(RuleTooLarge, "the entry has %d tool calls, more than the limit of %d", len(calls), maxCalls)
	}
	seen := make(map[string]bool, len(calls))
	for _, call := range calls {
		switch {
		case call.ID == "":
			return broken(RuleMissingCallID, "a call of %q has no id", call.Name)
		case seen[call.ID]:
			return broken(RuleDuplicateCallID, "two calls have the id %q", call.ID)
		case call.Name == "":
			return broken(RuleBadFunction, "the call %q needs a name", call.ID)
		case call.Type != "" && call.Type != "function" && call.Type != "custom":
			return broken(RuleBadFunction, "the type of the call %q is %q, and not function or custom", call.ID, call.Type)
		}
		seen[call.ID] = true
	}
	return nil
}

func checkText(e *Entry) *RuleError {
	texts := []string{e.Content.String(), e.Outcome, e.OutputRef, e.ToolCallID, e.Name, e.PartType, e.ToolName, e.RunID, e.WorkflowID, e.NodeID, e.AgentID, e.TurnID}
	if e.Reasoning != nil {
		texts = append(texts, e.Reasoning.Text, e.Reasoning.Signature)
	}
	if e.Author != nil {
		texts = append(texts, e.Author.RoleName, e.Author.DisplayName, e.Author.AgentName)
	}
	if e.Error != nil {
		texts = append(texts, e.Error.Message)
		for _, call := range e.Error.PartialToolCalls {
			texts = append(texts, call.ID, call.Name, call.Arguments)
		}
	}
	if e.RunEvent != nil {
		texts = slices.Concat(texts, []string{e.RunEvent.Reason, e.RunEvent.By, e.RunEvent.KeyID}, e.RunEvent.Next, e.RunEvent.Dropped)
	}
	for _, call := range e.ToolCalls {
		texts = append(texts, call.ID, call.Name, call.Arguments)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return broken(RuleInvalidUTF8, "text is not valid UTF-8")
		}
	}
	return nil
}

// checkRaw refuses values that cannot be encoded as JSON and so cannot be stored.
func checkRaw(e *Entry) *RuleError {
	var broke *RuleError // the first
	check := func(kind, name string, raw json.RawMessage) {
		switch {
		case raw == nil || broke != nil:
		case !json.Valid(raw):
			broke = broken(RuleInvalidJSON, "%s is not valid JSON", kind+name)
		case rawjson.Depth(raw) > maxRawDepth:
			broke = broken(RuleInvalidJSON, "%s is nested more than %d levels deep", kind+name, maxRawDepth)
		}
	}
	check("widget", "", e.Widget)
	check("extra", "", e.Extra)
	if e.TaskEvent != nil {
		check("task", "", e.TaskEvent.Task)
		check("finding", "", e.TaskEvent.Finding)
	}
	if e.RunEvent != nil {
		check("inputs of the run", "", e.RunEvent.Inputs)
		check("outputs of the run", "", e.RunEvent.Outputs)
	}
	for vendor, raw := range e.Vendor {
		check("vendor ", vendor, raw)
	}
	for i, part := range e.Content.Parts() {
		if read, err := parsePart(part.Raw); err != nil || read.Type != part.Type || read.Text != part.Text {
			return broken(RuleInvalidJSON, "content part %d is not what its raw form says", i)
		}
		check("content part ", strconv.Itoa(i), part.Raw)
	}
	for _, call := range e.ToolCalls {
		check("extra of the call ", call.ID, call.Extra)
	}
	for _, call := range e.ToolCalls {
		if broke == nil {
			broke = checkCallExtra(call)
		}
	}
	if broke != nil {
		return broke
	}
	if year := e.CreatedAt.UTC().Year(); year < 0 || year > 9999 {
		return broken(RuleInvalidJSON, "created_at is in the year %d, which RFC 3339 cannot write", year)
	}
	return nil
}

// maxRawDepth bounds the nesting of JSON that is kept as received: decoders have a depth limit, and an entry that
// cannot be decoded is lost.
const maxRawDepth = 500

// checkCallExtra refuses extra fields of a call that would be decoded as the call's own.
func checkCallExtra(call ToolCall) *RuleError {
	if call.Extra == nil {
		return nil
	}
	extra, err := rawjson.ParseObject(call.Extra)
	if err != nil {
		return broken(RuleInvalidJSON, "extra of the call %s is not a JSON object", call.ID)
	}
	for _, own := range []string{"id", "type", "function", "custom"} {
		if extra.Get(own) != nil {
			return broken(RuleInvalidJSON, "extra of the call %s must not have the field %s", call.ID, own)
		}
	}
	return nil
}

func broken(rule Rule, format string, args ...any) *RuleError {
	return &RuleError{Rule: rule, Message: fmt.Sprintf(format, args...)}
}
