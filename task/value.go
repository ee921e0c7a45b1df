package task

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// kindOf names the kind of a JSON value as callers of the format know it.
func kindOf(value json.RawMessage) string {
	value = bytes.TrimSpace(value)
	switch {
	case rawjson.IsNull(value):
		return "NoneType"
	case value[0] == '{':
		return "dict"
	case value[0] == '[':
		return "list"
	case value[0] == '"':
		return "str"
	case value[0] == 't' || value[0] == 'f':
		return "bool"
	case bytes.ContainsAny(value, ".eE"):
		return "float"
	}
	return "int"
}

// textOf is what a value says: a string's text, nothing for null, else compact JSON.
func textOf(value json.RawMessage) string {
	if rawjson.IsNull(value) {
		return ""
	}
	if text, ok := rawjson.String(value); ok {
		return clean(text)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return ""
	}
	return clean(compact.String())
}

// shown is a value inside of an error message.
func shown(value json.RawMessage) string {
	if rawjson.IsNull(value) {
		return "null"
	}
	return oneLine(textOf(value), 80)
}

// contentOf is the text of a message's content, whatever its kind.
func contentOf(value json.RawMessage) string {
	if kindOf(value) != "list" {
		return textOf(value)
	}
	var parts []json.RawMessage
	if json.Unmarshal(value, &parts) != nil {
		return textOf(value)
	}
	texts := make([]string, 0, len(parts))
	for _, part := range parts {
		text, ok := partText(part)
		if !ok {
			return textOf(value) // a list of something else
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// partText is the text of a part of a content, or a placeholder that names its type.
func partText(part json.RawMessage) (text string, ok bool) {
	if text, ok := rawjson.String(part); ok {
		return clean(text), true
	}
	object, err := rawjson.ParseObject(part)
	if err != nil {
		return "", false
	}
	kind, typed := rawjson.String(object.Get("type"))
	for _, field := range []string{"text", "refusal"} {
		if text, ok := rawjson.String(object.Get(field)); ok && (!typed || strings.HasSuffix(kind, field)) {
			return clean(text), true
		}
	}
	return placeholder(kind), typed
}

// placeholder stands for a part that is no text.
func placeholder(kind string) string { return "[" + label(kind, 40) + "]" }
