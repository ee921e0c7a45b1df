package responses

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// The types of items that have a meaning here. Every other item is kept as it is.
const (
	TypeMessage            = "message"
	TypeFunctionCall       = "function_call"
	TypeFunctionCallOutput = "function_call_output"
	TypeCustomCall         = "custom_tool_call"
	TypeCustomCallOutput   = "custom_tool_call_output"
	TypeReasoning          = "reasoning"
	TypeCompaction         = "compaction"
	TypeItemReference      = "item_reference"
)

// Item is an item as read. Raw is the whole item.
type Item struct {
	Type             string          `json:"type"`
	ID               string          `json:"id"`
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"` // a string, null or a list of parts
	CallID           string          `json:"call_id"`
	Name             string          `json:"name"`
	Namespace        string          `json:"namespace"` // of a function_call; "" for none
	Arguments        json.RawMessage `json:"arguments"`
	Input            json.RawMessage `json:"input"`
	Output           json.RawMessage `json:"output"`
	Summary          json.RawMessage `json:"summary"`
	EncryptedContent *string         `json:"encrypted_content"`
	Raw              json.RawMessage `json:"-"`
}

// ParseItem reads an item. One with a role and without a type is a message.
func ParseItem(raw json.RawMessage) (Item, error) {
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return Item{}, fmt.Errorf("item: %w", err)
	}
	var item Item
	for key, field := range map[string]*string{
		"type": &item.Type, "id": &item.ID, "role": &item.Role, "call_id": &item.CallID, "name": &item.Name, "namespace": &item.Namespace,
	} {
		*field, _ = rawjson.String(object.Get(key))
	}
	item.Content, item.Arguments, item.Input = object.Get("content"), object.Get("arguments"), object.Get("input")
	item.Output, item.Summary = object.Get("output"), object.Get("summary")
	if encrypted, ok := rawjson.String(object.Get("encrypted_content")); ok && encrypted != "" {
		item.EncryptedContent = &encrypted
	}
	if item.Type == "" && item.Role != "" {
		item.Type = TypeMessage
	}
	if item.Type == "" {
		return Item{}, fmt.Errorf("item: it has no type")
	}
	item.Raw = raw
	return item, nil
}

// IsModels reports whether the model or its provider made the item, rather than the client.
func (i Item) IsModels() bool {
	switch i.Type {
	case TypeMessage:
		return i.Role == "assistant"
	case "mcp_approval_response", "compaction_trigger", "additional_tools", TypeItemReference:
		return false
	}
	return !i.IsOutput()
}

// IsOutput reports whether the item is the client's result of a call.
func (i Item) IsOutput() bool { return i.CallID != "" && strings.HasSuffix(i.Type, "_output") }

// Call returns the call that the item is; not ok for every other item. Calls of tools that the provider defines and
// the client runs (local_shell_call, apply_patch_call and similar) are calls of a function that is named like the type;
// their arguments are the JSON of the action.
func (i Item) Call() (call continuo.ToolCall, ok bool) {
	switch {
	case i.CallID == "" || i.IsOutput():
		return continuo.ToolCall{}, false
	case i.Type == TypeFunctionCall:
		return continuo.FunctionCall(i.CallID, NamespacedName(i.Namespace, i.Name), textOf(i.Arguments)), true
	case i.Type == TypeCustomCall:
		return continuo.ToolCall{ID: i.CallID, Type: "custom", Name: i.Name, Arguments: textOf(i.Input)}, true
	case strings.HasSuffix(i.Type, "_call"):
		object, _ := rawjson.ParseObject(i.Raw)
		arguments := "{}"
		for _, key := range []string{"action", "operation", "arguments"} {
			if value := object.Get(key); !rawjson.IsNull(value) {
				arguments = textOf(value)
				break
			}
		}
		return continuo.FunctionCall(i.CallID, strings.TrimSuffix(i.Type, "_call"), arguments), true
	}
	return continuo.ToolCall{}, false
}

// TypeNamespace is the type of a tool that groups functions. Their names are those of the log behind the namespace's.
const TypeNamespace = "namespace"

// namespaceSeparator is between the names of a namespace and of a function.
const namespaceSeparator = "__"

// NamespacedName is the log's name of a function of a namespace, which may be "".
func NamespacedName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + namespaceSeparator + name
}

