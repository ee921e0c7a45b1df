package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Violation is one violation of a protocol's rule by a message list.
type Violation struct {
	// Index is the message's index in the list, from 0.
	Index int
	// Code names the rule: its number in the checklist of the protocol, such as C4 or A3, and a word for the
	// violation, such as orphan_tool. The log's rules use the same words.
	Code    string
	Message string // what is wrong, with the ids and names concerned
	// Lint says that the API accepts it, though some servers or conversions do not.
	Lint bool
}

// String returns one line.
func (v Violation) String() string {
	kind := ""
	if v.Lint {
		kind = " (lint)"
	}
	return fmt.Sprintf("message %d: %s%s: %s", v.Index, v.Code, kind, v.Message)
}

// findings collects violations.
type findings []Violation

func (f *findings) hard(index int, code, format string, args ...any) {
	*f = append(*f, Violation{Index: index, Code: code, Message: fmt.Sprintf(format, args...)})
}

func (f *findings) lint(index int, code, format string, args ...any) {
	*f = append(*f, Violation{Index: index, Code: code, Message: fmt.Sprintf(format, args...), Lint: true})
}

// kindOf names the kind of a JSON value, which must be valid, for error messages; "absent" for no value.
func kindOf(value json.RawMessage) string {
	trimmed := bytes.TrimSpace(value)
	if len(trimmed) == 0 {
		return "absent"
	}
	switch trimmed[0] {
	case 'n':
		return "null"
	case '"':
		return "string"
	case '[':
		return "array"
	case '{':
		return "object"
	default:
		return "number or boolean"
	}
}

// stringOf returns the value of a JSON string, "" for anything else.
func stringOf(value json.RawMessage) string {
	text, _ := rawjson.String(value)
	return text
}
