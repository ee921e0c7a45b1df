package request

import (
	"encoding/json"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/gemini"
)

// ReadGemini reads the body of generateContent or streamGenerateContent; the model and whether it streams are in the
// path, and the caller sets them. Its error is an *Error.
func ReadGemini(body []byte, o Options) (*Request, error) {
	r, spans, err := begin(body, "contents")
	if err != nil {
		return nil, err
	}
	r.members = geminiMembers
	var wire gemini.Request
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, wrong("", "the body is not a request: %v", err)
	}
	if spans == nil {
		return nil, wrong("contents", "must be a list of contents, not %s", messages.Kind(r.input))
	}
	if wire.SystemInstruction != nil {
		for _, raw := range wire.SystemInstruction.Parts {
			if part, err := gemini.ParsePart(raw); err == nil && part.HasText {
				r.System = append(r.System, part.Text)
			}
		}
	}
	if config := wire.GenerationConfig; config != nil {
		r.Temperature, r.MaxOutputTokens, r.ResponseFormat = config.Temperature, config.MaxOutputTokens, config.ResponseJSONSchema
	}
	r.ToolChoice = wire.ToolConfig
	r.readGeminiTools(wire.Tools)
	entries, at, err := gemini.Entries(wire.Contents, gemini.Options{Provider: o.Provider})
	if err != nil {
		return nil, wrong("", "%v", err)
	}
	r.Entries = entries
	for i, span := range spans {
		next := len(entries)
		if i+1 < len(at) {
			next = at[i+1]
		}
		r.Messages = append(r.Messages, Message{Start: span.Start, End: span.End, First: at[i], Count: next - at[i]})
	}
	r.check()
	return r, nil
}

func (r *Request) readGeminiTools(list []json.RawMessage) {
	for _, raw := range list {
		object, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		var functions []struct {
			gemini.FunctionDeclaration
			Parameters json.RawMessage `json:"parameters"` // in OpenAPI's form
		}
		if json.Unmarshal(object.Get("functionDeclarations"), &functions) != nil {
			r.OtherTools = append(r.OtherTools, raw)
			continue
		}
		for _, f := range functions {
			schema := f.ParametersJSONSchema
			if schema == nil {
				schema = jsonSchema(f.Parameters)
			}
			r.Tools = append(r.Tools, continuo.ToolSpec{Name: f.Name, Description: f.Description, Parameters: schema})
		}
	}
}
