package messages

import (
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// ReadChat reads a message of chat completions, or of a superset. The error names the field.
func ReadChat(message rawjson.Object) (*Message, error) {
	m := &Message{}
	rest := message.Without("role", "content")
	name, ok := rawjson.String(message.Get("role"))
	if !ok {
		return nil, fmt.Errorf("field role must be a string, not %s", Kind(message.Get("role")))
	}
	m.Legacy = name == "function"
	m.setRole(name, message)
	if err := readContent(message.Get("content"), m); err != nil {
		return nil, err
	}
	steps := []func(*Message, rawjson.Object) (rawjson.Object, error){readName, readResultID, readCalls, readFunctionCall, readReasoning}
	for _, step := range steps {
		var err error
		if rest, err = step(m, rest); err != nil {
			return nil, err
		}
	}
	m.Entry.Extra = rest.Raw()
	complete(m, message)
	return m, nil
}

func readName(m *Message, rest rawjson.Object) (rawjson.Object, error) {
	raw := rest.Get("name")
	if rawjson.IsNull(raw) {
		return rest, nil
	}
	name, ok := rawjson.String(raw)
	if !ok {
		return nil, fmt.Errorf("field name must be a string, not %s", Kind(raw))
	}
	m.Entry.Name = name
	return rest.Without("name"), nil
}

func readResultID(m *Message, rest rawjson.Object) (rawjson.Object, error) {
	raw := rest.Get("tool_call_id")
	if m.Entry.Role != continuo.Tool || m.Legacy || rawjson.IsNull(raw) {
		return rest, nil
	}
	id, ok := rawjson.String(raw)
	if !ok {
		return nil, fmt.Errorf("field tool_call_id must be a string, not %s", Kind(raw))
	}
	m.Entry.ToolCallID = id
	return rest.Without("tool_call_id"), nil
}

// ReasoningFields are the fields in which providers send a model's thinking; the first is the one that is
// written.
var ReasoningFields = []string{"reasoning_content", "reasoning"}

func readReasoning(m *Message, rest rawjson.Object) (rawjson.Object, error) {
	if m.Entry.Role != continuo.Assistant {
		return rest, nil
	}
	for i, field := range ReasoningFields {
		text, _ := rawjson.String(rest.Get(field))
		if text == "" {
			continue
		}
		m.Entry.Reasoning = &continuo.Reasoning{Text: text}
		if i > 0 {
			m.ReasoningField = field
		}
		return rest.Without(field), nil
	}
	return rest, nil
}
