package request

import (
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// ReadAnthropic reads the body of a Messages API request. Its error is an *Error.
func ReadAnthropic(body []byte, o Options) (*Request, error) {
	fields, spans, err := parse(body, "messages")
	if err != nil {
		return nil, err
	}
	r := &Request{Fields: fields, List: "messages", members: anthropicMembers}
	if err := r.readCommon("max_tokens"); err != nil {
		return nil, err
	}
	if format, err := rawjson.ParseObject(fields.Get("output_config")); err == nil {
		r.ResponseFormat = format.Get("format")
	}
	if err := r.readSystem(); err != nil {
		return nil, err
	}
	if err := r.readAnthropicTools(); err != nil {
		return nil, err
	}
	r.reserve(len(spans))
	for i, span := range spans {
		message, err := rawjson.ParseValidObject(body[span.Start:span.End])
		if err != nil {
			return nil, wrong(messageParam(i), "must be an object, not %s", messages.Kind(body[span.Start:span.End]))
		}
		read, err := messages.ReadAnthropic(message, messages.Options{Provider: o.Provider, DropMarks: true})
		if err != nil {
			return nil, wrong(messageParam(i), "%v", err)
		}
		for _, m := range read {
			m.Entry.Extra = keptError(m.Entry.Extra)
		}
		r.add(span, read)
	}
	r.check()
	return r, nil
}

// keptError is the part of a result's unknown members that package render reads: is_error.
func keptError(extra json.RawMessage) json.RawMessage {
	object, err := rawjson.ParseObject(extra)
	if err != nil || rawjson.IsNull(object.Get("is_error")) {
		return nil
	}
	return rawjson.Object{{Key: "is_error", Value: object.Get("is_error")}}.Raw()
}

// readSystem reads the system prompt: a string or a list of text blocks.
func (r *Request) readSystem() error {
	raw := r.Fields.Get("system")
	if text, ok := rawjson.String(raw); ok {
		if strings.TrimSpace(text) != "" {
			r.System = []string{text}
		}
		return nil
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if err := r.field("system", "a string or a list of text blocks", &blocks); err != nil {
		return err
	}
	for _, block := range blocks {
		r.System = append(r.System, block.Text)
	}
	return nil
}

func (r *Request) readAnthropicTools() error {
	var list []json.RawMessage
	if err := r.field("tools", "a list of tools", &list); err != nil {
		return err
	}
	for i, raw := range list {
		var tool struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			return wrong(fmt.Sprintf("tools[%d]", i), "must be an object with a name")
		}
		if tool.Type != "" && tool.Type != "custom" || tool.Name == "" {
			r.OtherTools = append(r.OtherTools, raw)
			continue
		}
		r.Tools = append(r.Tools, continuo.ToolSpec{Name: tool.Name, Description: tool.Description, Parameters: tool.InputSchema})
	}
	return nil
}
