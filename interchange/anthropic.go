package interchange

import (
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// vendorKey is the key of Anthropic's own data in Entry.Vendor.
const vendorKey = "anthropic"

// anthropic is the form with content blocks. An assistant's message is one entry; in a user's message, each
// tool_result becomes a tool entry, and the remaining blocks become one entry.
type anthropic struct{}

// joins reports that adjacent results are one user message.
func (anthropic) joins(before, next *continuo.Entry) bool {
	return before.Role == continuo.Tool && next.Role == continuo.Tool
}

func (anthropic) decode(message rawjson.Object, report *repairs) ([]*draft, error) {
	first := &draft{}
	name, ok := rawjson.String(message.Get("role"))
	if !ok {
		return nil, fmt.Errorf("field role must be a string, not %s", kind(message.Get("role")))
	}
	setRole(first, name, message, report)
	if first.entry.Role == continuo.Tool {
		first.entry.Role = continuo.User
		report.decoding(first, continuo.RuleUnknownRole, "The role %s, which Anthropic messages do not have, became user.", name)
	}
	content := message.Get("content")
	var drafts []*draft
	var err error
	switch text, isText := rawjson.String(content); {
	case isText:
		first.record.String = first.entry.Role == continuo.Assistant
		first.entry.Content = continuo.Text(text)
		drafts = []*draft{first}
	default:
		drafts, err = decodeBlocks(first, content, report)
	}
	if err != nil {
		return nil, err
	}
	addExtra(&drafts[0].entry, message.Without("role", "content"))
	return drafts, nil
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
		return "", fmt.Errorf("field content, block %d: field %s must be a string, not %s", i, field, kind(raw))
	}
	return text, nil
}

func decodeBlocks(first *draft, content json.RawMessage, report *repairs) ([]*draft, error) {
	var raws []json.RawMessage
	if !rawjson.IsNull(content) && json.Unmarshal(content, &raws) != nil {
		return nil, fmt.Errorf("field content must be a string or a list of blocks, not %s", kind(content))
	}
	blocks := make([]block, len(raws))
	for i, raw := range raws {
		object, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("field content, block %d, must be an object, not %s", i, kind(raw))
		}
		of, ok := rawjson.String(object.Get("type"))
		if !ok || of == "" {
			return nil, fmt.Errorf("field content, block %d, has no type", i)
		}
		blocks[i] = block{raw, object, of}
	}
	switch {
	case len(blocks) == 0:
		return decodeNothing(first, report), nil
	case first.entry.Role == continuo.Assistant:
		return []*draft{first}, decodeAssistant(first, blocks, report)
	}
	return decodeUser(first, blocks, report)
}

func decodeNothing(d *draft, report *repairs) []*draft {
	d.entry.Content = continuo.Text("")
	report.decoding(d, continuo.RuleNullContent, "The content had no blocks and became an empty text.")
	return []*draft{d}
}

// decodeAssistant reads the blocks of an assistant's message into one entry.
func decodeAssistant(d *draft, blocks []block, report *repairs) error {
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
			if err := decodeUse(d, i, b, report); err != nil {
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
		d.blocks = append(d.blocks, b.raw)
	}
	e := &d.entry
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
	d.keepBlocks(false)
	return nil
}

// decodeUse reads a tool_use block as a call.
func decodeUse(d *draft, i int, b block, report *repairs) error {
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
		report.decoding(d, continuo.RuleBadFunction, "Block %d: the missing name became %s.", i, unnamedFunction)
	}
	input := b.object.Get("input")
	if rawjson.IsNull(input) {
		input = json.RawMessage("{}")
		report.decoding(d, continuo.RuleBadFunction, "Block %d: the missing input became {}.", i)
	}
	call.Arguments = string(input)
	d.entry.ToolCalls = append(d.entry.ToolCalls, call)
	return nil
}

// decodeUser reads a user's or system message: results and other blocks.
func decodeUser(first *draft, blocks []block, report *repairs) ([]*draft, error) {
	var drafts []*draft
	var rest []block
	var positions []int
	for i, b := range blocks {
		if b.of != "tool_result" {
			rest, positions = append(rest, b), append(positions, i)
			continue
		}
		d, err := decodeResult(i, b)
		if err != nil {
			return nil, err
		}
		drafts = append(drafts, d)
	}
	if len(rest) > 0 {
		decodeOthers(first, rest)
		first.record.Blocks = positions
		drafts = append(drafts, first)
	}
	if len(drafts) == 1 && len(blocks) > 0 {
		drafts[0].record.Blocks = nil
	}
	if len(rest) == 0 {
		for _, rule := range first.entry.Repairs { // the message's repairs, such as of its role
			drafts[0].mark(continuo.Rule(rule))
		}
	}
	return drafts, nil
}

// decodeResult reads a tool_result block as a tool entry. is_error is kept among the unknown fields.
func decodeResult(i int, b block) (*draft, error) {
	id, err := b.text(i, "tool_use_id")
	if err != nil {
		return nil, err
	}
	d := &draft{blocks: []json.RawMessage{b.raw}}
	d.record.Blocks = []int{i}
	d.entry.Role, d.entry.ToolCallID = continuo.Tool, id
	d.entry.Content = continuo.Text(resultText(b.object.Get("content")))
	if failed := b.object.Get("is_error"); failed != nil {
		d.entry.Extra = rawjson.Object{{Key: "is_error", Value: failed}}.Raw()
	}
	d.keepBlocks(false)
	return d, nil
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

// decodeOthers makes parts of the blocks that are no results: text and images in the OpenAI form, others
// unchanged.
func decodeOthers(d *draft, blocks []block) {
	parts := make([]continuo.Part, len(blocks))
	foreign := false
	for i, b := range blocks {
		part, ok := partOf(b)
		if !ok {
			foreign = true
		}
		parts[i] = part
		d.blocks = append(d.blocks, b.raw)
	}
	d.entry.Content = continuo.Parts(parts...)
	d.keepBlocks(foreign)
}
