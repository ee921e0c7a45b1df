package responses

import (
	"bytes"
	"encoding/json"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// VendorItems is the member of an entry's vendor data that holds the items.
const VendorItems = "items"

// Options configures the translation.
type Options struct {
	// Provider is the key of the vendor data; with "" none are read or kept.
	Provider string
	// CallID returns the id that a call has in the items, by its id in the entry. Default: the same.
	CallID func(id string) string
	// Unstored leaves out of the items what a request that the provider does not store must not have, such as
	// reasoning without encrypted content. Default: the items are those that came.
	Unstored bool
}

func (o Options) callID(id string) string {
	if o.CallID == nil {
		return id
	}
	return o.CallID(id)
}

// Items returns the items of an entry; for an assistant entry without text and calls there may be none. Call is the
// call that a tool entry answers, and is not read for other entries. Parts of the content that the API cannot have are
// left out: see [Part].
func Items(entry *continuo.Entry, answers continuo.ToolCall, o Options) []json.RawMessage {
	if own, ok := Own(entry, o); ok {
		return own
	}
	switch entry.Role {
	case continuo.Assistant:
		written := assistantItems(entry, o)
		return append(keptItems(ownItems(entry, o.Provider), len(written) > 0), written...)
	case continuo.Tool:
		kind := TypeFunctionCallOutput
		if answers.Type == "custom" {
			kind = TypeCustomCallOutput
		}
		item := begin(kind, roomFor(entry.Content))
		item.String("call_id", o.callID(entry.ToolCallID))
		item.Name("output")
		item.To = appendInput(item.To, entry.Content)
		return []json.RawMessage{append(item.To, '}')}
	}
	item := begin(TypeMessage, roomFor(entry.Content))
	item.String("role", string(entry.Role))
	item.Name("content")
	item.To = appendInput(item.To, entry.Content)
	return []json.RawMessage{append(item.To, '}')}
}

// begin begins an item, with room for a content.
func begin(kind string, room int) *rawjson.Encoder {
	item := &rawjson.Encoder{To: make([]byte, 0, room+96)}
	item.Open()
	item.String("type", kind)
	return item
}

// roomFor estimates how many bytes a content takes.
func roomFor(content continuo.Content) int {
	room := len(content.String())
	return room + room/16 // for escapes
}

// Own returns the items that an entry keeps for the provider; not ok when it keeps none, or when its content or calls
// are not those of the items any more.
func Own(entry *continuo.Entry, o Options) (items []json.RawMessage, ok bool) {
	own := ownItems(entry, o.Provider)
	if len(own) == 0 || !repeats(own, entry) {
		return nil, false
	}
	if !o.Unstored {
		return renamed(own, o), true
	}
	return sendable(own, o), true
}

// assistantItems writes an assistant entry without vendor data.
func assistantItems(entry *continuo.Entry, o Options) (items []json.RawMessage) {
	if content := outputContent(entry.Content); content != nil {
		item := begin(TypeMessage, len(content))
		item.String("role", "assistant")
		item.Name("content")
		items = append(items, append(append(item.To, content...), '}'))
	}
	for i := range entry.ToolCalls {
		made := &entry.ToolCalls[i]
		kind, arguments := TypeFunctionCall, "arguments"
		if made.Type == "custom" {
			kind, arguments = TypeCustomCall, "input"
		}
		item := begin(kind, len(made.ID)+len(made.Name)+len(made.Arguments))
		item.String("call_id", o.callID(made.ID))
		item.String("name", made.Name)
		item.String(arguments, made.Arguments)
		items = append(items, append(item.To, '}'))
	}
	return items
}

// ownItems returns the items that an entry keeps for a provider, nil when it has none.
func ownItems(entry *continuo.Entry, provider string) []Item {
	if provider == "" || entry.Vendor[provider] == nil {
		return nil
	}
	vendor, err := rawjson.ParseObject(entry.Vendor[provider])
	if err != nil {
		return nil
	}
	compact, err := rawjson.AppendCompact(nil, vendor.Get(VendorItems)) // as a store returns it
	if err != nil {
		return nil
	}
	var raws []json.RawMessage
	if json.Unmarshal(compact, &raws) != nil {
		return nil
	}
	items := make([]Item, 0, len(raws))
	for _, raw := range raws {
		item, err := ParseItem(raw)
		if err != nil {
			return nil
		}
		items = append(items, item)
	}
	return items
}

// repeats reports whether items have the content and the calls of an entry: it is shown as it was stored.
func repeats(items []Item, entry *continuo.Entry) bool {
	read, err := entryOf(items)
	if err != nil || read.Role != entry.Role || len(read.ToolCalls) != len(entry.ToolCalls) || read.ToolCallID != entry.ToolCallID {
		return false
	}
	for i, call := range entry.ToolCalls {
		if theirs := read.ToolCalls[i]; theirs.ID != call.ID || theirs.Name != call.Name || theirs.Arguments != call.Arguments {
			return false
		}
	}
	if !read.Content.IsParts() && !entry.Content.IsParts() {
		return read.Content.String() == entry.Content.String()
	}
	return bytes.Equal(rawjson.MustMarshal(read.Content), rawjson.MustMarshal(entry.Content))
}

// renamed returns items with the ids of their calls.
func renamed(items []Item, o Options) []json.RawMessage {
	list := raws(items)
	for i, item := range items {
		if id := o.callID(item.CallID); item.CallID != "" && id != item.CallID {
			if object, err := rawjson.ParseObject(item.Raw); err == nil {
				object.Set("call_id", rawjson.MustMarshal(id))
				list[i] = object.Raw()
			}
		}
	}
	return list
}

// sendable returns items as an unstored request may have them. Reasoning that only the provider has is left out, and with it the
// ids of the items after it, which the API accepts only together; so is reasoning at the end. A call that was cut off
// has been answered, so that it is not incomplete any more.
func sendable(items []Item, o Options) (sent []json.RawMessage) {
	withoutIDs := false
	list := renamed(items, o)
	for i, item := range items {
		if item.Type == TypeReasoning && (!isWhole(item) || endsThere(items[i:])) {
			withoutIDs = true
			continue
		}
		raw := list[i]
		if withoutIDs && item.ID != "" {
			raw = without(raw, "id")
		}
		if item.CallID != "" && isUnfinished(raw) {
			raw = without(raw, "status")
		}
		sent = append(sent, raw)
	}
	return sent
}

func without(raw json.RawMessage, key string) json.RawMessage {
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return raw
	}
	return object.Without(key).Raw()
}

