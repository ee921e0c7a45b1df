package gateway

import (
	"encoding/json"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// The indexes of the items of an assistant entry: its reasoning, its message, and its calls.
const (
	reasoningIndex = iota
	messageIndex
	firstCallIndex
	firstOwnIndex = 0x8000 // of the provider's own items, such as tools that it ran
)

// item is an item of a conversation, as clients see it.
type item struct {
	id  string
	raw json.RawMessage
	// own is the item as its provider has it, under its own id, and keeper the provider; nil for an item that this server
	// made.
	own    json.RawMessage
	keeper string
}

// itemsOf returns the items of an entry. Call is the call that a tool entry answers; it is not read for other entries.
func itemsOf(entry *continuo.Entry, call continuo.ToolCall) []item {
	if entry.Hidden {
		return nil
	}
	switch entry.Role {
	case continuo.Assistant:
		return answerItems(entry)
	case continuo.Tool:
		if mark, ok := mcpAnswered(entry); ok {
			items := []item{mcpResponseItem(refOf(entry, 0), mark)}
			if !mark.Denied {
				items = append(items, mcpCallItem(refOf(entry, 1), mark, entry))
			}
			return items
		}
		kind := responses.TypeFunctionCallOutput
		if call.Type == "custom" {
			kind = responses.TypeCustomCallOutput
		}
		return []item{newItem(refOf(entry, 0), kind, []rawjson.Field{
			text("status", responses.StatusCompleted), text("call_id", entry.ToolCallID), {Key: "output", Value: outputContent(entry.Content)},
		})}
	}
	return []item{newItem(refOf(entry, 0), responses.TypeMessage, []rawjson.Field{
		text("status", responses.StatusCompleted), text("role", string(entry.Role)), {Key: "content", Value: messageContent(entry.Content)},
	})}
}

// answerItems returns the items of an assistant entry: in the provider's order where the log has it, else its reasoning,
// its message and its calls.
func answerItems(entry *continuo.Entry) []item {
	var items []item
	status := responses.StatusCompleted
	if entry.Error != nil || entry.Round != nil && finishReason(entry) == "length" {
		status = responses.StatusIncomplete
	}
	if own, ok := responses.Own(entry, responses.Options{Provider: keeperOf(entry)}); ok {
		return newOwnItems(entry, own, status).list()
	}
	if entry.Reasoning != nil {
		items = append(items, reasoningItem(refOf(entry, reasoningIndex), entry.Reasoning.Text, nil, responses.StatusCompleted))
	}
	if !entry.Content.IsEmpty() || len(entry.ToolCalls) == 0 && len(items) == 0 {
		items = append(items, messageItem(refOf(entry, messageIndex), entry.Content.String(), status))
	}
	marks := mcpMarks(entry)
	for i, call := range entry.ToolCalls {
		mark, ok := marks[call.ID]
		mark.Arguments = call.Arguments
		switch {
		case ok && mark.Asks:
			items = append(items, mcpRequestItem(refOf(entry, firstCallIndex+i), mark))
			continue
		case ok:
			items = append(items, mcpCallItem(refOf(entry, firstCallIndex+i), mark, nil))
			continue
		}
		items = append(items, callItem(refOf(entry, firstCallIndex+i), call, responses.StatusCompleted))
	}
	return items
}

func text(key, value string) rawjson.Field {
	return rawjson.Field{Key: key, Value: rawjson.MustMarshal(value)}
}

// newItem makes an item of a type.
func newItem(ref itemRef, kind string, members []rawjson.Field) item {
	id := ref.id(kind)
	object := rawjson.Object{text("type", kind), text("id", id)}
	return item{id: id, raw: rawjson.MustMarshal(append(object, members...))}
}

// messageItem is a message of the model. With a status in_progress it has no content yet.
func messageItem(ref itemRef, content, status string) item {
	parts := []json.RawMessage{}
	if status != responses.StatusInProgress {
		parts = append(parts, textPart(content))
	}
	return newItem(ref, responses.TypeMessage, []rawjson.Field{
		text("status", status), text("role", "assistant"), {Key: "content", Value: rawjson.MustMarshal(parts)},
	})
}

// textPart is the text of a message of the model.
func textPart(content string) json.RawMessage {
	none := json.RawMessage("[]")
	return rawjson.MustMarshal(rawjson.Object{text("type", "output_text"), text("text", content), {Key: "annotations", Value: none}, {Key: "logprobs", Value: none}})
}

func reasoningPart(content string) json.RawMessage {
	return rawjson.MustMarshal(rawjson.Object{text("type", "reasoning_text"), text("text", content)})
}

func reasoningItem(ref itemRef, content string, encrypted json.RawMessage, status string) item {
	parts := []json.RawMessage{}
	if content != "" {
		parts = append(parts, reasoningPart(content))
	}
	members := []rawjson.Field{text("status", status), {Key: "summary", Value: json.RawMessage("[]")}, {Key: "content", Value: rawjson.MustMarshal(parts)}}
	if encrypted != nil {
		members = append(members, rawjson.Field{Key: "encrypted_content", Value: encrypted})
	}
	return newItem(ref, responses.TypeReasoning, members)
}

func callItem(ref itemRef, call continuo.ToolCall, status string) item {
	kind, arguments := responses.TypeFunctionCall, "arguments"
	if call.Type == "custom" {
		kind, arguments = responses.TypeCustomCall, "input"
	}
	members := []rawjson.Field{text("status", status), text("call_id", call.ID), text("name", call.Name), text(arguments, call.Arguments)}
	if from, to, ok := rawjson.Find(call.Extra, "namespace"); ok && kind == responses.TypeFunctionCall {
		members = append(members, rawjson.Field{Key: "namespace", Value: call.Extra[from:to]})
	}
	return newItem(ref, kind, members)
}

// inNamespace is a call of a function of one of some tools' namespaces as the client knows it: the name of the namespace is
// among what the call has besides.
func inNamespace(call continuo.ToolCall, tools []json.RawMessage) continuo.ToolCall {
	namespace, name := responses.Split(tools, call.Name)
	if namespace != "" {
		call.Name, call.Extra = name, rawjson.MustMarshal(map[string]string{"namespace": namespace})
	}
	return call
}

// messageContent is the content of a message that a client sent: always a list of parts.
func messageContent(content continuo.Content) json.RawMessage {
	return rawjson.MustMarshal(inputParts(content))
}

// outputContent is the result of a call: a text, or a list of parts.
func outputContent(content continuo.Content) json.RawMessage {
	if !content.IsParts() {
		return rawjson.MustMarshal(content.String())
	}
	return rawjson.MustMarshal(inputParts(content))
}

func inputParts(content continuo.Content) []json.RawMessage {
	parts := []json.RawMessage{}
	if !content.IsParts() {
		return append(parts, rawjson.MustMarshal(rawjson.Object{text("type", "input_text"), text("text", content.String())}))
	}
	for _, part := range content.Parts() {
		if raw, ok := responses.Part(part); ok {
			parts = append(parts, raw)
		}
	}
	return parts
}

// withoutEncrypted returns items without the encrypted content of reasoning.
func withoutEncrypted(items []item) []item {
	var shown []item
	for _, one := range items {
		object, err := rawjson.ParseObject(one.raw)
		if kind, _ := rawjson.String(object.Get("type")); err == nil && kind == responses.TypeReasoning && object.Get("encrypted_content") != nil {
			one.raw = rawjson.MustMarshal(object.Without("encrypted_content"))
		}
		shown = append(shown, one)
	}
	return shown
}
