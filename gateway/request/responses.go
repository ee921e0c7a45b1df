package request

import (
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// ReadResponses reads the body of a Responses request, whose input may be a string. Its error is an *Error. Items of the
// model that follow each other are one entry: each of them names it in Messages. A string has no Messages.
func ReadResponses(body []byte, o Options) (*Request, error) {
	r, spans, err := begin(body, "input")
	if err != nil {
		return nil, err
	}
	r.members = responsesMembers
	if err := r.readCommon("max_output_tokens"); err != nil {
		return nil, err
	}
	r.ResponseFormat = r.Fields.Get("text")
	var instructions string
	if err := r.field("instructions", "a string", &instructions); err != nil {
		return nil, err
	}
	if instructions != "" {
		r.System = []string{instructions}
	}
	if err := r.readResponsesTools(); err != nil {
		return nil, err
	}
	var input responses.Input
	if raw := r.input; raw != nil {
		if err := json.Unmarshal(raw, &input); err != nil {
			return nil, wrong("input", "must be a string or a list of items, not %s", messages.Kind(raw))
		}
	}
	entries, at, err := responses.Entries(input, responses.Options{Provider: o.Provider})
	if err != nil {
		return nil, wrong("", "%v", err)
	}
	r.Entries = entries
	for i, span := range spans {
		r.Messages = append(r.Messages, Message{Start: span.Start, End: span.End, First: at[i], Count: 1})
	}
	r.check()
	return r, nil
}

func (r *Request) readResponsesTools() error {
	var list []json.RawMessage
	if err := r.field("tools", "a list of tools", &list); err != nil {
		return err
	}
	for i, raw := range list {
		var tool responses.Tool
		if err := json.Unmarshal(raw, &tool); err != nil {
			return wrong(fmt.Sprintf("tools[%d]", i), "must be an object with a type")
		}
		if namespace, ok := responses.NamespaceOf(raw); ok {
			for _, function := range namespace.Functions() {
				r.Tools = append(r.Tools, continuo.ToolSpec{Name: function.Name, Description: function.Description, Parameters: function.Parameters})
			}
			continue
		}
		if tool.Type != "function" || tool.Name == "" {
			r.OtherTools = append(r.OtherTools, raw)
			continue
		}
		r.Tools = append(r.Tools, continuo.ToolSpec{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	return nil
}

// begin splits a body whose list may be missing or of another type; it is kept in input.
func begin(body []byte, list string) (r *Request, spans []rawjson.Span, err error) {
	fields, err := rawjson.ParseObject(body)
	if err != nil {
		_, _, err = parse(body, list) // which says what is wrong
		return nil, nil, err
	}
	return &Request{Fields: fields.Without(list), List: list, input: fields.Get(list)}, rawjson.ElementSpans(body, list), nil
}
