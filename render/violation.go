package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Violation is one rule that a message list breaks.
type Violation struct {
	// Index is the message's place in the list, from 0.
	Index int
	// Code names the rule: its place in the checklist of the protocol, such as C4 or A3, and a word for
	// what is wrong, such as orphan_tool. The words are also those of the log's rules.
	Code    string
	Message string // what is wrong, with the ids and names concerned
	// Lint says that the API takes it all the same, though some servers or conversions do not.
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

// kindOf names the kind of a JSON value, which must be valid, as error messages do; "absent" for no value.
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

// stringOf reads a JSON string, "" for anything else.
func stringOf(value json.RawMessage) string {
	text, _ := rawjson.String(value)
	return text
}
