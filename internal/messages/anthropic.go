package messages

import (
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// ReadAnthropic reads a message with content blocks. An assistant's message is one entry; in a user's message, each
// tool_result becomes a tool entry, and the remaining blocks become one entry after them. The error names the field.
func ReadAnthropic(message rawjson.Object, o Options) ([]*Message, error) {
	first := &Message{}
	name, ok := rawjson.String(message.Get("role"))
	if !ok {
		return nil, fmt.Errorf("field role must be a string, not %s", Kind(message.Get("role")))
	}
	first.setRole(name, message)
	if first.Entry.Role == continuo.Tool {
		first.Entry.Role = continuo.User
		first.repair(continuo.RuleUnknownRole, "The role %s, which Anthropic messages do not have, became user.", name)
	}
	content := message.Get("content")
	var read []*Message
	var err error
	switch text, isText := rawjson.String(content); {
	case isText:
		first.String = first.Entry.Role == continuo.Assistant
		first.Entry.Content = continuo.Text(text)
		read = []*Message{first}
	default:
		read, err = o.readBlocks(first, content)
	}
	if err != nil {
		return nil, err
	}
	addExtra(&read[0].Entry, message.Without("role", "content"))
	return read, nil
}

func addExtra(e *continuo.Entry, more rawjson.Object) {
	extra, err := rawjson.ParseObject(e.Extra)
	if err != nil {
		extra = nil
	}
	for _, field := range more {
		if extra.Get(field.Key) == nil {
			extra.Set(field.Key, field.Value)
		}
	}
	e.Extra = extra.Raw()
}

// block is a parsed content block.
type block struct {
	raw    json.RawMessage
	object rawjson.Object
	of     string // its type
}

// text returns a string field of the block at position i, empty when it is missing or null.
func (b block) text(i int, field string) (string, error) {
	raw := b.object.Get(field)
	text, ok := rawjson.String(raw)
	if !ok && !rawjson.IsNull(raw) {
		return "", fmt.Errorf("field content, block %d: field %s must be a string, not %s", i, field, Kind(raw))
	}
	return text, nil
}

func (o Options) readBlocks(first *Message, content json.RawMessage) ([]*Message, error) {
	var raws []json.RawMessage
	if !rawjson.IsNull(content) && json.Unmarshal(content, &raws) != nil {
		return nil, fmt.Errorf("field content must be a string or a list of blocks, not %s", Kind(content))
	}
	blocks := make([]block, len(raws))
	for i, raw := range raws {
		object, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("field content, block %d, must be an object, not %s", i, Kind(raw))
		}
		of, ok := rawjson.String(object.Get("type"))
		if !ok || of == "" {
			return nil, fmt.Errorf("field content, block %d, has no type", i)
		}
		if o.DropMarks {
			raw = withoutMarks(raw)
		}
		blocks[i] = block{raw, object, of}
	}
	switch {
	case len(blocks) == 0:
		return readNothing(first), nil
	case first.Entry.Role == continuo.Assistant:
		return []*Message{first}, o.readAssistant(first, blocks)
	}
	return o.readUser(first, blocks)
}

func readNothing(m *Message) []*Message {
	m.Entry.Content = continuo.Text("")
	m.repair(continuo.RuleNullContent, "The content had no blocks and became an empty text.")
	return []*Message{m}
}

// readAssistant reads the blocks of an assistant's message into one entry.
func (o Options) readAssistant(m *Message, blocks []block) error {
	var said, thought strings.Builder
	signature, thoughts, hasText := "", 0, false
	for i, b := range blocks {
		switch b.of {
		case "text":
			if hasText && blocks[i-1].of != "text" {
				said.WriteString("\n\n") // another block was in between
			}
			text, _ := rawjson.String(b.object.Get("text"))
			said.WriteString(text)
			hasText = true
		case "tool_use":
			if err := readUse(m, i, b); err != nil {
				return err
			}
		case "thinking":
			if thoughts++; thoughts > 1 {
				thought.WriteString("\n\n")
			}
			text, _ := rawjson.String(b.object.Get("thinking"))
			thought.WriteString(text)
			signature, _ = rawjson.String(b.object.Get("signature"))
		}
		m.Blocks = append(m.Blocks, b.raw)
	}
	e := &m.Entry
	switch {
	case hasText, len(e.ToolCalls) == 0 && thoughts == 0:
		e.Content = continuo.Text(said.String())
	case len(e.ToolCalls) > 0:
		e.Content = continuo.Null()
	}
	if thoughts > 0 {
		e.Reasoning = &continuo.Reasoning{Text: thought.String()}
		if thoughts == 1 {
			e.Reasoning.Signature = signature
		}
	}
	o.keepBlocks(m, false)
	return nil
}

