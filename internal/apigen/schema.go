package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// object is a JSON object whose members keep their order.
type object = rawjson.Object

// schemas makes JSON Schemas of Go types. Named structs and named strings with constants become components.
type schemas struct {
	docs *docs
	// names are the components of types whose Go name is another one; written are the components of types that the
	// document's hand-written part describes, because their JSON is not that of their fields.
	names      map[reflect.Type]string
	written    map[reflect.Type]string
	components map[string]object
	types      map[string]reflect.Type // of the components
	parts      object                  // the hand-written components
}

// newSchemas makes an empty set of schemas.
func newSchemas(root string) *schemas {
	return &schemas{
		docs: &docs{root: root, packages: map[string]*packageDocs{}}, names: names, written: written,
		components: map[string]object{}, types: map[string]reflect.Type{},
	}
}

// with adds members to an object: their names and values, alternately.
func with(o object, members ...any) object {
	for i := 0; i < len(members); i += 2 {
		o.Set(members[i].(string), rawjson.MustMarshal(members[i+1]))
	}
	return o
}

func ref(name string) object {
	return with(nil, "$ref", "#/components/schemas/"+name)
}

// of makes the schema of a type: a reference for one that is a component.
func (s *schemas) of(t reflect.Type) (object, error) {
	if name := s.written[t]; name != "" {
		return ref(name), nil
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return with(nil, "type", "string", "format", "date-time"), nil
	case reflect.TypeFor[json.RawMessage]():
		return object{}, nil
	case reflect.TypeFor[api.Setting]():
		return orNull(with(nil, "type", "string")), nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Struct:
		if alternatives := alternativesOf(t); alternatives != nil {
			return s.anyOf(alternatives)
		}
		if t.Name() == "" {
			return s.structure(t)
		}
		if isStream(t) {
			return s.component(t, s.stream)
		}
		return s.component(t, s.structure)
	case reflect.Slice, reflect.Array:
		items, err := s.of(t.Elem())
		return with(nil, "type", "array", "items", items), err
	case reflect.Map:
		values, err := s.of(t.Elem())
		if len(values) == 0 {
			return with(nil, "type", "object", "additionalProperties", true), err
		}
		return with(nil, "type", "object", "additionalProperties", values), err
	case reflect.String:
		return s.text(t)
	case reflect.Bool:
		return with(nil, "type", "boolean"), nil
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint64, reflect.Uint32:
		return with(nil, "type", "integer"), nil
	case reflect.Float64:
		return with(nil, "type", "number"), nil
	case reflect.Interface:
		return object{}, nil
	}
	return nil, fmt.Errorf("%s has no schema", t)
}

// alternativesOf returns the types that a struct of embedded pointers embeds, of which a value has one; nil for others.
func alternativesOf(t reflect.Type) (found []reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.Anonymous || field.Type.Kind() != reflect.Pointer {
			return nil
		}
		found = append(found, field.Type.Elem())
	}
	return found
}

// text makes the schema of a string: a component for a named one with constants.
func (s *schemas) text(t reflect.Type) (object, error) {
	p, err := s.docs.of(t.PkgPath())
	if err != nil {
		return nil, err
	}
	if len(p.values[t.Name()]) == 0 || t.PkgPath() == "" {
		return with(nil, "type", "string"), nil
	}
	return s.component(t, func(t reflect.Type) (object, error) {
		return s.described(with(nil, "type", "string", "enum", p.values[t.Name()]), t)
	})
}

// component makes the schema of a type once, and returns a reference to it.
func (s *schemas) component(t reflect.Type, make func(reflect.Type) (object, error)) (object, error) {
	name := s.name(t)
	if known, ok := s.types[name]; ok {
		if known != t {
			return nil, fmt.Errorf("%s and %s are both the component %s: name one of them in names", known, t, name)
		}
		return ref(name), nil
	}
	s.types[name] = t
	schema, err := make(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.components[name] = schema
	return ref(name), nil
}

// name is the component of a type. Of a generic type, such as api.List[continuo.Turn], it is TurnList.
func (s *schemas) name(t reflect.Type) string {
	if name := s.names[t]; name != "" {
		return name
	}
	name, argument, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return name
	}
	if data, ok := t.FieldByName("Data"); ok && data.Type.Kind() == reflect.Slice {
		return s.name(data.Type.Elem()) + "List"
	}
	return argument[strings.LastIndex(argument, ".")+1:len(argument)-1] + name
}

// described adds the doc comment of a type.
func (s *schemas) described(schema object, t reflect.Type) (object, error) {
	p, err := s.docs.of(t.PkgPath())
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	if text := p.description(name, p.types[name]); text != "" {
		if rest, ok := strings.CutPrefix(text, name+" "); ok && s.name(t) != "" { // clients know the component, not the Go type
			text = s.name(t) + " " + rest
		}
		schema = with(schema, "description", text)
	}
	return schema, nil
}

// structure makes the schema of a struct from its JSON members.
func (s *schemas) structure(t reflect.Type) (object, error) {
	schema, err := s.described(with(nil, "type", "object"), t)
	if err != nil {
		return nil, err
	}
	var properties object
	var required []string
	form := forms[t]
	if err := s.members(cmp.Or(form.of, t), &properties, &required); err != nil {
		return nil, err
	}
	properties = properties.Without(form.without...)
	required = append(slices.Clone(form.always), required...)
	if len(required) > 0 {
		schema = with(schema, "required", required)
	}
	if properties == nil {
		properties = object{}
	}
	return with(schema, "properties", properties), nil
}

// isStream reports whether a struct lists the events of a stream.
func isStream(t reflect.Type) bool {
	return t.NumField() > 0 && t.Field(0).Tag.Get("event") != ""
}

