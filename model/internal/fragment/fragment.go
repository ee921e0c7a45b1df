// Package fragment merges JSON objects that arrive in pieces: the members of a streamed message that no
// protocol describes, such as reasoning_details and extra_content.
//
// The rules: objects are merged member by member. Elements of a list are merged when they are objects with
// the same integer "index" and the same "type"; without an index, the first element of a piece continues the
// last of the list when both have the same type and running text. Other elements are appended, unless the
// list already has an equal one. Strings under names that hold running text (text, summary, data and similar)
// are concatenated; any other value replaces the earlier one, except that null and empty values replace
// nothing.
package fragment

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Object is a JSON object under construction. The zero value is an empty one.
type Object struct {
	fields []field
}

type field struct {
	key   string
	value *value
}

// value is a node: an object, a list, running text, or any other JSON as it came.
type value struct {
	object *Object
	list   *[]*value
	text   []byte // not nil for running text
	raw    json.RawMessage
}

// running lists the names of strings that arrive in pieces.
var running = []string{"text", "summary", "content", "thinking", "reasoning", "data", "transcript", "arguments", "refusal"}

// Add merges members into the object. Members that are null or empty and do not exist yet are left out.
func (o *Object) Add(members rawjson.Object) {
	for _, member := range members {
		if isEmpty(member.Value) {
			continue
		}
		o.join(member.Key, parse(member.Key, member.Value, maxDepth))
	}
}

// Raw writes the object, nil when it has no members.
func (o *Object) Raw() json.RawMessage {
	if len(o.fields) == 0 {
		return nil
	}
	return o.write()
}

func (o *Object) write() json.RawMessage {
	object := make(rawjson.Object, len(o.fields))
	for i, field := range o.fields {
		object[i] = rawjson.Field{Key: field.key, Value: field.value.write()}
	}
	return rawjson.MustMarshal(object)
}

func (o *Object) join(key string, next *value) {
	at := slices.IndexFunc(o.fields, func(f field) bool { return f.key == key })
	if at < 0 {
		o.fields = append(o.fields, field{key, next})
		return
	}
	o.fields[at].value.join(next)
}

func (v *value) join(next *value) {
	switch {
	case next.object != nil && v.object != nil:
		for _, field := range next.object.fields {
			v.object.join(field.key, field.value)
		}
	case next.list != nil && v.list != nil:
		for i, element := range *next.list {
			v.addElement(element, i == 0)
		}
	case next.text != nil && v.text != nil:
		v.text = append(v.text, next.text...)
	case next.raw != nil && isEmpty(next.raw):
	default:
		*v = *next
	}
}

func (v *value) addElement(element *value, first bool) {
	list := *v.list
	index, kind := element.position()
	for i, old := range list {
		oldIndex, oldKind := old.position()
		sameIndex := index != "" && oldIndex == index && oldKind == kind
		continues := first && i == len(list)-1 && index == "" && oldIndex == "" && oldKind == kind && old.flows() && element.flows()
		if sameIndex || continues {
			old.join(element)
			return
		}
	}
	if index == "" && slices.ContainsFunc(list, func(old *value) bool { return bytes.Equal(old.write(), element.write()) }) {
		return
	}
	*v.list = append(list, element)
}

// flows reports whether the value is an object with running text.
func (v *value) flows() bool {
	return v.object != nil && slices.ContainsFunc(v.object.fields, func(f field) bool { return f.value.text != nil })
}

// position returns the "index" and the "type" of an object in a list, as JSON; index is empty without one.
func (v *value) position() (index, kind string) {
	if v.object == nil {
		return "", ""
	}
	for _, field := range v.object.fields {
		switch field.key {
		case "index":
			var number int
			if json.Unmarshal(field.value.raw, &number) == nil {
				index = string(field.value.raw)
			}
		case "type":
			kind = string(field.value.raw)
		}
	}
	return index, kind
}

// maxDepth is how deep objects and lists are merged; deeper values are kept unchanged.
const maxDepth = 12

func parse(key string, raw json.RawMessage, depth int) *value {
	raw = bytes.TrimSpace(raw)
	if depth == 0 {
		return &value{raw: raw}
	}
	if text, ok := rawjson.String(raw); ok && slices.Contains(running, key) {
		return &value{text: append([]byte{}, text...)}
	}
	if object, err := rawjson.ParseObject(raw); err == nil {
		node := &Object{}
		for _, member := range object {
			node.fields = append(node.fields, field{member.Key, parse(member.Key, member.Value, depth-1)})
		}
		return &value{object: node}
	}
	var list []json.RawMessage
	if raw[0] == '[' && json.Unmarshal(raw, &list) == nil {
		elements := make([]*value, len(list))
		for i, element := range list {
			elements[i] = parse("", element, depth-1)
		}
		return &value{list: &elements}
	}
	return &value{raw: raw}
}

func (v *value) write() json.RawMessage {
	switch {
	case v.object != nil:
		return v.object.write()
	case v.list != nil:
		elements := make([]json.RawMessage, len(*v.list))
		for i, element := range *v.list {
			elements[i] = element.write()
		}
		return rawjson.MustMarshal(elements)
	case v.text != nil:
		return rawjson.MustMarshal(string(v.text))
	default:
		return v.raw
	}
}

func isEmpty(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "[]", "{}":
		return true
	}
	return false
}