// readUse reads a tool_use block as a call.
func readUse(m *Message, i int, b block) error {
	id, err := b.text(i, "id")
	if err != nil {
		return err
	}
	name, err := b.text(i, "name")
	if err != nil {
		return err
	}
	call := continuo.FunctionCall(id, name, "")
	if call.Name == "" {
		call.Name = unnamedFunction
		m.repair(continuo.RuleBadFunction, "Block %d: the missing name became %s.", i, unnamedFunction)
	}
	input := b.object.Get("input")
	if rawjson.IsNull(input) {
		input = json.RawMessage("{}")
		m.repair(continuo.RuleBadFunction, "Block %d: the missing input became {}.", i)
	}
	call.Arguments = string(input)
	m.Entry.ToolCalls = append(m.Entry.ToolCalls, call)
	return nil
}

// readUser reads a user's or system message: results and other blocks.
func (o Options) readUser(first *Message, blocks []block) ([]*Message, error) {
	var read []*Message
	var rest []block
	var positions []int
	for i, b := range blocks {
		if b.of != "tool_result" {
			rest, positions = append(rest, b), append(positions, i)
			continue
		}
		m, err := o.readResult(i, b)
		if err != nil {
			return nil, err
		}
		read = append(read, m)
	}
	if len(rest) > 0 {
		o.readOthers(first, rest)
		first.Positions = positions
		read = append(read, first)
	}
	if len(read) == 1 && len(blocks) > 0 {
		read[0].Positions = nil
	}
	if len(rest) == 0 {
		read[0].Repairs = append(read[0].Repairs, first.Repairs...) // the message's, such as of its role
	}
	return read, nil
}

// readResult reads a tool_result block as a tool entry. is_error is kept among the unknown fields.
func (o Options) readResult(i int, b block) (*Message, error) {
	id, err := b.text(i, "tool_use_id")
	if err != nil {
		return nil, err
	}
	m := &Message{Blocks: []json.RawMessage{b.raw}, Positions: []int{i}}
	m.Entry.Role, m.Entry.ToolCallID = continuo.Tool, id
	m.Entry.Content = continuo.Text(resultText(b.object.Get("content")))
	if failed := b.object.Get("is_error"); failed != nil {
		m.Entry.Extra = rawjson.Object{{Key: "is_error", Value: failed}}.Raw()
	}
	o.keepBlocks(m, false)
	return m, nil
}

// resultText joins the text of a result.
func resultText(content json.RawMessage) string {
	if text, ok := rawjson.String(content); ok {
		return text
	}
	var parts []json.RawMessage
	_ = json.Unmarshal(content, &parts) // content that is no list has no text
	var texts []string
	for _, raw := range parts {
		object, err := rawjson.ParseObject(raw)
		if of, _ := rawjson.String(object.Get("type")); err != nil || of != "text" {
			continue
		}
		text, _ := rawjson.String(object.Get("text"))
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// readOthers makes parts of the blocks that are no results: text and images in the OpenAI form, others
// unchanged.
func (o Options) readOthers(m *Message, blocks []block) {
	parts := make([]continuo.Part, len(blocks))
	foreign := false
	for i, b := range blocks {
		part, ok := partOf(b)
		if !ok {
			foreign = true
		}
		parts[i] = part
		m.Blocks = append(m.Blocks, b.raw)
	}
	m.Entry.Content = continuo.Parts(parts...)
	o.keepBlocks(m, foreign)
}
