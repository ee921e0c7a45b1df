package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// SchemaName is the name of the file with the JSON Schema, which init writes beside a settings file.
const SchemaName = "continuo.schema.json"

// SchemaLine is the first line of a settings file with its schema beside it, by which editors find the schema.
const SchemaLine = "# yaml-language-server: $schema=" + SchemaName + "\n"

// node is a part of a JSON Schema, with its members in the order of a reader.
type node struct {
	Schema      string         `json:"$schema,omitempty"`
	ID          string         `json:"$id,omitempty"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description,omitempty"`
	Type        any            `json:"type,omitempty"`
	Items       *node          `json:"items,omitempty"`
	Properties  *properties    `json:"properties,omitempty"`
	Additional  any            `json:"additionalProperties,omitempty"` // a *node or false
	AnyOf       []*node        `json:"anyOf,omitempty"`
	More        map[string]any `json:"-"`
}

// MarshalJSON adds the members of More.
func (n *node) MarshalJSON() ([]byte, error) {
	type plain node
	text, err := json.Marshal((*plain)(n))
	if err != nil || len(n.More) == 0 {
		return text, err
	}
	more, err := json.Marshal(n.More)
	if len(text) > 2 {
		text = append(text[:len(text)-1], ',')
		more = more[1:]
	} else {
		text = nil
	}
	return append(text, more...), err
}

// properties are the members of an object in the order of the settings.
type properties struct {
	names []string
	of    map[string]*node
}

func (p *properties) at(name string) *node {
	if p.of == nil {
		p.of = map[string]*node{}
	}
	if p.of[name] == nil {
		p.names, p.of[name] = append(p.names, name), &node{}
	}
	return p.of[name]
}

// MarshalJSON is part of json.Marshaler.
func (p *properties) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	for i, name := range p.names {
		key, _ := json.Marshal(name) // a text
		value, err := json.Marshal(p.of[name])
		if err != nil {
			return nil, err
		}
		text.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		text.Write(key)
		text.WriteByte(':')
		text.Write(value)
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// section is an object of settings; it may be empty, where all below it is commented out.
func (n *node) section() *properties {
	if n.Properties == nil {
		n.Type, n.Properties, n.Additional = []string{"object", "null"}, &properties{}, false
	}
	return n.Properties
}

// JSONSchema is the JSON Schema (draft 2020-12) of a settings file, for editors: its keys, with what they mean, the types and
// bounds of their values, and what an entry of a group must have. Load checks more than that.
func JSONSchema() []byte {
	root := &node{
		Schema: "https://json-schema.org/draft/2020-12/schema", ID: "https://github.com/continuo-log/continuo/continuo.schema.json",
		Title: "Settings of Continuo (continuo.yaml)",
	}
	root.section()
	add(root, binder{}.settings("", &Config{}))
	for _, g := range groups {
		entry := &node{}
		entry.section()
		add(entry, binder{fileOnly: true}.settings("", g.begin("NAME")))
		g.needs.schema(entry)
		if g.key == "agents" { // a list of names is short for a policy
			tools := entry.Properties.at("tools")
			policy := *tools
			*tools = node{AnyOf: []*node{&policy, {Type: "array", Items: &node{Type: "string"}}}}
		}
		at := root
		for part := range strings.SplitSeq(g.key, ".") {
			at = at.section().at(part)
		}
		at.Type, at.Description, at.Additional = []string{"object", "null"}, strings.ReplaceAll(g.note, "\n", " "), entry
	}
	text, err := json.Marshal(root)
	var indented bytes.Buffer
	if err == nil {
		err = json.Indent(&indented, text, "", "  ")
	}
	if err != nil {
		panic("config: " + err.Error()) // the schema has texts and numbers only
	}
	indented.WriteByte('\n')
	return indented.Bytes()
}

// add puts settings into an object.
func add(root *node, rows table) {
	for _, row := range rows {
		at := root
		parts := strings.Split(row.key, ".")
		for _, part := range parts {
			at = at.section().at(part)
		}
		*at = *row.schema()
	}
}

// schema describes a setting. A text takes whatever YAML takes for one; numbers are no texts.
func (s *setting) schema() *node {
	def := s.def
	if s.phrase != "" {
		def = s.phrase
	}
	n := &node{Description: s.doc + " Allowed: " + s.value.allowed + ".", More: s.value.schema}
	if def != "" {
		n.Description += " Default: " + def + "."
	}
	if n.More["enum"] != nil || n.More["type"] != nil {
		return n
	}
	switch takes := s.value.takes; {
	case slices.Contains(takes, yamltree.Mapping):
		n.Type, n.Additional = "object", &node{Type: "string"}
	case slices.Contains(takes, yamltree.List):
		n.Type, n.Items = "array", &node{Type: "string"}
	case slices.Contains(takes, yamltree.Number):
		n.Type = "number"
	case slices.Contains(takes, yamltree.Whole):
		n.Type = "integer"
	case slices.Contains(takes, yamltree.Bool):
		n.Type = "boolean"
	default:
		n.Type = "string"
	}
	return n
}

// enumSchema lists values; true and false are texts in settings, which YAML reads as its own.
func enumSchema(values []string, mayBeEmpty bool) map[string]any {
	var all []any
	for _, value := range values {
		if value == "true" || value == "false" {
			all = append(all, value == "true")
		}
		all = append(all, value)
	}
	if mayBeEmpty {
		all = append(all, "")
	}
	return map[string]any{"enum": all}
}
