package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/yamltree"
	"github.com/continuo-log/continuo/model"
)

// effortOf is the effort nearest to a budget of tokens.
func effortOf(budget int) string {
	switch {
	case budget <= 512:
		return "minimal"
	case budget <= 1024:
		return "low"
	case budget <= 8192:
		return "medium"
	}
	return "high"
}

// Sampling is what the settings ask of the model's answers; nil for nothing.
func (m *ModelConfig) Sampling() *continuo.Sampling {
	if m.TopP == nil && len(m.Stop) == 0 && m.Seed == nil && m.ThinkingBudget == 0 {
		return nil
	}
	s := &continuo.Sampling{TopP: m.TopP, Stop: m.Stop, Seed: m.Seed}
	if m.ThinkingBudget > 0 {
		s.ThinkingBudget = &m.ThinkingBudget
	}
	return s
}

// shownMembers say what a model is shown, and how the answer comes, in any protocol: Continuo writes them.
var shownMembers = []string{
	"model", "messages", "input", "contents", "system", "systemInstruction", "system_instruction", "instructions", "tools", "stream", "n",
	"previous_response_id", "conversation", "background", "cachedContent",
}

// extraConflict is conflict for what is asked of the model's answers.
func (m *ModelConfig) extraConflict() (key string, err error) {
	transcript := m.ToolCalls == ToolCallsTranscript
	switch {
	case len(m.Stop) > 0 && m.Protocol == model.ProtocolResponses:
		return "stop", fmt.Errorf("%s has no such member", m.Protocol)
	case m.Seed != nil && m.Protocol != model.ProtocolOpenAIChat && m.Protocol != model.ProtocolGemini:
		return "seed", fmt.Errorf("%s has no such member", m.Protocol)
	case len(m.ExtraBody) > 0 && transcript:
		return "extra_body", errors.New("not with tool_calls: transcript")
	case len(m.ResponseFormat) > 0 && transcript:
		return "response_format", errors.New("not with tool_calls: transcript, whose answers have a form of their own")
	case len(m.ResponseFormat) > 0 && m.StructuredOutputs == StructuredOff:
		return "response_format", errors.New("structured_outputs is off; remove one of the two")
	}
	if key, err := m.formatConflict(); err != nil {
		return key, err
	}
	extra, _ := rawjson.ParseObject(m.ExtraBody) // valid, or empty
	for _, member := range extra {
		if slices.Contains(shownMembers, member.Key) {
			return "extra_body", fmt.Errorf("%s is what Continuo writes itself", member.Key)
		}
	}
	return "", nil
}

func (m *ModelConfig) formatConflict() (key string, err error) {
	if len(m.ResponseFormat) == 0 {
		return "", nil
	}
	var format struct {
		Type   string
		Schema *struct {
			Name   string
			Schema json.RawMessage
		} `json:"json_schema"`
	}
	err = json.Unmarshal(m.ResponseFormat, &format)
	schema := format.Schema != nil && format.Schema.Name != "" && strings.HasPrefix(string(format.Schema.Schema), "{")
	switch {
	case err != nil || format.Type != "json_object" && !(format.Type == "json_schema" && schema):
		return "response_format", errors.New("allowed: {type: json_object}, or {type: json_schema, json_schema: {name: NAME, schema: {…}}}")
	case m.Protocol == model.ProtocolAnthropic && format.Type != "json_schema":
		return "response_format", fmt.Errorf("given %s; allowed: json_schema for %s", format.Type, m.Protocol)
	}
	return "", nil
}

// object is a mapping of any values, kept as a JSON object. As a text, it is JSON.
func object(target *json.RawMessage) value {
	return value{
		allowed: "a mapping, or a JSON object as a text", takes: []yamltree.Kind{yamltree.Mapping, yamltree.Text}, hidden: true,
		schema: map[string]any{"type": []string{"object", "string"}},
		set: func(text string) error {
			if _, err := rawjson.ParseObject(json.RawMessage(text)); err != nil {
				return errNotAllowed
			}
			*target = json.RawMessage(text)
			return nil
		},
		node: func(n *yamltree.Node) (string, error) {
			text, err := jsonOf(n)
			return string(text), err
		},
		show: func() string { // its members may hold what is nobody's business
			members, _ := rawjson.ParseObject(*target) // valid, or empty
			var names []string
			for _, member := range members {
				names = append(names, member.Key)
			}
			return strings.Join(names, ", ")
		},
	}
}

// jsonOf is a value of the file as JSON.
func jsonOf(n *yamltree.Node) (json.RawMessage, error) {
	switch n.Kind {
	case yamltree.Null:
		return json.RawMessage("null"), nil
	case yamltree.Whole, yamltree.Number, yamltree.Bool:
		if !json.Valid([]byte(n.Text)) {
			return nil, fmt.Errorf("%s is no number of JSON", n.Text)
		}
		return json.RawMessage(n.Text), nil
	case yamltree.List:
		items := []json.RawMessage{}
		for _, item := range n.Items {
			text, err := jsonOf(item)
			if err != nil {
				return nil, err
			}
			items = append(items, text)
		}
		return rawjson.MustMarshal(items), nil
	case yamltree.Mapping:
		members := rawjson.Object{}
		for _, f := range n.Fields {
			text, err := jsonOf(f.Value)
			if err != nil {
				return nil, err
			}
			members.Set(f.Key.Text, text)
		}
		return members.Raw(), nil
	}
	return rawjson.MustMarshal(n.Text), nil
}
