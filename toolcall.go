package continuo

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// ToolCall is one tool call of an assistant message, in the OpenAI form {"id", "type": "function", "function": {"name",
// "arguments"}} or, for a custom tool, {"id", "type": "custom", "custom": {"name", "input"}}.
type ToolCall struct {
	ID   string
	Type string // "function" or "custom". Default: "function", which the log sets
	Name string
	// Arguments is the model's text, byte for byte; it may be invalid JSON.
	Arguments string
	// Extra holds the call's fields that Continuo does not know, as one JSON object; nil when none.
	Extra json.RawMessage
}

// FunctionCall returns a call of a function tool.
func FunctionCall(id, name, arguments string) ToolCall {
	return ToolCall{ID: id, Type: "function", Name: name, Arguments: arguments}
}

// withTypes returns calls with their types set; the same slice where no type was missing.
func withTypes(calls []ToolCall) []ToolCall {
	untyped := func(call ToolCall) bool { return call.Type == "" }
	if !slices.ContainsFunc(calls, untyped) {
		return calls
	}
	calls = slices.Clone(calls)
	for i := range calls {
		if untyped(calls[i]) {
			calls[i].Type = "function"
		}
	}
	return calls
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

// UnmarshalJSON reads the OpenAI form. A missing type is "function"; arguments must be a string. Field names are
// case-sensitive, so that encoding and decoding a call gives the same call.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	object, err := rawjson.ParseObject(data)
	if err != nil {
		return fmt.Errorf("tool call: %w", err)
	}
	call := ToolCall{Extra: object.Without("id", "type", "function", "custom").Raw()}
	for key, field := range map[string]*string{"id": &call.ID, "type": &call.Type} {
		if value := object.Get(key); !rawjson.IsNull(value) {
			text, ok := rawjson.String(value)
			if !ok {
				return fmt.Errorf("tool call: %s must be a string", key)
			}
			*field = text
		}
	}
	if call.Type == "" {
		call.Type = "function"
	}
	argumentsKey := map[string]string{"function": "arguments", "custom": "input"}[call.Type]
	inner, err := rawjson.ParseObject(object.Get(call.Type))
	if argumentsKey == "" || err != nil {
		return errors.New("tool call needs type function or custom and the object of that name")
	}
	if name := inner.Get("name"); !rawjson.IsNull(name) {
		text, ok := rawjson.String(name)
		if !ok {
			return fmt.Errorf("tool call %s: the name must be a string", call.ID)
		}
		call.Name = text
	}
	arguments, ok := rawjson.String(inner.Get(argumentsKey))
	if !ok {
		return fmt.Errorf("tool call %s: arguments must be a string", call.ID)
	}
	call.Arguments = arguments
	*c = call
	return nil
}

// ToolSpec describes one tool to a model. Parameters is a JSON Schema; its bytes are sent unchanged.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}
