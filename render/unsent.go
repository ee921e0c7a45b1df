package render

import (
	"encoding/json"
	"maps"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/gemini"
	"github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/window"
)

// UnsentOpenAIChat names the parts of messages that [OpenAIChat] cannot represent.
func UnsentOpenAIChat(messages []window.Message) []continuo.MissingPart {
	return unsent(messages, func(m *window.Message, part continuo.Part) bool {
		var media *[]json.RawMessage
		if m.Role == continuo.Tool {
			media = new([]json.RawMessage)
		}
		_, ok := openAIPart(m, part, media)
		return ok
	})
}

// UnsentAnthropic names the parts of messages that [Anthropic] cannot represent.
func UnsentAnthropic(messages []window.Message, o Options) []continuo.MissingPart {
	w := &anthropicWriter{options: o}
	return unsent(messages, func(m *window.Message, part continuo.Part) bool {
		if shownWhole(m) && (w.vendorBlocks(m) != nil || m.Role == continuo.Tool && o.vendor(m).Get("block") != nil) {
			return true // sent as the provider's own blocks
		}
		_, ok := w.partBlock(m.Role, part)
		return ok
	})
}

// UnsentText names the parts of messages that a text, such as a transcript, only names.
func UnsentText(messages []window.Message) []continuo.MissingPart {
	return unsent(messages, func(_ *window.Message, part continuo.Part) bool {
		return part.IsText() || isThinking(part.Type)
	})
}

func unsent(messages []window.Message, sent func(*window.Message, continuo.Part) bool) []continuo.MissingPart {
	var missing []continuo.MissingPart
	for i := range messages {
		m := &messages[i]
		for at, part := range m.Content.Parts() {
			if m.Seq > 0 && !part.IsText() && !sent(m, part) {
				missing = append(missing, continuo.MissingPart{Seq: m.Seq, Part: at, Type: part.Type, Problem: continuo.PartUnsupported})
			}
		}
	}
	return missing
}

// Withheld names the blocks of other providers that a request to a provider omits, one item for each message
// and provider. Blocks that the message's content and calls repeat are not included.
func Withheld(messages []window.Message, o Options) []window.WithheldBlocks {
	var withheld []window.WithheldBlocks
	for i := range messages {
		m := &messages[i]
		if m.Entry == nil || m.Seq == 0 || len(m.Entry.Vendor) == 0 {
			continue
		}
		for _, provider := range slices.Sorted(maps.Keys(m.Entry.Vendor)) {
			if types := ownTypes(m.Entry.Vendor[provider]); provider != o.Provider && len(types) > 0 {
				withheld = append(withheld, window.WithheldBlocks{Seq: m.Seq, Provider: provider, Types: types})
			}
		}
	}
	return withheld
}

// ownTypes returns the types of a provider's blocks that no other provider supports, each once.
func ownTypes(vendor json.RawMessage) []string {
	object, err := rawjson.ParseObject(vendor)
	if err != nil {
		return nil
	}
	var types []string
	add := func(kind string, repeated ...string) {
		if kind != "" && !slices.Contains(repeated, kind) && !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	for _, block := range cleanBlocks(object.Get("content")) {
		add(blockType(block), "text", "tool_use", "tool_result", "image", "document", "search_result")
	}
	for _, item := range cleanBlocks(object.Get(responses.VendorItems)) {
		add(blockType(item), responses.TypeMessage, responses.TypeFunctionCall, responses.TypeFunctionCallOutput, responses.TypeCustomCall, responses.TypeCustomCallOutput)
	}
	var parts []json.RawMessage
	_ = json.Unmarshal(object.Get(gemini.VendorParts), &parts) // a list or nothing
	for _, raw := range parts {
		add(gemini.Kind(raw), "text", "functionCall", "functionResponse", "inlineData")
	}
	return types
}
