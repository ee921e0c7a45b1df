package yamlform

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// Value is the value of a key that [Reader.Object] has read.
type Value[T string | int | bool | []string] struct {
	Is   T              // the zero value without the key, and for a value that is a problem
	Node *yamltree.Node // nil without the key
}

// Several is a list, or a mapping of names, for the caller to read.
type Several struct {
	Node *yamltree.Node // nil without the key
	Most int            // how many values it may have
}

// Object reads a mapping into the struct that into points to; what names the mapping in problems. It reports whether v
// is a mapping.
//
// Each exported field of the struct has the tag key, and those of embedded structs belong to it. A *yamltree.Node takes
// any value, for the caller to read, and a Value one of its type. The other tags are
//
//	enum     the allowed texts, separated by commas
//	min max  the bounds of a number; max also how many values a Several may have
//	form     "line" for a text of one line
//
// and for the schema alone: form, the definitions that describe a Node, separated by |, "any" for none; list or each,
// those of the values of a Several that is a list or a mapping of names; min, how many it must have; unique; help, which
// says what the key means, in sentences; required; and only, which names the one definition of several with the same
// struct that has the key.
func (r *Reader) Object(v *yamltree.Node, what string, into any) bool {
	keys := keysOf(reflect.ValueOf(into).Elem())
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	found := r.mapping(v, what, names)
	for _, k := range keys {
		if several, ok := k.position.(*Several); ok {
			*several = Several{found[k.name], k.number("max")}
		} else if node := found[k.name]; node != nil {
			r.readKey(node, k)
		}
	}
	return found != nil
}

func (r *Reader) readKey(node *yamltree.Node, k key) {
	switch position := k.position.(type) {
	case **yamltree.Node:
		*position = node
	case *Value[string]:
		*position = Value[string]{r.readText(node, k), node}
	case *Value[int]:
		*position = Value[int]{r.Between(node, k.name, k.number("min"), k.number("max")), node}
	case *Value[bool]:
		*position = Value[bool]{r.Bool(node, k.name), node}
	case *Value[[]string]:
		*position = Value[[]string]{r.Texts(node, k.name), node}
	default:
		panic(fmt.Sprintf("yamlform: %s cannot be a %T", k.name, position))
	}
}

func (r *Reader) readText(node *yamltree.Node, k key) string {
	switch {
	case k.has("enum"):
		return r.OneOf(node, k.name, k.list("enum", ",")...)
	case k.tag.Get("form") == "line":
		return r.Line(node, k.name)
	default:
		return r.Text(node, k.name)
	}
}

// key is a field of a struct that Object reads.
type key struct {
	name     string
	tag      reflect.StructTag
	position any // points to the field
}

func keysOf(of reflect.Value) []key {
	var keys []key
	for i := range of.NumField() {
		field := of.Type().Field(i)
		if field.Anonymous {
			keys = append(keys, keysOf(of.Field(i))...)
			continue
		}
		keys = append(keys, key{field.Tag.Get("key"), field.Tag, of.Field(i).Addr().Interface()})
	}
	return keys
}

func (k key) has(tag string) bool {
	_, ok := k.tag.Lookup(tag)
	return ok
}

func (k key) list(tag, between string) []string { return strings.Split(k.tag.Get(tag), between) }

func (k key) number(tag string) int {
	number, err := strconv.Atoi(k.tag.Get(tag))
	if err != nil {
		panic(fmt.Sprintf("yamlform: the tag %s of %s: %v", tag, k.name, err))
	}
	return number
}
