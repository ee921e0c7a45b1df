package continuo

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// ToolCall is one call that an assistant message asks for, in the OpenAI form
// {"id", "type": "function", "function": {"name", "arguments"}} or, for a custom tool,
// {"id", "type": "custom", "custom": {"name", "input"}}.
type ToolCall struct {
	ID   string
	Type string // "function" or "custom"
	Name string
	// Arguments is the text the model wrote, byte for byte; it may be no valid JSON.
	Arguments string
	// Extra holds the call's fields that Continuo does not know, as one JSON object; nil when none.
	Extra json.RawMessage
}

// FunctionCall makes a call of a function tool.
func FunctionCall(id, name, arguments string) ToolCall {
	return ToolCall{ID: id, Type: "function", Name: name, Arguments: arguments}
}

// MarshalJSON writes the OpenAI form, the unknown fields last.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	inner := rawjson.Object{{Key: "name", Value: rawjson.MustMarshal(c.Name)}}
	innerKey, argumentsKey := "function", "arguments"
	if c.Type == "custom" {
		innerKey, argumentsKey = "custom", "input"
	}
	inner.Set(argumentsKey, rawjson.MustMarshal(c.Arguments))
	call := rawjson.Object{
		{Key: "id", Value: rawjson.MustMarshal(c.ID)},
		{Key: "type", Value: rawjson.MustMarshal(innerKey)},
		{Key: innerKey, Value: rawjson.MustMarshal(inner)},
	}
	if len(c.Extra) > 0 {
		extra, err := rawjson.ParseObject(c.Extra)
		if err != nil {
			return nil, fmt.Errorf("tool call %s: extra: %w", c.ID, err)
		}
		call = append(call, extra...)
	}
	return rawjson.Marshal(call)
}

// UnmarshalJSON reads the OpenAI form. A missing type is "function"; arguments must be a string.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	var wire struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function *struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
		Custom *struct {
			Name  string          `json:"name"`
			Input json.RawMessage `json:"input"`
		} `json:"custom"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return fmt.Errorf("tool call: %w", err)
	}
	object, err := rawjson.ParseObject(data)
	if err != nil {
		return fmt.Errorf("tool call: %w", err)
	}
	call := ToolCall{ID: wire.ID, Type: wire.Type, Extra: object.Without("id", "type", "function", "custom").Raw()}
	var arguments json.RawMessage
	switch {
	case wire.Type == "custom" && wire.Custom != nil:
		call.Name, arguments = wire.Custom.Name, wire.Custom.Input
	case (wire.Type == "function" || wire.Type == "") && wire.Function != nil:
		call.Type = "function"
		call.Name, arguments = wire.Function.Name, wire.Function.Arguments
	default:
		return errors.New("tool call needs type function or custom and the object of that name")
	}
	text, ok := rawjson.String(arguments)
	if !ok {
		return fmt.Errorf("tool call %s: arguments must be a string", call.ID)
	}
	call.Arguments = text
	*c = call
	return nil
}

// ToolSpec tells a model about one tool. Parameters is a JSON Schema; its bytes are sent as they are.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}
