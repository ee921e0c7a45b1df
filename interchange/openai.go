package interchange

import (
	"encoding/json"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// dialect reads and writes the messages of one protocol.
type dialect interface {
	// decode reads one message into at least one draft. Its error names the field.
	decode(message rawjson.Object, report *repairs) ([]*draft, error)
	// encode writes the message that consists of some entries, in the order of their blocks.
	encode(parts []*draft) rawjson.Object
	// joins reports whether entries that were not imported share a message.
	joins(before, next *continuo.Entry) bool
}

func dialectOf(format string) dialect {
	switch format {
	case FormatAnthropic:
		return anthropic{}
	case FormatUnified:
		return openAI{fields: unifiedFields}
	case FormatPipeline:
		return openAI{fields: pipelineFields, agents: true}
	default:
		return openAI{}
	}
}

// openAI is the chat format and its supersets.
type openAI struct {
	fields []field // of the entry, beyond those of the protocol
	agents bool    // the assistant's role is "agent"
}

func (o openAI) joins(_, _ *continuo.Entry) bool { return false }

func (o openAI) decode(message rawjson.Object, report *repairs) ([]*draft, error) {
	if name, _ := rawjson.String(message.Get("role")); o.agents && name == "agent" {
		message = append(rawjson.Object{}, message...)
		message.Set("role", rawjson.MustMarshal(continuo.Assistant))
	}
	read, err := messages.ReadChat(message)
	if err != nil {
		return nil, err
	}
	d := newDraft(read, report)
	o.readFields(&d.entry)
	d.entry.Hidden = d.entry.Hidden || d.hidden
	return []*draft{d}, nil
}

// readFields moves fields of the superset from the unknown ones to the entry's own.
func (o openAI) readFields(e *continuo.Entry) {
	rest, err := rawjson.ParseObject(e.Extra)
	if err != nil {
		return
	}
	for _, f := range o.fields {
		if value := rest.Get(f.name); value != nil && f.read(e, value) {
			rest = rest.Without(f.name)
		}
	}
	e.Extra = rest.Raw()
}

// encode writes an entry as a message: the protocol's fields, then the unknown ones.
func (o openAI) encode(parts []*draft) rawjson.Object {
	d := parts[0]
	e := &d.entry
	message := rawjson.Object{{Key: "role", Value: rawjson.MustMarshal(o.roleName(d))}}
	if !e.Content.IsZero() {
		message.Set("content", rawjson.MustMarshal(e.Content))
	}
	if e.Name != "" {
		message.Set("name", rawjson.MustMarshal(e.Name))
	}
	encodeCalls(&message, d)
	if e.Reasoning != nil && e.Reasoning.Text != "" {
		field := messages.ReasoningFields[0]
		if d.record.Reasoning != "" {
			field = d.record.Reasoning
		}
		message.Set(field, rawjson.MustMarshal(e.Reasoning.Text))
	}
	for _, f := range o.fields {
		if value := f.write(e); value != nil {
			message.Set(f.name, value)
		}
	}
	return withExtra(message, e.Extra)
}

// encodeCalls writes an entry's calls, or the id of the call that it answers.
func encodeCalls(message *rawjson.Object, d *draft) {
	e := &d.entry
	switch {
	case d.record.Legacy && e.HasCalls():
		call := e.ToolCalls[0]
		message.Set("function_call", rawjson.MustMarshal(map[string]string{"name": call.Name, "arguments": call.Arguments}))
	case len(e.ToolCalls) > 0:
		message.Set("tool_calls", rawjson.MustMarshal(e.ToolCalls))
	case d.record.Legacy && d.isTool():
		if e.Name == "" && e.ToolName != "" {
			message.Set("name", rawjson.MustMarshal(e.ToolName))
		}
	case e.ToolCallID != "":
		message.Set("tool_call_id", rawjson.MustMarshal(e.ToolCallID))
	}
}

// markLegacy marks the entries that were not imported but are written in the older form: single calls and
// their results.
func markLegacy(drafts []*draft) {
	legacy := false
	for _, d := range drafts {
		if !d.isTool() {
			legacy = len(d.entry.ToolCalls) == 1 && d.entry.ToolCalls[0].Type == "function"
		}
		if !d.imported && (d.isTool() || d.entry.HasCalls()) {
			d.record.Legacy = legacy
		}
	}
}

func (o openAI) roleName(d *draft) string {
	switch {
	case d.entry.Role == continuo.Tool && d.record.Legacy:
		return "function"
	case d.entry.Role == continuo.Assistant && o.agents:
		return "agent"
	default:
		return string(d.entry.Role)
	}
}

func withExtra(message rawjson.Object, extra json.RawMessage) rawjson.Object {
	fields, err := rawjson.ParseObject(extra)
	if err != nil {
		return message
	}
	for _, field := range fields {
		message.Set(field.Key, field.Value)
	}
	return message
}
