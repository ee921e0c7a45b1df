package rawjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// WrongType is a value whose type is not that of its field, in words for people.
type WrongType struct {
	Field string // its path, such as "round.usage.input_tokens"; "" for the whole
	Want  string // such as "a whole number"
	Got   string // such as "a string"
}

// AsWrongType returns what an error of encoding/json says of a value of the wrong type; ok is false for any other error.
func AsWrongType(err error) (wrong WrongType, ok bool) {
	found, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return wrong, false
	}
	return WrongType{found.Field, wantedValue(found.Type), foundValue(found.Value)}, true
}

// wantedValue names the JSON value that a Go type is read from.
func wantedValue(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "an object"
	}
}

// foundValue is what encoding/json calls a value.
func foundValue(value string) string {
	switch value {
	case "string", "number":
		return "a " + value
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	}
	return "the " + value // "number 1.5"
}

// Explain says in words what is wrong with JSON that could not be decoded.
func Explain(err error) string {
	if wrong, ok := AsWrongType(err); ok {
		if wrong.Field == "" {
			return fmt.Sprintf("it must be %s, not %s", wrong.Want, wrong.Got)
		}
		return fmt.Sprintf("field %s must be %s, not %s", wrong.Field, wrong.Want, wrong.Got)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is not valid JSON at byte %d: %s", syntax.Offset, syntax)
	}
	if wrong, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Sprintf("a time must be as in 2026-11-01T08:00:00Z, not %q", wrong.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// ExplainMember says what is wrong with an object that could not be decoded, by the first of its members that cannot be decoded
// alone. Err is the error of the whole, for an object whose members all can.
func ExplainMember(object Object, err error, decode func(member []byte) error) string {
	for _, field := range object {
		alone := decode(MustMarshal(Object{field}))
		if alone == nil {
			continue
		}
		if wrong, ok := AsWrongType(alone); ok && (wrong.Field == field.Key || strings.HasPrefix(wrong.Field, field.Key+".")) {
			return Explain(alone)
		}
		return fmt.Sprintf("field %s: %s", field.Key, Explain(alone))
	}
	return Explain(err)
}
