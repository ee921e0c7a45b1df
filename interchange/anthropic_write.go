package interchange

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// encode writes the message that consists of some entries.
func (anthropic) encode(parts []*draft) rawjson.Object {
	e := &parts[0].entry
	role := e.Role
	if role == continuo.Tool {
		role = continuo.User
	}
	message := rawjson.Object{{Key: "role", Value: rawjson.MustMarshal(role)}}
	if len(parts) == 1 && writesString(parts[0]) {
		message.Set("content", rawjson.MustMarshal(e.Content.String()))
	} else {
		message.Set("content", rawjson.MustMarshal(joinBlocks(parts)))
	}
	for _, d := range parts {
		extra, err := rawjson.ParseObject(d.entry.Extra)
		if err != nil {
			continue
		}
		if d.isTool() {
			extra = extra.Without("is_error") // it belongs to the block
		}
		for _, field := range extra {
			message.Set(field.Key, field.Value)
		}
	}
	return message
}

// writesString reports whether the content is a plain string: a user's text, or an assistant's that was one.
func writesString(d *draft) bool {
	e := &d.entry
	if e.Role == continuo.Tool || !e.Content.IsText() || e.HasCalls() || e.Vendor[vendorKey] != nil {
		return false
	}
	return e.Role != continuo.Assistant || d.record.String
}

// joinBlocks puts the blocks of several entries in their order in the message; those with an unknown position
// come last.
func joinBlocks(parts []*draft) []json.RawMessage {
	type positioned struct {
		position int
		raw      json.RawMessage
	}
	var all []positioned
	for _, d := range parts {
		for i, raw := range blocksOf(d) {
			position := math.MaxInt
			if i < len(d.record.Blocks) {
				position = d.record.Blocks[i]
			}
			all = append(all, positioned{position, raw})
		}
	}
	slices.SortStableFunc(all, func(a, b positioned) int { return cmp.Compare(a.position, b.position) })
	blocks := make([]json.RawMessage, len(all))
	for i := range all {
		blocks[i] = all[i].raw
	}
	return blocks
}

// blocksOf returns the blocks of one entry, in their original form if known.
func blocksOf(d *draft) []json.RawMessage {
	if d.record.Raw != nil {
		return d.record.Raw
	}
	var kept struct {
		Content []json.RawMessage `json:"content"`
		Block   json.RawMessage   `json:"block"`
	}
	if raw := d.entry.Vendor[vendorKey]; raw != nil && json.Unmarshal(raw, &kept) == nil {
		switch {
		case kept.Block != nil && d.isTool():
			return []json.RawMessage{kept.Block}
		case kept.Content != nil:
			return kept.Content
		}
	}
	return plainBlocks(&d.entry)
}

// plainBlocks makes blocks of an entry's own fields.
func plainBlocks(e *continuo.Entry) []json.RawMessage {
	switch e.Role {
	case continuo.Tool:
		return []json.RawMessage{resultBlock(e)}
	case continuo.Assistant:
		return assistantBlocks(e)
	default:
		return userBlocks(e.Content)
	}
}

func resultBlock(e *continuo.Entry) json.RawMessage {
	object := rawjson.Object{
		{Key: "type", Value: json.RawMessage(`"tool_result"`)},
		{Key: "tool_use_id", Value: rawjson.MustMarshal(e.ToolCallID)},
	}
	if e.Content.IsParts() {
		object.Set("content", rawjson.MustMarshal(userBlocks(e.Content)))
	} else {
		object.Set("content", rawjson.MustMarshal(e.Content.String()))
	}
	if extra, err := rawjson.ParseObject(e.Extra); err == nil && extra.Get("is_error") != nil {
		object.Set("is_error", extra.Get("is_error"))
	}
	return object.Raw()
}

func assistantBlocks(e *continuo.Entry) []json.RawMessage {
	var blocks []json.RawMessage
	switch {
	case e.Content.IsParts():
		blocks = userBlocks(e.Content)
	case e.Content.IsText():
		blocks = append(blocks, continuo.TextPart(e.Content.String()).Raw)
	}
	for _, call := range e.ToolCalls {
		blocks = append(blocks, rawjson.Object{
			{Key: "type", Value: json.RawMessage(`"tool_use"`)},
			{Key: "id", Value: rawjson.MustMarshal(call.ID)},
			{Key: "name", Value: rawjson.MustMarshal(call.Name)},
			{Key: "input", Value: inputOf(call)},
		}.Raw())
	}
	return blocks
}

// inputOf returns a call's arguments as JSON. Invalid arguments are put into an object under "arguments".
func inputOf(call continuo.ToolCall) json.RawMessage {
	raw := json.RawMessage(call.Arguments)
	switch {
	case json.Valid(raw):
		return raw
	case call.Arguments == "":
		return json.RawMessage("{}")
	}
	return rawjson.MustMarshal(map[string]string{"arguments": call.Arguments})
}

// userBlocks makes blocks of content: text and images in Anthropic's form, other parts unchanged.
func userBlocks(content continuo.Content) []json.RawMessage {
	if !content.IsParts() {
		return []json.RawMessage{continuo.TextPart(content.String()).Raw}
	}
	blocks := make([]json.RawMessage, len(content.Parts()))
	for i, part := range content.Parts() {
		blocks[i] = part.Raw
		switch part.Type {
		case "refusal":
			blocks[i] = continuo.TextPart(part.Text).Raw
		case "image_url":
			if image := imageBlock(part.Raw); image != nil {
				blocks[i] = image
			}
		}
	}
	return blocks
}

// imageBlock makes an image block of an image_url part, nil when it has no URL.
func imageBlock(raw json.RawMessage) json.RawMessage {
	var part struct {
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if json.Unmarshal(raw, &part) != nil || part.Image.URL == "" {
		return nil
	}
	source := map[string]string{"type": "url", "url": part.Image.URL}
	if rest, ok := strings.CutPrefix(part.Image.URL, "data:"); ok {
		if kind, data, ok := strings.Cut(rest, ";base64,"); ok {
			source = map[string]string{"type": "base64", "media_type": kind, "data": data}
		}
	}
	return rawjson.MustMarshal(map[string]any{"type": "image", "source": source})
}
