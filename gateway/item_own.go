package gateway

import (
	"encoding/json"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// ownItems are the items of an answer as its provider sent them, under ids of this server. They are those that a stream
// of the answer shows, in the same order.
type ownItems struct {
	entry  *continuo.Entry
	parsed []responses.Item
	status string
	calls  int // calls so far
	own    int // items of the provider's own so far
}

func newOwnItems(entry *continuo.Entry, raws []json.RawMessage, status string) *ownItems {
	o := &ownItems{entry: entry, status: status}
	for _, raw := range raws {
		if parsed, err := responses.ParseItem(raw); err == nil {
			o.parsed = append(o.parsed, parsed)
		}
	}
	o.parsed = asStreamed(o.parsed)
	return o
}

// asStreamed moves calls of the provider's kinds to where a stream shows them: before their results, which show that the
// provider ran them, or to the end, where the client is to run them.
func asStreamed(parsed []responses.Item) (ordered []responses.Item) {
	later := map[string]responses.Item{}
	var ids []string
	for _, item := range parsed {
		_, isCall := item.Call()
		switch streams := item.Type == responses.TypeFunctionCall || item.Type == responses.TypeCustomCall; {
		case isCall && !streams:
			later[item.CallID], ids = item, append(ids, item.CallID)
			continue
		case item.IsOutput():
			if call, ok := later[item.CallID]; ok {
				ordered = append(ordered, call)
				delete(later, item.CallID)
			}
		}
		ordered = append(ordered, item)
	}
	for _, id := range ids {
		if call, ok := later[id]; ok {
			ordered = append(ordered, call)
			delete(later, id)
		}
	}
	return ordered
}

// list returns the items. A stream shows the texts of several messages as one, and that of several reasoning items too.
func (o *ownItems) list() (items []item) {
	var hasMessage, hasReasoning bool
	for _, parsed := range o.parsed {
		before := len(items)
		switch {
		case parsed.Type == responses.TypeMessage && !hasMessage:
			hasMessage = true
			items = append(items, o.message(parsed))
		case parsed.Type == responses.TypeMessage:
		case parsed.Type == responses.TypeReasoning && hasText(parsed.ReasoningParts()):
			if !hasReasoning {
				hasReasoning = true
				items = append(items, o.reasoning(parsed))
			}
		default:
			items = append(items, o.other(parsed))
		}
		for i := range items[before:] {
			items[before+i].own, items[before+i].keeper = parsed.Raw, keeperOf(o.entry)
		}
	}
	return items
}

func hasText(parts []string) bool { return strings.Join(parts, "") != "" }

// message is the message of the answer: the provider's own, with its annotations, where it is the only one.
func (o *ownItems) message(parsed responses.Item) item {
	ref := refOf(o.entry, messageIndex)
	others := slices.ContainsFunc(o.parsed, func(other responses.Item) bool {
		return other.Type == responses.TypeMessage && string(other.Raw) != string(parsed.Raw)
	})
	if others {
		return messageItem(ref, o.entry.Content.String(), o.status)
	}
	object, err := rawjson.ParseObject(parsed.Raw)
	var parts []json.RawMessage
	if err != nil || json.Unmarshal(parsed.Content, &parts) != nil {
		return messageItem(ref, o.entry.Content.String(), o.status)
	}
	for i, raw := range parts {
		part, err := rawjson.ParseObject(raw)
		if kind, _ := rawjson.String(part.Get("type")); err != nil || kind != "output_text" {
			continue
		}
		for _, name := range []string{"annotations", "logprobs"} { // which clients require
			if part.Get(name) == nil {
				part.Set(name, json.RawMessage("[]"))
			}
		}
		parts[i] = part.Raw()
	}
	object.Set("status", rawjson.MustMarshal(o.status))
	object.Set("content", rawjson.MustMarshal(parts))
	return ownItem(ref, object.Raw())
}

func (o *ownItems) reasoning(parsed responses.Item) item {
	text := ""
	if o.entry.Reasoning != nil {
		text = o.entry.Reasoning.Text
	}
	var encrypted json.RawMessage
	if parsed.EncryptedContent != nil {
		encrypted = rawjson.MustMarshal(*parsed.EncryptedContent)
	}
	return reasoningItem(refOf(o.entry, reasoningIndex), text, encrypted, responses.StatusCompleted)
}

// other is a call of the client's, or an item of the provider's own.
func (o *ownItems) other(parsed responses.Item) item {
	call, isCall := parsed.Call()
	at := slices.IndexFunc(o.entry.ToolCalls, func(made continuo.ToolCall) bool { return made.ID == call.ID })
	if streams := parsed.Type == responses.TypeFunctionCall || parsed.Type == responses.TypeCustomCall; streams && o.calls < len(o.entry.ToolCalls) {
		at = o.calls // its id may have been another call's already
		o.calls++
	}
	if isCall && at >= 0 {
		made := o.entry.ToolCalls[at]
		if parsed.Namespace != "" {
			made.Name, made.Extra = parsed.Name, rawjson.MustMarshal(map[string]string{"namespace": parsed.Namespace})
		}
		return callItem(refOf(o.entry, firstCallIndex+at), made, responses.StatusCompleted)
	}
	o.own++
	return ownItem(refOf(o.entry, firstOwnIndex+o.own-1), parsed.Raw)
}

// ownItem is an item of a provider under an id of this server, with everything else as it came.
func ownItem(ref itemRef, raw json.RawMessage) item {
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		object = nil
	}
	kind, _ := rawjson.String(object.Get("type"))
	id := ref.id(kind)
	shown := append(rawjson.Object{text("type", kind), text("id", id)}, object.Without("type", "id")...)
	return item{id: id, raw: rawjson.MustMarshal(shown)}
}
