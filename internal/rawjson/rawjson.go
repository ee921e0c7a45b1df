// Package rawjson is the only package that encodes and splits JSON: it writes without HTML escapes, so that text stays
// readable and equal to the input, and it splits objects into known and unknown fields without losing any.
//
// Everything that Continuo stores or sends is encoded by Marshal; values that were not interpreted stay
// json.RawMessage. When the standard library's second JSON package becomes the default, it replaces the implementation
// of this package.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Marshal is json.Marshal without HTML escapes and without a trailing newline.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// MustMarshal is Marshal for values that cannot fail: strings, numbers, and structs of them.
func MustMarshal(v any) []byte {
	data, err := Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("rawjson: marshal %T: %v", v, err))
	}
	return data
}

// Field is one member of a JSON object, its value untouched.
type Field struct {
	Key   string
	Value json.RawMessage
}

// Object is a JSON object with its members in their original order.
type Object []Field

// ErrNotObject says that the JSON value is not an object.
var ErrNotObject = errors.New("not a JSON object")

// ParseObject parses a JSON object. A duplicate key keeps its first position and its last value.
func ParseObject(data []byte) (Object, error) {
	switch {
	case len(data) == 0:
		return nil, errEmpty
	case !json.Valid(data):
		return nil, syntaxError(data)
	}
	return ParseValidObject(data)
}

// errEmpty is made once: a member that an object does not have is parsed often.
var errEmpty = syntaxError(nil)

// ParseValidObject is ParseObject for data that is known to be valid JSON, such as an element of ParseList. For other
// data it panics, or returns an arbitrary result.
func ParseValidObject(data []byte) (Object, error) { return parseValid(data, "") }

// ParseObjectExcept is ParseObject without one member, which is not copied.
func ParseObjectExcept(data []byte, member string) (Object, error) {
	if !json.Valid(data) {
		return nil, syntaxError(data)
	}
	return parseValid(data, member)
}

// fewFields is how many members are compared one by one.
const fewFields = 16

// parseValid parses an object without one member, "" for all of them.
func parseValid(data []byte, except string) (Object, error) {
	s := splitter{data: data}
	if !s.open('{') {
		return nil, ErrNotObject
	}
	object := make(Object, 0, 4)
	var indexes map[string]int // of more than fewFields members
	for s.next('}') {
		name := s.key()
		if except != "" && name == except {
			s.skipValue()
			continue
		}
		value := s.value()
		if at := object.index(name, indexes); at >= 0 {
			object[at].Value = value
			continue
		}
		object = append(object, Field{Key: name, Value: value})
		switch {
		case indexes != nil:
			indexes[name] = len(object) - 1
		case len(object) > fewFields:
			indexes = map[string]int{}
			for i := range object {
				indexes[object[i].Key] = i
			}
		}
	}
	if len(object) == 0 {
		return nil, nil
	}
	return object, nil
}

// index returns where a member is, -1 for nowhere.
func (o Object) index(key string, indexes map[string]int) int {
	if indexes != nil {
		if at, ok := indexes[key]; ok {
			return at
		}
		return -1
	}
	return slices.IndexFunc(o, func(field Field) bool { return field.Key == key })
}

// Get returns a member's value, nil when there is none.
func (o Object) Get(key string) json.RawMessage {
	for _, field := range o {
		if field.Key == key {
			return field.Value
		}
	}
	return nil
}

// Set replaces a member's value or adds the member at the end.
func (o *Object) Set(key string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].Key == key {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, Field{Key: key, Value: value})
}

// Without returns the members whose keys are not listed.
func (o Object) Without(keys ...string) Object {
	var rest Object
next:
	for _, field := range o {
		for _, key := range keys {
			if field.Key == key {
				continue next
			}
		}
		rest = append(rest, field)
	}
	return rest
}

// Raw writes the object, or nil when it has no members.
func (o Object) Raw() json.RawMessage {
	if len(o) == 0 {
		return nil
	}
	return MustMarshal(o)
}

// MarshalJSON writes the members in order.
func (o Object) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i, field := range o {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.Write(MustMarshal(field.Key))
		buf.WriteByte(':')
		buf.Write(field.Value)
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// IsNull reports whether a value is absent or the JSON null.
func IsNull(value json.RawMessage) bool {
	trimmed := bytes.TrimSpace(value)
	return len(trimmed) == 0 || string(trimmed) == "null"
}

// String reads a JSON string; ok is false for any other value.
func String(value json.RawMessage) (text string, ok bool) {
	trimmed := bytes.TrimSpace(value)
	if len(trimmed) == 0 || trimmed[0] != '"' {
		return "", false
	}
	if isPlainString(trimmed) {
		return string(trimmed[1 : len(trimmed)-1]), true
	}
	return text, json.Unmarshal(trimmed, &text) == nil
}

// isPlainString reports whether a string equals its content: it has no escapes, and nothing that JSON forbids.
func isPlainString(quoted []byte) bool {
	last := len(quoted) - 1
	if last < 1 || quoted[last] != '"' || !utf8.Valid(quoted) {
		return false
	}
	for _, c := range quoted[1:last] {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Depth returns how deeply objects and lists are nested in valid JSON: 0 for a string or a number.
func Depth(value json.RawMessage) int {
	deepest, depth, inText := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
