package render

import (
	"encoding/json"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/window"
)

func (w *anthropicWriter) userBlocks(m *window.Message) ([]json.RawMessage, error) {
	var blocks []json.RawMessage
	if own := w.vendorBlocks(m); own != nil && shownWhole(m) {
		for _, block := range own {
			if blockType(block) != "tool_result" { // results are separate entries
				blocks = append(blocks, block.Raw())
			}
		}
	} else {
		blocks = w.contentBlocks(m)
	}
	if len(blocks) == 0 {
		blocks = []json.RawMessage{w.textBlock(emptyMessage)}
	}
	return blocks, nil
}

// contentBlocks writes content of any protocol as blocks of a user message, an assistant message or a result.
// Empty texts are left out.
func (w *anthropicWriter) contentBlocks(m *window.Message) []json.RawMessage {
	if !m.Content.IsParts() {
		if text := m.Content.String(); !isBlank(text) {
			return []json.RawMessage{w.textBlock(text)}
		}
		return nil
	}
	var blocks []json.RawMessage
	for _, part := range m.Content.Parts() {
		block, ok := w.partBlock(m.Role, part)
		switch {
		case !ok:
			blocks = append(blocks, w.textBlock(unsupported(part)))
		case block != nil:
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// partBlock writes one part, nil for an empty one, which is left out. It returns not ok for a part that this
// kind of message cannot hold.
func (w *anthropicWriter) partBlock(role continuo.Role, part continuo.Part) (block json.RawMessage, ok bool) {
	switch {
	case part.IsText() && isBlank(part.Text):
		return nil, true
	case part.IsText():
		return w.textBlock(part.Text), true
	case role == continuo.Assistant && isThinking(part.Type):
		return nil, true
	case role == continuo.Assistant:
		text, ok := documentText(part)
		if !ok || isBlank(text) {
			return nil, ok
		}
		return w.textBlock(text), true
	}
	block = mediaBlock(part)
	return block, block != nil
}

// mediaBlock writes an image or a PDF of either protocol; nil for any other part.
func mediaBlock(part continuo.Part) json.RawMessage {
	switch part.Type {
	case "image", "document", "search_result":
		object, err := rawjson.ParseObject(part.Raw)
		if err != nil {
			return nil
		}
		return object.Without("cache_control").Raw()
	case "image_url":
		var image struct {
			ImageURL struct {
				URL string `json:"url"`
			} `json:"image_url"`
		}
		if json.Unmarshal(part.Raw, &image) == nil {
			return sourceBlock("image", "", image.ImageURL.URL)
		}
	case "file":
		return fileBlock(part)
	}
	return nil
}

// mediaTypes returns the media types that the API accepts inline in a block of a type.
func mediaTypes(block string) []string {
	if block == "document" {
		return []string{"application/pdf"}
	}
	return []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
}

// sourceBlock makes a block of a data URL or an http address; nil when it is neither.
func sourceBlock(kind, title, url string) json.RawMessage {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return rawjson.MustMarshal(anthropic.MediaBlock{Type: kind, Title: title, Source: anthropic.MediaSource{Type: "url", URL: url}})
	}
	for _, mediaType := range mediaTypes(kind) {
		if data, ok := strings.CutPrefix(url, "data:"+mediaType+";base64,"); ok {
			return rawjson.MustMarshal(anthropic.MediaBlock{Type: kind, Title: title, Source: anthropic.MediaSource{Type: "base64", MediaType: mediaType, Data: data}})
		}
	}
	return nil
}

// resultBlock writes a tool result under the id that its call has in the request.
func (w *anthropicWriter) resultBlock(m *window.Message, id string) (json.RawMessage, error) {
	vendor := w.options.vendor(m)
	var own rawjson.Object
	if block := vendor.Get("block"); block != nil {
		var err error
		if own, err = rawjson.ParseObject(block); err != nil || blockType(own) != "tool_result" {
			own = nil
		}
	}
	if own != nil && shownWhole(m) {
		own.Set("tool_use_id", rawjson.MustMarshal(id))
		if content := cleanBlocks(own.Get("content")); content != nil {
			own.Set("content", rawjson.MustMarshal(content))
		}
		return own.Without("cache_control").Raw(), nil
	}
	isError := failed(m, vendor, own)
	var list json.RawMessage // the content, where it is not a string
	switch blocks := w.vendorBlocks(m); {
	case len(blocks) > 0 && shownWhole(m):
		list = rawjson.MustMarshal(blocks)
	case m.Content.IsParts():
		if content := w.contentBlocks(m); len(content) > 0 {
			list = rawjson.MustMarshal(content)
		}
	}
	begin := w.begin("tool_result")
	w.memory = rawjson.AppendString(append(w.memory, `,"tool_use_id":`...), id)
	if list != nil {
		w.memory = append(append(w.memory, `,"content":`...), list...)
	} else if !m.Content.IsParts() && m.Content.String() != "" {
		w.memory = rawjson.AppendString(append(w.memory, `,"content":`...), m.Content.String())
	}
	if isError {
		w.memory = append(w.memory, `,"is_error":true`...)
	}
	return w.end(begin), nil
}

// failed reports whether the tool reported a failure of its call.
func failed(m *window.Message, vendor, own rawjson.Object) bool {
	if isTrue(vendor.Get("is_error")) || isTrue(own.Get("is_error")) {
		return true
	}
	if m.Entry == nil {
		return false
	}
	if m.Entry.ToolFailed() || m.Entry.Error != nil {
		return true
	}
	if len(m.Entry.Extra) == 0 {
		return false
	}
	extra, _ := rawjson.ParseObject(m.Entry.Extra)
	return isTrue(extra.Get("is_error"))
}

// vendorBlocks returns the provider's own blocks of a message, nil when it has none.
func (w *anthropicWriter) vendorBlocks(m *window.Message) []rawjson.Object {
	return cleanBlocks(w.options.vendor(m).Get("content"))
}

// cleanBlocks reads a list of blocks, without cache marks and empty texts; nil when it is no list of blocks.
func cleanBlocks(list json.RawMessage) []rawjson.Object {
	if len(list) == 0 {
		return nil
	}
	var raws []json.RawMessage
	if json.Unmarshal(list, &raws) != nil || raws == nil {
		return nil
	}
	blocks := make([]rawjson.Object, 0, len(raws))
	for _, raw := range raws {
		block, err := rawjson.ParseObject(raw)
		if err != nil || blockType(block) == "" {
			return nil
		}
		text, _ := rawjson.String(block.Get("text"))
		if blockType(block) == "text" && isBlank(text) {
			continue
		}
		blocks = append(blocks, block.Without("cache_control"))
	}
	return blocks
}
