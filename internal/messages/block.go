package messages

import (
	"encoding/json"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// partOf makes a part of a block; ok is false for a block without an equivalent in the OpenAI form.
func partOf(b block) (part continuo.Part, ok bool) {
	switch b.of {
	case "text":
		text, ok := rawjson.String(b.object.Get("text"))
		return continuo.TextPart(text), ok
	case "image":
		if url := imageURL(b.object.Get("source")); url != "" {
			raw := rawjson.MustMarshal(map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})
			return continuo.Part{Type: "image_url", Raw: raw}, true
		}
	}
	if part, ok := onePart(b.raw); ok {
		return part, false
	}
	return continuo.TextPart(""), false
}

// imageURL writes an image's source as a URL, empty when it has none.
func imageURL(raw json.RawMessage) string {
	source, err := rawjson.ParseObject(raw)
	if err != nil {
		return ""
	}
	of, _ := rawjson.String(source.Get("type"))
	url, _ := rawjson.String(source.Get("url"))
	kind, _ := rawjson.String(source.Get("media_type"))
	data, _ := rawjson.String(source.Get("data"))
	switch {
	case of == "url":
		return url
	case of == "base64" && kind != "" && data != "" && !strings.ContainsAny(kind, ";,"):
		return "data:" + kind + ";base64," + data
	}
	return ""
}

// keepBlocks keeps the blocks as Anthropic's own data when the entry's fields alone cannot reproduce them,
// which is always so for thinking, or when always is set.
func (o Options) keepBlocks(m *Message, always bool) {
	plain := PlainBlocks(&m.Entry)
	if !always && slices.EqualFunc(plain, m.Blocks, SameJSON) {
		m.Blocks = nil
		return
	}
	if o.Provider == "" {
		return
	}
	value := map[string]any{"content": m.Blocks}
	if m.Entry.Role == continuo.Tool {
		value = map[string]any{"block": m.Blocks[0]}
	}
	m.Entry.Vendor = map[string]json.RawMessage{o.Provider: rawjson.MustMarshal(value)}
}