// isUnfinished reports whether an item has a status other than completed.
func isUnfinished(raw json.RawMessage) bool {
	object, err := rawjson.ParseObject(raw)
	status, _ := rawjson.String(object.Get("status"))
	return err == nil && status != "" && status != StatusCompleted
}

// isWhole reports whether a reasoning item has what a provider that did not store it needs.
func isWhole(item Item) bool {
	var content []json.RawMessage
	return item.EncryptedContent != nil || json.Unmarshal(item.Content, &content) == nil && len(content) > 0
}

// endsThere reports whether a list has nothing but reasoning.
func endsThere(items []Item) bool {
	for _, item := range items {
		if item.Type != TypeReasoning {
			return false
		}
	}
	return true
}

// keptItems returns the items that are sent back also where the rest of their entry is written again: compaction, and
// reasoning without its id. Reasoning is left out where nothing of the entry is written, since it must not be last.
func keptItems(items []Item, isWritten bool) (kept []json.RawMessage) {
	if endsThere(items) {
		return nil
	}
	for _, item := range items {
		switch {
		case item.Type == TypeCompaction:
			kept = append(kept, item.Raw)
		case item.Type == TypeReasoning && isWritten && isWhole(item):
			kept = append(kept, without(item.Raw, "id"))
		}
	}
	return kept
}
