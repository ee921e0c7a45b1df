package interchange

import (
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
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
	d := &draft{}
	rest := message.Without("role", "content")
	if err := o.role(d, message, report); err != nil {
		return nil, err
	}
	if err := readContent(message.Get("content"), d, report); err != nil {
		return nil, err
	}
	steps := []func(*draft, rawjson.Object, *repairs) (rawjson.Object, error){
		readName, readResultID, readCalls, readFunctionCall, readReasoning,
	}
	for _, step := range steps {
		var err error
		if rest, err = step(d, rest, report); err != nil {
			return nil, err
		}
	}
	for _, f := range o.fields {
		if value := rest.Get(f.name); value != nil && f.read(&d.entry, value) {
			rest = rest.Without(f.name)
		}
	}
	d.entry.Extra = rest.Raw()
	complete(d, message, report)
	return []*draft{d}, nil
}

// roles maps other programs' names of the four roles.
var roles = map[string]continuo.Role{
	"system": continuo.System, "user": continuo.User, "assistant": continuo.Assistant, "tool": continuo.Tool,
	"developer": continuo.System, "function": continuo.Tool,
}

// foreignRoles are not roles of the protocol; any other unknown role becomes the user.
var foreignRoles = map[string]continuo.Role{
	"model": continuo.Assistant, "ai": continuo.Assistant, "bot": continuo.Assistant, "agent": continuo.Assistant,
	"human": continuo.User,
}

func (o openAI) role(d *draft, message rawjson.Object, report *repairs) error {
	name, ok := rawjson.String(message.Get("role"))
	if !ok {
		return fmt.Errorf("field role must be a string, not %s", kind(message.Get("role")))
	}
	if o.agents && name == "agent" {
		d.entry.Role = continuo.Assistant
		return nil
	}
	d.record.Legacy = name == "function"
	setRole(d, name, message, report)
	return nil
}

// setRole maps a role; an unknown one is a repair.
func setRole(d *draft, name string, message rawjson.Object, report *repairs) {
	if role, ok := roles[name]; ok {
		d.entry.Role = role
		return
	}
	lower := strings.ToLower(name)
	role, ok := roles[lower]
	if !ok {
		role = foreignRoles[lower]
	}
	if role == "" {
		role = continuo.User
		if raw := message.Get("tool_calls"); !rawjson.IsNull(raw) {
			role = continuo.Assistant
		}
	}
	d.entry.Role = role
	report.decoding(d, continuo.RuleUnknownRole, "The role %q became %s.", name, role)
}

func readName(d *draft, rest rawjson.Object, _ *repairs) (rawjson.Object, error) {
	raw := rest.Get("name")
	if rawjson.IsNull(raw) {
		return rest, nil
	}
	name, ok := rawjson.String(raw)
	if !ok {
		return nil, fmt.Errorf("field name must be a string, not %s", kind(raw))
	}
	d.entry.Name = name
	return rest.Without("name"), nil
}

func readResultID(d *draft, rest rawjson.Object, _ *repairs) (rawjson.Object, error) {
	raw := rest.Get("tool_call_id")
	if d.entry.Role != continuo.Tool || d.record.Legacy || rawjson.IsNull(raw) {
		return rest, nil
	}
	id, ok := rawjson.String(raw)
	if !ok {
		return nil, fmt.Errorf("field tool_call_id must be a string, not %s", kind(raw))
	}
	d.entry.ToolCallID = id
	return rest.Without("tool_call_id"), nil
}

// reasoningFields are the fields in which providers send a model's thinking; the first is the one that is
// written.
var reasoningFields = []string{"reasoning_content", "reasoning"}

func readReasoning(d *draft, rest rawjson.Object, _ *repairs) (rawjson.Object, error) {
	if d.entry.Role != continuo.Assistant {
		return rest, nil
	}
	for i, field := range reasoningFields {
		text, _ := rawjson.String(rest.Get(field))
		if text == "" {
			continue
		}
		d.entry.Reasoning = &continuo.Reasoning{Text: text}
		if i > 0 {
			d.record.Reasoning = field
		}
		return rest.Without(field), nil
	}
	return rest, nil
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
		field := reasoningFields[0]
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
