package messages

import (
	"encoding/json"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// PlainBlocks makes blocks of an entry's own fields.
func PlainBlocks(e *continuo.Entry) []json.RawMessage {
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
