package api

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/task"
)

// Arguments reads an input type from one JSON object, for protocols that call a function with named arguments. Each input
// has the name in its tag arg, else the name that it has in a request. All limits are those of the tags. Absent and null are
// the same. Of a type with a field body:"raw", that field takes all arguments that belong to the body.
type Arguments struct {
	binding *binding
	names   []string // of all arguments, in order
}

// ArgumentsOf makes the reader of an input type.
func ArgumentsOf(in reflect.Type) *Arguments {
	a := &Arguments{binding: bind(in)}
	for _, input := range a.binding.inputs {
		a.names = append(a.names, input.Argument())
	}
	return a
}

// Inputs describes the arguments, in order.
func (a *Arguments) Inputs() []Input { return a.binding.inputs }

// Argument is the name of an input among the arguments of a call.
func (i Input) Argument() string {
	if name := i.Field.Tag.Get("arg"); name != "" {
		return name
	}
	return i.Name
}

// Required reports whether a call must have the argument.
func (i Input) Required() bool {
	if i.In == InBody && !strings.Contains(i.Field.Tag.Get(InBody), ",omit") {
		return true
	}
	return i.In == InPath || i.Field.Tag.Get("required") == "true"
}

// NameOf returns the name of the argument that is called param in a request; param itself if there is none.
func (a *Arguments) NameOf(param string) string {
	for i, input := range a.binding.inputs {
		if input.Name == param {
			return a.names[i]
		}
	}
	return param
}

// Decode reads the arguments of a call: a pointer to the input type. Unknown names are returned if anyName is set, and
// refused otherwise. Its errors have the names of arguments.
func (a *Arguments) Decode(raw json.RawMessage, anyName bool) (in any, unknown []string, err error) {
	object, err := argumentsIn(raw)
	if err != nil {
		return nil, nil, err
	}
	for _, field := range object {
		if slices.Contains(a.names, field.Key) {
			continue
		}
		if unknown = append(unknown, field.Key); !anyName {
			name := Bounded(field.Key)
			return nil, nil, Refuse(name, "unknown argument %q%s", name, suggestion(name, a.names))
		}
	}
	into := reflect.New(a.binding.of)
	if err := a.fill(into.Elem(), object); err != nil {
		return nil, nil, err
	}
	if a.binding.raw != nil {
		body := rawjson.MustMarshal(object.Without(unknown...).Without(a.outside()...))
		into.Elem().FieldByIndex(a.binding.raw).SetBytes(body)
	}
	return into.Interface(), unknown, nil
}

// Check checks what the tags of an input that Decode returned cannot say. Its errors have the names of a request.
func (a *Arguments) Check(in any) error { return a.binding.check(reflect.ValueOf(in).Elem()) }

// argumentsIn splits the object that the arguments of a call must be; without arguments it is empty.
func argumentsIn(raw json.RawMessage) (rawjson.Object, error) {
	if rawjson.IsNull(raw) {
		return nil, nil
	}
	object, err := rawjson.ParseObject(raw)
	switch {
	case errors.Is(err, rawjson.ErrNotObject):
		return nil, wrongType("", "the arguments must be an object")
	case err != nil:
		return nil, wrongType("", "the arguments are not valid JSON: %s", err)
	}
	return object, nil
}

// wrongType refuses a value that has another type than required.
func wrongType(param, format string, args ...any) *Problem {
	p := Refuse(param, format, args...)
	p.Fault = task.TypeError
	return p
}

// outside lists the arguments that are not part of the body.
func (a *Arguments) outside() (names []string) {
	for i, input := range a.binding.inputs {
		if input.In != InBody {
			names = append(names, a.names[i])
		}
	}
	return names
}

// fill sets the fields that the arguments are read into, one by one.
func (a *Arguments) fill(into reflect.Value, object rawjson.Object) error {
	for i, input := range a.binding.inputs {
		if input.In == InBody && a.binding.raw != nil {
			continue // the raw body has it
		}
		if err := input.readArgument(a.names[i], object.Get(a.names[i]), into.FieldByIndex(input.index)); err != nil {
			return err
		}
	}
	return nil
}

// readArgument sets a field to the value of an argument; nil and null are an absent one.
func (i *Input) readArgument(name string, value json.RawMessage, field reflect.Value) error {
	named := *i
	named.Name = name // for errors
	switch {
	case rawjson.IsNull(value) && i.Required():
		return missing(name)
	case rawjson.IsNull(value) && i.Default != "":
		return named.set(field, i.Default)
	case rawjson.IsNull(value):
		return nil
	}
	if h, ok := field.Addr().Interface().(headerValue); ok {
		text, ok := rawjson.String(value)
		if !ok {
			return wrongType(name, "%s must be a string", name)
		}
		return h.fromHeader(name, []string{text})
	}
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch field.Kind() {
	case reflect.String:
		return named.setText(field, value)
	case reflect.Int, reflect.Int64:
		return named.setInteger(field, value)
	}
	if i.Field.Tag.Get("type") == "object" && value[0] != '{' {
		return wrongType(name, "%s must be an object", name)
	}
	if err := json.Unmarshal(value, field.Addr().Interface()); err != nil {
		return wrongValue(name, err)
	}
	return nil
}

// missing refuses a call without a required argument.
func missing(name string) error {
	p := Refuse(name, "missing required field '%s'", name)
	p.Fault = task.MissingField
	return p
}

// setText sets a field to a string.
func (i *Input) setText(field reflect.Value, value json.RawMessage) error {
	text, ok := rawjson.String(value)
	switch {
	case !ok:
		return wrongType(i.Name, "%s must be a string", i.Name)
	case i.Required() && strings.TrimSpace(text) == "":
		return missing(i.Name)
	}
	field.SetString(text)
	return i.checkText(text)
}

// setInteger sets a field to an integer within the limits. Like JSON Schema, it accepts 2.0 and 2e3.
func (i *Input) setInteger(field reflect.Value, value json.RawMessage) error {
	var number json.Number
	if value[0] == '"' || json.Unmarshal(value, &number) != nil {
		return wrongType(i.Name, "%s must be a whole number", i.Name)
	}
	exact, err := number.Int64()
	if err != nil {
		float, _ := number.Float64()
		if exact = int64(float); float < -maxSeq || float > maxSeq || float != float64(exact) {
			exact = i.least - 1
		}
	}
	if exact < i.least || exact > i.most {
		return Refuse(i.Name, "%s must be a whole number from %d to %d, not %s", i.Name, i.least, i.most, Bounded(number.String()))
	}
	field.SetInt(exact)
	return nil
}
