package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// decodeObject reads a JSON object into a struct. It refuses what encoding/json accepts: unknown members, duplicate members,
// and names in another case. Absent and null are the same.
func decodeObject(data []byte, into any) error {
	target := reflect.ValueOf(into).Elem()
	fields, names := membersOf(target.Type())
	return eachMember(data, func(name string, value json.RawMessage) error {
		index, ok := fields[name]
		if !ok {
			return Refuse(name, "unknown field %q%s", name, suggestion(name, names))
		}
		if err := json.Unmarshal(value, target.Field(index).Addr().Interface()); err != nil {
			return wrongValue(name, err)
		}
		return nil
	})
}

// membersOf returns the indexes of a struct's fields by their JSON names, and the names in order.
func membersOf(t reflect.Type) (fields map[string]int, names []string) {
	fields = map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[name] = i
		names = append(names, name)
	}
	return fields, names
}

// eachMember calls visit for each member of the JSON object that a body must be, until visit fails.
func eachMember(data []byte, visit func(name string, value json.RawMessage) error) error {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return invalidJSON(data, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return Refuse("", "the body must be a JSON object")
	}
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return invalidJSON(data, err)
		}
		name, _ := token.(string)
		if seen[name] {
			return Refuse(name, "the field %q comes twice", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return invalidJSON(data, err)
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
	return nil
}

func invalidJSON(data []byte, err error) error {
	p := &Problem{Status: http.StatusBadRequest, Type: InvalidRequest, Code: "invalid_json", Message: "the body is not valid JSON"}
	var syntax *json.SyntaxError
	switch {
	case len(data) == 0:
		p.Message = "the body is empty: send a JSON object"
	case errors.As(err, &syntax):
		p.Message = fmt.Sprintf("the body is not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())
	}
	return p
}

// wrongValue describes the expected type of a member.
func wrongValue(name string, err error) error {
	var refused *Problem // of a type that reads its JSON itself
	if errors.As(err, &refused) {
		return refused
	}
	wrong, ok := rawjson.AsWrongType(err)
	if !ok {
		return Refuse(name, "%s: %s", name, rawjson.Explain(err))
	}
	if wrong.Field != "" {
		name += "." + wrong.Field
	}
	return wrongType(name, "%s must be %s, not %s", name, wrong.Want, wrong.Got)
}

// oneOf checks a name against the known ones; "" is the default and valid.
func oneOf[T ~string](param string, name T, known ...T) error {
	names := make([]string, len(known))
	for i, k := range known {
		if name == k {
			return nil
		}
		names[i] = string(k)
	}
	if name == "" {
		return nil
	}
	return Refuse(param, "unknown %s %q; allowed: %s", param, name, joined(names))
}

func joined(names []string) string { return strings.Join(names, ", ") }