// stream describes a stream of events, a text: each field of the struct is a kind of events, whose data is a component.
func (s *schemas) stream(t reflect.Type) (object, error) {
	schema, err := s.described(with(nil, "type", "string"), t)
	if err != nil {
		return nil, err
	}
	text, _ := rawjson.String(schema.Get("description"))
	p, err := s.docs.of(t.PkgPath())
	if err != nil {
		return nil, err
	}
	lines := []string{text, "", "The server-sent events and the schemas of their data:", ""}
	var events object // the same for generators of clients
	for i := range t.NumField() {
		field := t.Field(i)
		data, err := s.of(field.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		events = with(events, field.Tag.Get("event"), data)
		text := p.description(t.Name(), p.fields[t.Name()+"."+field.Name])
		line := fmt.Sprintf("- `%s`: `%s`. %s", field.Tag.Get("event"), s.name(field.Type), text)
		lines = append(lines, strings.TrimSpace(line))
	}
	return with(schema, "description", strings.Join(lines, "\n"), "x-events", events), nil
}

// members adds the members of a struct; those of embedded structs are its own.
func (s *schemas) members(t reflect.Type, properties *object, required *[]string) error {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, tagged := field.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case field.Anonymous && name == "":
			of, into := field.Type, required
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			if strings.Contains(options, "omit") { // its members are absent while it is nil
				into = new([]string)
			}
			if err := s.members(of, properties, into); err != nil {
				return err
			}
			continue
		case !tagged || name == "-" || !field.IsExported():
			continue
		}
		optional := strings.Contains(options, "omit") && field.Tag.Get("required") != "true"
		schema, err := s.field(t, field, !optional)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*properties = with(*properties, name, schema)
		if !optional {
			*required = append(*required, name)
		}
	}
	return nil
}

// field makes the schema of a struct's field: of its type, its tags and its doc comment. A pointer to a scalar
// in a member that is always there can be null.
func (s *schemas) field(owner reflect.Type, field reflect.StructField, always bool) (object, error) {
	schema, err := s.of(field.Type)
	if err != nil {
		return nil, err
	}
	if of := encoded[owner.Name()+"."+field.Name]; of != nil {
		if schema, err = s.of(of); err != nil {
			return nil, err
		}
	}
	if known, ok := fields[owner.Name()+"."+field.Name]; ok {
		schema = known
	}
	nullable := always && field.Type.Kind() == reflect.Pointer && field.Type.Elem().Kind() != reflect.Struct
	allValues, err := s.listsAll(field)
	if err != nil {
		return nil, err
	}
	if schema, err = tagged(schema, field, nullable, allValues); err != nil {
		return nil, err
	}
	p, err := s.docs.of(owner.PkgPath())
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(owner.Name(), "[")
	if text := p.description(name, p.fields[name+"."+field.Name]); text != "" {
		schema = with(schema, "description", text)
	}
	return schema, nil
}

// listsAll reports whether a field's tag enum has all constants of the field's type, so that the type's component says it.
func (s *schemas) listsAll(field reflect.StructField) (bool, error) {
	t := field.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	p, err := s.docs.of(t.PkgPath())
	if err != nil || t.PkgPath() == "" {
		return false, err
	}
	return strings.Join(p.values[t.Name()], ",") == field.Tag.Get("enum"), nil
}

// tagged adds what the tags of a field say. AllValues says that the tag enum lists all values of the field's type.
func tagged(schema object, field reflect.StructField, nullable, allValues bool) (object, error) {
	tag := field.Tag
	if name := tag.Get("component"); name != "" { // of a json.RawMessage: a hand-written schema
		schema = ref(name)
	}
	switch kind := tag.Get("type"); kind { // of a json.RawMessage
	case "":
	case "object":
		schema = anyObject()
	case "[]object":
		schema = with(nil, "type", "array", "items", anyObject())
	default:
		return nil, fmt.Errorf("the type %s is unknown", kind)
	}
	if names := tag.Get("enum"); names != "" && !allValues {
		schema = with(nil, "type", "string", "enum", strings.Split(names, ","))
	}
	if value, ok := tag.Lookup("const"); ok {
		return with(nil, "const", json.RawMessage(value)), nil
	}
	if text, ok := tag.Lookup("nullable"); ok {
		nullable = text == "true"
	}
	if nullable {
		schema = orNull(schema)
	}
	limits := strings.FieldsFunc(tag.Get("doc"), func(r rune) bool { return r == ',' })
	for _, name := range []string{"minimum", "maximum", "maxLength"} {
		if text, ok := tag.Lookup(name); ok {
			limits = append(limits, name+"="+text)
		}
	}
	for _, limit := range limits {
		name, text, _ := strings.Cut(limit, "=")
		if number, err := strconv.ParseInt(text, 10, 64); err == nil {
			schema = with(schema, name, number)
		} else {
			schema = with(schema, name, text)
		}
	}
	if pattern := tag.Get("pattern"); pattern != "" {
		schema = with(schema, "pattern", pattern)
	}
	if text, ok := tag.Lookup("default"); ok {
		var value any = text
		if kind, _ := rawjson.String(schema.Get("type")); kind == "integer" || kind == "boolean" {
			value = json.RawMessage(text)
		}
		schema = with(schema, "default", value)
	}
	return schema, nil
}

func anyObject() object { return with(nil, "type", "object", "additionalProperties", true) }

// orNull makes the schema of a value that may be null.
func orNull(schema object) object {
	if kind := schema.Get("type"); kind != nil {
		return with(schema, "type", []json.RawMessage{kind, json.RawMessage(`"null"`)})
	}
	return with(nil, "oneOf", []object{schema, with(nil, "type", "null")})
}
