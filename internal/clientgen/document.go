package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// document is the part of an OpenAPI document that clients are made of, in its order.
type document struct {
	operations []operation
	schemas    []component
}

// component is a named schema.
type component struct {
	name   string
	schema schema
}

// operation is one call.
type operation struct {
	id, method, path     string
	summary, description string
	parameters           []parameter
	// body is the type of the request; nil for none. bodyRequired says that it has a member that is required.
	body         *schema
	bodyRequired bool
	// answer is the type of the answer; nil for none. text says that it is, or may be, a text instead of JSON.
	answer       *schema
	text, stream bool
	events       string // the schema of the stream
}

// parameter is a part of the path, the query or the header.
type parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Schema      schema `json:"schema"`
}

// option is the name under which a method takes a parameter.
func (p parameter) option() string {
	return strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(p.Name), "-", "_"), ".")
}

// schema is a JSON Schema, as far as this API's document uses it.
type schema struct {
	Ref         string          `json:"$ref"`
	Type        types           `json:"type"`
	Description string          `json:"description"`
	Properties  properties      `json:"properties"`
	Required    []string        `json:"required"`
	Items       *schema         `json:"items"`
	Additional  *additional     `json:"additionalProperties"`
	Enum        []string        `json:"enum"`
	Const       json.RawMessage `json:"const"`
	AnyOf       []schema        `json:"anyOf"`
	OneOf       []schema        `json:"oneOf"`
	Events      properties      `json:"x-events"`
}

// name is the component that the schema refers to; "" for none.
func (s schema) name() string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// types are the allowed JSON types: one, or a list.
type types []string

// UnmarshalJSON accepts a string and a list of strings.
func (t *types) UnmarshalJSON(data []byte) error {
	if text, ok := rawjson.String(data); ok {
		*t = types{text}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// additional says what other members an object may have.
type additional struct {
	allowed bool
	schema  schema
}

// UnmarshalJSON accepts a boolean and a schema.
func (a *additional) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &a.allowed) == nil {
		return nil
	}
	a.allowed = true
	return json.Unmarshal(data, &a.schema)
}

// property is a member of an object.
type property struct {
	name   string
	schema schema
}

// properties keep their order.
type properties []property

// UnmarshalJSON reads an object in its order.
func (p *properties) UnmarshalJSON(data []byte) error {
	object, err := rawjson.ParseObject(data)
	if err != nil {
		return err
	}
	for _, field := range object {
		next := property{name: field.Key}
		if err := json.Unmarshal(field.Value, &next.schema); err != nil {
			return fmt.Errorf("%s: %w", field.Key, err)
		}
		*p = append(*p, next)
	}
	return nil
}

// notForClients are operations that no method is made of: the protocol MCP has clients of its own, and / is for people.
var notForClients = []string{"speakMCP", "index"}

func parse(data []byte) (*document, error) {
	var raw struct {
		Components struct {
			Schemas properties `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	d := &document{}
	for _, s := range raw.Components.Schemas {
		d.schemas = append(d.schemas, component(s))
	}
	whole, err := rawjson.ParseObject(data)
	if err != nil {
		return nil, err
	}
	paths, err := rawjson.ParseObject(whole.Get("paths"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		methods, err := rawjson.ParseObject(path.Value)
		if err != nil {
			return nil, err
		}
		for _, method := range methods {
			o, err := parseOperation(method.Value)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", method.Key, path.Key, err)
			}
			o.method, o.path = strings.ToUpper(method.Key), path.Key
			if !slices.Contains(notForClients, o.id) {
				d.operations = append(d.operations, o)
			}
		}
	}
	d.withoutStreamMember()
	return d, nil
}

// content is the schemas of a body by media type.
type content map[string]struct {
	Schema schema `json:"schema"`
}

func parseOperation(data []byte) (operation, error) {
	var raw struct {
		ID          string      `json:"operationId"`
		Summary     string      `json:"summary"`
		Description string      `json:"description"`
		Parameters  []parameter `json:"parameters"`
		RequestBody struct {
			Required bool    `json:"required"`
			Content  content `json:"content"`
		} `json:"requestBody"`
		Responses map[string]struct {
			Content content `json:"content"`
		} `json:"responses"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return operation{}, err
	}
	o := operation{id: raw.ID, summary: raw.Summary, description: raw.Description, parameters: raw.Parameters, bodyRequired: raw.RequestBody.Required}
	if body, ok := raw.RequestBody.Content["application/json"]; ok && !body.Schema.empty() {
		o.body = &body.Schema
	}
	for status, response := range raw.Responses {
		if status[0] != '2' {
			continue
		}
		for media, content := range response.Content {
			switch {
			case media == "text/event-stream":
				o.stream, o.events = true, content.Schema.name()
			case strings.HasSuffix(media, "json"):
				o.answer = &content.Schema
			default:
				o.text = true
			}
		}
	}
	return o, nil
}

// empty reports whether an object has no members.
func (s schema) empty() bool {
	return slices.Contains(s.Type, "object") && len(s.Properties) == 0 && s.Additional != nil && !s.Additional.allowed
}

// withoutStreamMember removes the member stream from the requests of operations that have two methods: the method says it.
func (d *document) withoutStreamMember() {
	for _, o := range d.operations {
		if !o.stream || o.body == nil {
			continue
		}
		for i := range d.schemas {
			if s := &d.schemas[i]; s.name == o.body.name() {
				s.schema.Properties = slices.DeleteFunc(s.schema.Properties, func(p property) bool { return p.name == "stream" })
			}
		}
	}
}

// streams are the schemas of streams that operations have.
func (d *document) streams() []component {
	var all []component
	for _, s := range d.schemas {
		if len(s.schema.Events) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// alsoEvents are streams that carry the events of another one besides, all but its last ones.
var alsoEvents = map[string]string{"RunStream": "EventStream", "CrewStream": "EventStream"}

// events are the events of a stream, each with the stream that its type is named after.
func (d *document) events(stream component) (names []string, own []property) {
	own = stream.schema.Events
	for _, event := range own {
		names = append(names, stream.name+pascal(event.name))
	}
	for _, other := range d.schemas {
		if other.name != alsoEvents[stream.name] {
			continue
		}
		for _, event := range other.schema.Events {
			mine := func(p property) bool { return p.name == event.name }
			if event.name != "done" && event.name != "error" && !slices.ContainsFunc(own, mine) {
				names = append(names, other.name+pascal(event.name))
			}
		}
	}
	return names, own
}

// split returns a call's parameters: those of the path, required ones of the query, and options.
func (o operation) split() (path, query, options []parameter) {
	for _, p := range o.parameters {
		switch {
		case p.In == "path":
			path = append(path, p)
		case p.In == "query" && p.Required:
			query = append(query, p)
		default:
			options = append(options, p)
		}
	}
	return path, query, options
}

func pascal(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// snake turns an operation's id into the form of Python's functions.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		upper := r >= 'A' && r <= 'Z'
		if upper && i > 0 && !(name[i-1] >= 'A' && name[i-1] <= 'Z') {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}

// wrapped breaks a text into lines of at most width characters.
func wrapped(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			if line != "" && len(line)+1+len(word) > width {
				lines, line = append(lines, line), ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

// generated is the head of each file.
const generated = "Code generated by internal/clientgen from server/openapi.json. DO NOT EDIT."
