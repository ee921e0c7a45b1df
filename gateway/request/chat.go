package request

import (
	"encoding/json"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// ReadChat reads the body of a chat completions request. Its error is an *Error.
func ReadChat(body []byte, o Options) (*Request, error) {
	fields, spans, err := parse(body, "messages")
	if err != nil {
		return nil, err
	}
	r := &Request{Fields: fields, List: "messages", members: chatMembers}
	if err := r.readCommon("max_completion_tokens", "max_tokens"); err != nil {
		return nil, err
	}
	r.ResponseFormat = fields.Get("response_format")
	if err := r.readChatTools(); err != nil {
		return nil, err
	}
	r.reserve(len(spans))
	leading := true // only system messages so far
	for i, span := range spans {
		message, err := rawjson.ParseValidObject(body[span.Start:span.End])
		if err != nil {
			return nil, wrong(messageParam(i), "must be an object, not %s", messages.Kind(body[span.Start:span.End]))
		}
		read, err := messages.ReadChat(message)
		if err != nil {
			return nil, wrong(messageParam(i), "%v", err)
		}
		if leading = leading && read.Entry.Role == continuo.System; leading {
			r.System = append(r.System, read.Entry.Content.String())
			r.Messages = append(r.Messages, Message{Start: span.Start, End: span.End, First: len(r.Entries)})
			continue
		}
		if read.Entry.Content.IsZero() {
			read.Entry.Content = continuo.Null()
		}
		o.keepExtra(&read.Entry)
		r.add(span, []*messages.Message{read})
	}
	r.check()
	return r, nil
}

// keepExtra moves the unknown members of an assistant message to the vendor data, where package render looks for them,
// and drops those of others. Members without a value say nothing.
func (o Options) keepExtra(e *continuo.Entry) {
	extra, err := rawjson.ParseObject(e.Extra)
	e.Extra = nil
	if err != nil || e.Role != continuo.Assistant || o.Provider == "" {
		return
	}
	var kept rawjson.Object
	for _, field := range extra {
		switch {
		case slices.Contains([]string{"null", "[]", "{}", `""`}, string(field.Value)):
		case slices.Contains([]string{"cache_control", "function_call", "tool_call_id"}, field.Key):
		default:
			kept = append(kept, field)
		}
	}
	if len(kept) > 0 {
		e.Vendor = map[string]json.RawMessage{o.Provider: kept.Raw()}
	}
}

func (r *Request) readChatTools() error {
	var list []json.RawMessage
	if err := r.field("tools", "a list of tools", &list); err != nil {
		return err
	}
	for i, raw := range list {
		tool, err := rawjson.ParseObject(raw)
		if err != nil {
			return wrong(fmt.Sprintf("tools[%d]", i), "must be an object, not %s", messages.Kind(raw))
		}
		if of, _ := rawjson.String(tool.Get("type")); of != "function" {
			r.OtherTools = append(r.OtherTools, raw)
			continue
		}
		var function continuo.ToolSpec
		if json.Unmarshal(tool.Get("function"), &function) != nil || function.Name == "" {
			return wrong(fmt.Sprintf("tools[%d].function", i), "must be an object with a name")
		}
		r.Tools = append(r.Tools, function)
	}
	return nil
}
