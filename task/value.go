package task

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// kindOf names the type of a JSON value in the terms of the format's callers.
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

// textOf is the text of a value: a string's content, nothing for null, else compact JSON.
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

// readContent reads a message's content, whatever its type: its text, and at most so many attachments of its parts.
// Inline bytes of a part have no address that an attachment could name, and are dropped.
func readContent(value json.RawMessage, most int) (text string, attachments []Attachment) {
	var parts []json.RawMessage
	if kindOf(value) != "list" || json.Unmarshal(value, &parts) != nil {
		return textOf(value), nil
	}
	texts := make([]string, 0, len(parts))
	for _, part := range parts {
		text, attached, ok := readPart(part, len(attachments) < most)
		if !ok {
			return textOf(value), nil // a list of other values
		}
		texts, attachments = append(texts, text), append(attachments, attached...)
	}
	return strings.Join(texts, "\n"), attachments
}

// readPart reads a part of a content: its text, or a placeholder that names its type and its attachment, at most one,
// if there is room.
func readPart(part json.RawMessage, room bool) (text string, attached []Attachment, ok bool) {
	if text, ok := rawjson.String(part); ok {
		return clean(text), nil, true
	}
	object, err := rawjson.ParseObject(part)
	if err != nil {
		return "", nil, false
	}
	kind, typed := rawjson.String(object.Get("type"))
	for _, field := range []string{"text", "refusal"} {
		if text, ok := rawjson.String(object.Get(field)); ok && (!typed || strings.HasSuffix(kind, field)) {
			return clean(text), nil, true
		}
	}
	a := attachmentOf(kind, part)
	switch {
	case a.Type == "":
		return placeholder(kind, a, ""), nil, typed
	case !room, a.URL == "" && a.Ref == "":
		return placeholder(kind, a, "left out"), nil, typed
	}
	return placeholder(kind, a, ""), []Attachment{a}, typed
}
