package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/mcpserver"
)

// document makes the OpenAPI document: the hand-written head and schemas, the paths of all operations, the answers that
// they share, and the schemas of their types. A schema that is both hand-written and generated is an error.
func (s *schemas) document(written []byte, operations []api.Operation, shared map[string]api.Answer) (object, error) {
	text, err := yaml.YAMLToJSON(written)
	if err != nil {
		return nil, err
	}
	head, err := rawjson.ParseObject(text)
	if err != nil {
		return nil, err
	}
	components, err := rawjson.ParseObject(head.Get("components"))
	if err != nil {
		return nil, err
	}
	handwritten, err := rawjson.ParseObject(components.Get("schemas"))
	if err != nil {
		return nil, err
	}
	s.parts = handwritten
	paths, err := s.paths(operations, head.Get("tags"))
	if err != nil {
		return nil, err
	}
	answers, err := s.shared(operations, shared)
	if err != nil {
		return nil, err
	}
	all, err := s.merge(handwritten)
	if err != nil {
		return nil, err
	}
	components = with(components, "responses", answers, "schemas", all)
	return with(head, "paths", paths, "components", components), nil
}

// paths describes all operations. Tags are those that the head of the document describes.
func (s *schemas) paths(operations []api.Operation, tags json.RawMessage) (paths object, err error) {
	var known []struct{ Name string }
	if err := json.Unmarshal(tags, &known); err != nil {
		return nil, fmt.Errorf("tags: %w", err)
	}
	for _, o := range operations {
		if !slices.Contains(known, struct{ Name string }{o.Tag}) {
			return nil, fmt.Errorf("%s: the tag %q is not described", o.ID, o.Tag)
		}
		path, method := strings.TrimSuffix(o.Path, "{$}"), strings.ToLower(o.Method)
		var item object
		if paths.Get(path) != nil {
			if item, err = rawjson.ParseObject(paths.Get(path)); err != nil {
				return nil, err
			}
		}
		if item.Get(method) != nil {
			return nil, fmt.Errorf("%s: %s %s is in the table twice", o.ID, o.Method, path)
		}
		shown, err := s.operation(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.ID, err)
		}
		paths = with(paths, path, with(item, method, shown))
	}
	return paths, nil
}

