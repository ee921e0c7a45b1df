package workflow

import (
	"encoding/json"
	"slices"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// answerSchema is a JSON Schema of an object.
type answerSchema struct {
	Type                 string                 `json:"type"` // always "object"
	Properties           map[string]fieldSchema `json:"properties"`
	Required             []string               `json:"required"`
	AdditionalProperties bool                   `json:"additionalProperties"`
}

// fieldSchema is a JSON Schema of one output.
type fieldSchema struct {
	Type        Type     `json:"type"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
}

// AnswerSchema is the JSON Schema of the outputs that the step's answer must contain. It is nil for a step that
// declares none, and for an answer that continues another, which is no object of its own.
func (step Step) AnswerSchema() json.RawMessage {
	if len(step.Node.Outputs) == 0 || step.Resumes {
		return nil
	}
	schema := answerSchema{Type: "object", Properties: map[string]fieldSchema{}, Required: []string{}}
	for _, field := range step.Node.Outputs {
		schema.Properties[field.Name] = fieldSchema{field.Type, field.Description, field.Enum}
		if !field.Optional && !slices.Contains(step.Kept, field.Name) {
			schema.Required = append(schema.Required, field.Name)
		}
	}
	return rawjson.MustMarshal(schema)
}