// Namespace is a tool that groups functions.
type Namespace struct {
	Type  string `json:"type"` // TypeNamespace
	Name  string `json:"name"`
	Tools []Tool `json:"tools"`
}

// NamespaceOf returns the tool as a namespace; not ok for other tools, and for one with tools that are no functions.
func NamespaceOf(raw json.RawMessage) (namespace Namespace, ok bool) {
	if json.Unmarshal(raw, &namespace) != nil || namespace.Type != TypeNamespace || namespace.Name == "" {
		return Namespace{}, false
	}
	for _, tool := range namespace.Tools {
		if tool.Type != "function" || tool.Name == "" {
			return Namespace{}, false
		}
	}
	return namespace, true
}

// Functions are the functions of a namespace under their names in the log.
func (n Namespace) Functions() []Tool {
	functions := slices.Clone(n.Tools)
	for i := range functions {
		functions[i].Name = NamespacedName(n.Name, functions[i].Name)
	}
	return functions
}

// Split separates the log's name of a function of one of some tools' namespaces.
func Split(tools []json.RawMessage, name string) (namespace, function string) {
	for _, raw := range tools {
		found, ok := NamespaceOf(raw)
		if !ok {
			continue
		}
		for _, tool := range found.Tools {
			if NamespacedName(found.Name, tool.Name) == name {
				return found.Name, tool.Name
			}
		}
	}
	return "", name
}

// textOf returns a string's text, and any other JSON without white space, as storing it does; "" for null.
func textOf(value json.RawMessage) string {
	if text, ok := rawjson.String(value); ok {
		return text
	}
	if rawjson.IsNull(value) {
		return ""
	}
	return string(rawjson.MustMarshal(value))
}

func nonEmpty(texts ...string) (kept []string) {
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

// gap separates the texts of several parts and messages in one entry.
const gap = "\n\n"

// ContentPart is a part of a message's content, of a function's output, or of a reasoning item.
type ContentPart struct {
	Type        string          `json:"type"`
	Text        string          `json:"text,omitempty"`
	Refusal     string          `json:"refusal,omitempty"`
	ImageURL    string          `json:"image_url,omitempty"`
	Detail      string          `json:"detail,omitempty"`
	FileID      string          `json:"file_id,omitempty"`
	FileURL     string          `json:"file_url,omitempty"`
	Filename    string          `json:"filename,omitempty"`
	FileData    string          `json:"file_data,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// message is a message as it is written.
type message struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// Parts returns the texts of a message's parts by their index, refusals among them.
func (i Item) Parts() []string {
	if text, ok := rawjson.String(i.Content); ok {
		return []string{text}
	}
	var parts []ContentPart
	if json.Unmarshal(i.Content, &parts) != nil {
		return nil
	}
	texts := make([]string, len(parts))
	for n, part := range parts {
		texts[n] = part.Text + part.Refusal
	}
	return texts
}

// ReasoningParts returns the readable texts of a reasoning item by their index: its summary, or else its content.
func (i Item) ReasoningParts() []string {
	for _, list := range []json.RawMessage{i.Summary, i.Content} {
		texts := Item{Content: list}.Parts()
		if len(nonEmpty(texts...)) > 0 {
			return texts
		}
	}
	return nil
}

// IsPlain reports whether the item is a message of one text, or a call, with nothing that its entry would not keep but
// an id and the status.
func (i Item) IsPlain() bool {
	object, err := rawjson.ParseObject(i.Raw)
	if err != nil {
		return false
	}
	rest := object.Without("id", "type", "status", "role", "content", "call_id", "name", "arguments", "input")
	switch i.Type {
	case TypeFunctionCall, TypeCustomCall:
		return len(rest) == 0
	case TypeMessage:
		return len(rest) == 0 && isPlainText(i.Content)
	}
	return false
}

// isPlainText reports whether a message's content is empty or one text without annotations.
func isPlainText(content json.RawMessage) bool {
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil || len(parts) > 1 {
		return false
	}
	for _, raw := range parts {
		part, err := rawjson.ParseObject(raw)
		if kind, _ := rawjson.String(part.Get("type")); err != nil || kind != "output_text" {
			return false
		}
		for _, member := range part.Without("type", "text") {
			if !rawjson.IsNull(member.Value) && string(member.Value) != "[]" {
				return false
			}
		}
	}
	return true
}