// shared describes the answers that operations refer to by name.
func (s *schemas) shared(operations []api.Operation, all map[string]api.Answer) (answers object, err error) {
	for _, o := range operations {
		for _, answer := range o.Answers {
			if _, ok := all[answer.Ref]; !ok && answer.Ref != "" {
				return nil, fmt.Errorf("%s: there is no shared answer %s", o.ID, answer.Ref)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		response, err := s.response(all[name], nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		answers = with(answers, name, response)
	}
	return answers, nil
}

// merge adds the components to the hand-written ones, in the order of their names.
func (s *schemas) merge(written object) (object, error) {
	all := slices.Clone(written)
	for name, schema := range s.components {
		if written.Get(name) != nil {
			return nil, fmt.Errorf("the schema %s is hand-written, and generated from %s", name, s.types[name])
		}
		all = with(all, name, schema)
	}
	slices.SortFunc(all, func(a, b rawjson.Field) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// operation describes an operation.
func (s *schemas) operation(o api.Operation) (object, error) {
	p, err := s.docs.of(reflect.TypeFor[api.Service]().PkgPath())
	if err != nil {
		return nil, err
	}
	first, size := utf8.DecodeRuneInString(o.Summary)
	summary := string(unicode.ToUpper(first)) + o.Summary[size:]
	shown := with(nil, "tags", []string{o.Tag}, "operationId", o.ID, "summary", summary)
	if text := cmp.Or(o.Description, p.description("", afterFirst(p.fields["Service."+methodName(o.ID)]))); text != "" {
		shown = with(shown, "description", text)
	}
	if o.Public {
		shown = with(shown, "security", []object{})
	}
	parameters, err := s.parameters(o)
	if err != nil {
		return nil, err
	}
	if len(parameters) > 0 {
		shown = with(shown, "parameters", parameters)
	}
	if shown, err = s.requestBody(shown, o); err != nil {
		return nil, err
	}
	responses, err := s.responses(o)
	return with(shown, "responses", responses), err
}

func methodName(id string) string { return strings.ToUpper(id[:1]) + id[1:] }

func (s *schemas) parameters(o api.Operation) ([]object, error) {
	var list []object
	for _, input := range o.Inputs() {
		if input.In == api.InBody || input.Field.Tag.Get("hidden") != "" {
			continue
		}
		schema, err := s.field(input.Owner, input.Field, false)
		if err != nil {
			return nil, err
		}
		parameter := with(nil, "name", input.Name, "in", input.In)
		if input.In == api.InPath || input.Field.Tag.Get("required") == "true" {
			parameter = with(parameter, "required", true)
		}
		if strings.HasSuffix(input.Name, ".") { // a prefix
			parameter = with(parameter, "style", "form", "explode", true)
		}
		if text := schema.Get("description"); text != nil {
			parameter.Set("description", text)
		}
		list = append(list, with(parameter, "schema", schema.Without("description")))
	}
	return list, nil
}

// requestBody adds the body: the members of the input with the tag json, or what the operation says of its raw body.
func (s *schemas) requestBody(shown object, o api.Operation) (object, error) {
	in, _ := o.Types()
	if o.Body != nil {
		content, err := s.content(o.Body, nil)
		return with(shown, "requestBody", with(nil, "required", true, "content", content)), err
	}
	isBody := func(i api.Input) bool { return i.In == api.InBody }
	if !slices.ContainsFunc(o.Inputs(), isBody) {
		if _, empty := in.FieldByName("EmptyBody"); empty {
			nothing := with(nil, "type", "object", "additionalProperties", false)
			shown = with(shown, "requestBody", with(nil, "content", with(nil, api.JSON, with(nil, "schema", nothing))))
		}
		return shown, nil
	}
	in = bodyOf(in)
	schema, err := s.of(in)
	if err != nil {
		return nil, err
	}
	var body object
	if o.NeedsBody || s.components[s.name(in)].Get("required") != nil {
		body = with(body, "required", true)
	}
	content := with(nil, "schema", schema)
	if o.Example != "" {
		content = with(content, "example", json.RawMessage(o.Example))
	}
	return with(shown, "requestBody", with(body, "content", with(nil, api.JSON, content))), nil
}

// bodyOf returns the embedded struct that has all members of an input's body; the input itself where there is none.
func bodyOf(t reflect.Type) reflect.Type {
	var found []reflect.Type
	for i := range t.NumField() {
		switch field := t.Field(i); {
		case field.Anonymous && hasMembers(field.Type):
			found = append(found, field.Type)
		case field.Tag.Get("json") != "":
			return t
		}
	}
	if len(found) != 1 {
		return t
	}
	return bodyOf(found[0])
}

func hasMembers(t reflect.Type) bool {
	for i := range t.NumField() {
		if field := t.Field(i); field.Tag.Get("json") != "" || field.Anonymous && hasMembers(field.Type) {
			return true
		}
	}
	return false
}

func (s *schemas) responses(o api.Operation) (object, error) {
	_, out := o.Types()
	var all object
	hasDefault := false
	for _, answer := range o.Answers {
		status := "default"
		if answer.Status != 0 {
			status = strconv.Itoa(answer.Status)
		}
		hasDefault = hasDefault || answer.Status == 0
		if answer.Ref != "" {
			all = with(all, status, with(nil, "$ref", "#/components/responses/"+answer.Ref))
			continue
		}
		response, err := s.response(answer, out)
		if err != nil {
			return nil, err
		}
		all = with(all, status, response)
	}
	if !hasDefault {
		all = with(all, "default", with(nil, "$ref", "#/components/responses/Error"))
	}
	return all, nil
}

func (s *schemas) response(answer api.Answer, out reflect.Type) (object, error) {
	response := with(nil, "description", answer.Description)
	content, err := s.answerContent(answer, out)
	if err == nil && content != nil {
		response = with(response, "content", content)
	}
	return response, err
}

func (s *schemas) answerContent(answer api.Answer, out reflect.Type) (object, error) {
	switch {
	case answer.Media != nil:
		return s.content(answer.Media, out)
	case answer.Status >= 400 || answer.Status == 0:
		return s.content([]api.Media{{Type: api.JSON, Schema: reflect.TypeFor[api.Error]()}}, nil)
	case out == reflect.TypeFor[api.None](), answer.Status == http.StatusNoContent:
		return nil, nil
	}
	return s.content([]api.Media{{Type: api.JSON, Schema: out}}, out)
}

func (s *schemas) content(media []api.Media, out reflect.Type) (object, error) {
	var content object
	for _, m := range media {
		schema := with(nil, "type", "string")
		var err error
		switch {
		case m.AnyOf != nil:
			schema, err = s.anyOf(m.AnyOf)
		case m.Schema != nil:
			schema, err = s.of(m.Schema)
		case m.Type == api.JSON && out != nil:
			schema, err = s.of(out)
		}
		if err != nil {
			return nil, err
		}
		content = with(content, m.Type, with(nil, "schema", schema))
	}
	return content, nil
}

func (s *schemas) anyOf(types []reflect.Type) (object, error) {
	all := make([]object, len(types))
	for i, t := range types {
		var err error
		if all[i], err = s.of(t); err != nil {
			return nil, err
		}
	}
	return with(nil, "anyOf", all), nil
}

// generate returns the generated files, by their paths below the root folder.
func generate(root string) (map[string][]byte, error) {
	written, err := os.ReadFile(filepath.Join(root, "server", "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	s := newSchemas(root)
	document, err := s.document(written, (&api.Service{}).Operations(), api.SharedAnswers())
	if err != nil {
		return nil, err
	}
	tools, err := s.tools(mcpserver.Tools())
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"server/openapi.json":    append(pretty(document.Raw(), ""), '\n'),
		"mcpserver/schemas.json": append(pretty(tools.Raw(), ""), '\n'),
	}, nil
}
