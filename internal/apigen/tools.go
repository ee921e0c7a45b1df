package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/mcpserver"
)

// tools makes the schemas of all tools and of their errors. They have no references, which clients follow badly: each
// component is written where it is used.
func (s *schemas) tools(all []mcpserver.Tool) (object, error) {
	var list object
	for _, tool := range all {
		input, err := s.input(tool)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tool.Name, err)
		}
		output, err := s.of(tool.Output)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tool.Name, err)
		}
		list = with(list, tool.Name, with(nil, "input", input, "output", output))
	}
	failure, err := s.of(mcpserver.FailureType())
	if err != nil {
		return nil, err
	}
	inlined, err := s.inline(with(nil, "failure", failure, "tools", list).Raw(), nil)
	if err != nil {
		return nil, err
	}
	return rawjson.ParseObject(inlined)
}

// input makes the schema of a tool's arguments.
func (s *schemas) input(tool mcpserver.Tool) (object, error) {
	var properties object
	required := []string{}
	for _, input := range tool.Arguments.Inputs() {
		schema, ok := arguments[input.Owner.Name()+"."+input.Field.Name]
		if !ok {
			var err error
			if schema, err = s.field(input.Owner, input.Field, false); err != nil {
				return nil, err
			}
		}
		properties = with(properties, input.Argument(), schema)
		if input.Required() {
			required = append(required, input.Argument())
		}
	}
	schema := with(nil, "type", "object", "properties", properties)
	if len(required) > 0 {
		schema = with(schema, "required", required)
	}
	return with(schema, "additionalProperties", tool.AnyName), nil
}

// inline replaces the references in a value by the components, whose names lead to it in within.
func (s *schemas) inline(value json.RawMessage, within []string) (json.RawMessage, error) {
	switch value[0] {
	case '[':
		items, err := rawjson.ParseList(value)
		for i := 0; err == nil && i < len(items); i++ {
			items[i], err = s.inline(items[i], within)
		}
		return rawjson.MustMarshal(items), err
	case '{':
		schema, err := rawjson.ParseObject(value)
		if err != nil {
			return nil, err
		}
		if ref, ok := rawjson.String(schema.Get("$ref")); ok {
			name := ref[strings.LastIndex(ref, "/")+1:]
			if schema, err = s.expanded(name, schema.Without("$ref"), within); err != nil {
				return nil, err
			}
			within = append(slices.Clone(within), name)
		}
		for i := range schema {
			if schema[i].Value, err = s.inline(schema[i].Value, within); err != nil {
				return nil, err
			}
		}
		return rawjson.MustMarshal(schema), nil
	}
	return value, nil
}

// expanded is a component with the members that a reference to it has besides. The doc comment of a type is left out: it is
// for readers of the document, where the type has a name.
func (s *schemas) expanded(name string, beside object, within []string) (object, error) {
	var schema object
	switch generated := s.components[name]; {
	case slices.Contains(within, name):
		return nil, fmt.Errorf("the component %s contains itself", name)
	case slices.Contains(opaque, name):
		schema = anyObject()
	case generated != nil:
		schema = generated.Without("description")
	default:
		var err error
		if schema, err = rawjson.ParseObject(s.parts.Get(name)); err != nil {
			return nil, fmt.Errorf("the component %s: %w", name, err)
		}
	}
	for _, member := range beside {
		schema.Set(member.Key, member.Value)
	}
	return schema, nil
}
