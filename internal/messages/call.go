package messages

import (
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// unnamedFunction is the name of a call whose source has none.
const unnamedFunction = "unknown"

// readCalls reads the calls of an assistant message. Ids may still be missing or duplicate.
func readCalls(m *Message, rest rawjson.Object) (rawjson.Object, error) {
	raw := rest.Get("tool_calls")
	if rawjson.IsNull(raw) {
		return rest, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, fmt.Errorf("field tool_calls must be a list, not %s", Kind(raw))
	}
	switch {
	case m.Entry.Role != continuo.Assistant:
		m.repair(continuo.RuleMisplacedCalls, "A %s message has tool_calls: they are kept as data.", m.Entry.Role)
		return rest, nil
	case len(list) == 0:
		m.repair(RuleEmptyToolCalls, "The empty list tool_calls was left out.")
		return rest.Without("tool_calls"), nil
	}
	var broken []string
	for i, raw := range list {
		call, problem, err := readCall(raw)
		if err != nil {
			return nil, fmt.Errorf("field tool_calls, call %d: %w", i, err)
		}
		if problem != "" {
			broken = append(broken, fmt.Sprintf("call %d: %s", i, problem))
		}
		m.Entry.ToolCalls = append(m.Entry.ToolCalls, call)
	}
	if broken != nil {
		m.repair(continuo.RuleBadFunction, "%s.", strings.Join(broken, "; "))
	}
	return rest.Without("tool_calls"), nil
}

// readCall reads one call; problem describes the necessary change.
func readCall(raw json.RawMessage) (call continuo.ToolCall, problem string, err error) {
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return call, "", fmt.Errorf("it must be an object, not %s", Kind(raw))
	}
	if id := object.Get("id"); !rawjson.IsNull(id) {
		var ok bool
		if call.ID, ok = rawjson.String(id); !ok {
			return call, "", fmt.Errorf("field id must be a string, not %s", Kind(id))
		}
	}
	call.Type = "function"
	of, _ := rawjson.String(object.Get("type"))
	switch inner := object.Get(of); {
	case of == "custom" && inner != nil:
		call.Type = "custom"
		call.Name, call.Arguments, problem, err = readFunction(inner, "input", "")
	case object.Get("function") != nil || of == "" || of == "function" || inner == nil:
		call.Name, call.Arguments, problem, err = readFunction(object.Get("function"), "arguments", "{}")
	default:
		call.Name, call.Arguments = of, string(inner)
		problem = fmt.Sprintf("the type %q became a function", of)
	}
	call.Extra = object.Without("id", "type", "function", "custom").Raw()
	return storableCall(call), problem, err
}

// readFunction reads the function of a call.
func readFunction(raw json.RawMessage, field, empty string) (name, arguments, problem string, err error) {
	var object rawjson.Object
	if !rawjson.IsNull(raw) {
		if object, err = rawjson.ParseObject(raw); err != nil {
			return "", "", "", fmt.Errorf("its function must be an object, not %s", Kind(raw))
		}
	}
	var problems []string
	given := object.Get("name")
	name, ok := rawjson.String(given)
	if !ok && !rawjson.IsNull(given) {
		return "", "", "", fmt.Errorf("its name must be a string, not %s", Kind(given))
	}
	if name == "" {
		name = unnamedFunction
		problems = append(problems, "the missing name became "+unnamedFunction)
	}
	given = object.Get(field)
	arguments, ok = rawjson.String(given)
	switch {
	case ok:
	case rawjson.IsNull(given):
		arguments = empty
		problems = append(problems, fmt.Sprintf("the missing %s became %q", field, empty))
	default:
		arguments = string(given)
		problems = append(problems, fmt.Sprintf("the %s, %s, became the text of its JSON", field, Kind(given)))
	}
	return name, arguments, strings.Join(problems, ", "), nil
}

// storableCall removes unknown fields whose names are known fields in a stored call; the record keeps them.
func storableCall(call continuo.ToolCall) continuo.ToolCall {
	if call.Extra == nil {
		return call
	}
	var again continuo.ToolCall
	data, err := call.MarshalJSON()
	if err != nil || json.Unmarshal(data, &again) != nil ||
		again.ID != call.ID || again.Type != call.Type || again.Name != call.Name || again.Arguments != call.Arguments {
		call.Extra = nil
	}
	return call
}

// readFunctionCall reads a call of the older form. An empty one, as some servers send it, is kept as an
// unknown field.
func readFunctionCall(m *Message, rest rawjson.Object) (rawjson.Object, error) {
	object, err := rawjson.ParseObject(rest.Get("function_call"))
	if err != nil || m.Entry.Role != continuo.Assistant || len(m.Entry.ToolCalls) > 0 {
		return rest, nil
	}
	if name, _ := rawjson.String(object.Get("name")); name == "" {
		return rest, nil
	}
	name, arguments, problem, err := readFunction(rest.Get("function_call"), "arguments", "{}")
	if err != nil {
		return nil, fmt.Errorf("field function_call: %w", err)
	}
	if problem != "" {
		m.repair(continuo.RuleBadFunction, "%s.", problem)
	}
	m.Entry.ToolCalls = []continuo.ToolCall{continuo.FunctionCall("", name, arguments)}
	m.Legacy = true
	return rest.Without("function_call"), nil
}
