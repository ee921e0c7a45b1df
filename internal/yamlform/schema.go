package yamlform

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Schema describes a kind of file for editors. Its JSON is generated from the structs that [Reader.Object] reads files
// into, so that the two agree; what no tag can say, such as conditions between keys, stands beside it as JSON.
type Schema struct {
	Def
	ID, Title string
	// Defs are the definitions that tags name, besides text, name, id, patterns and policy.
	Defs []Def
}

// Def is a part of a schema.
type Def struct {
	Name string
	Help string
	// Of is a pointer to a struct that Object reads; nil: JSON is the whole definition.
	Of any
	// Only selects, of the keys with the tag only, those with this value.
	Only string
	// JSON has the members that Of does not say, separated by commas.
	JSON string
}

// common are the definitions of all kinds of files.
func common() []Def {
	return []Def{
		{Name: "text", JSON: `"type": "string", "pattern": "\\S"`},
		{Name: "name", JSON: `"type": "string", "pattern": ` + asJSON(namePattern.String())},
		{Name: "id", JSON: `"type": "string", "pattern": ` + asJSON(idPattern.String()) + `, "not": {"const": ` + asJSON(reservedID) + `}`},
		{
			Name: "patterns", Help: "Names of tools, in which * matches any run of characters, such as fs.read or github.*.",
			JSON: `"type": "array", "items": {"type": "string", "pattern": "^\\s*[A-Za-z0-9._/:*-]{1,200}\\s*$"}`,
		},
		{Name: "policy", Of: &toolsFile{}},
	}
}

// JSON is the JSON Schema (draft 2020-12), with a line for each member and each key.
func (s Schema) JSON() []byte {
	var defs []string
	for _, def := range slices.Concat(common(), s.Defs) {
		defs = append(defs, asJSON(def.Name)+": "+lines("    ", def.members("      ")))
	}
	all := []string{`"$schema": "https://json-schema.org/draft/2020-12/schema"`, `"$id": ` + asJSON(s.ID), `"title": ` + asJSON(s.Title)}
	all = append(all, s.members("  ")...)
	out := []byte(lines("", append(all, `"$defs": `+lines("  ", defs))) + "\n")
	if !json.Valid(out) {
		panic("yamlform: the schema of " + s.Title + " is no JSON")
	}
	return out
}

// lines is an object with its members, whose lines begin at indent.
func lines(indent string, members []string) string {
	if len(members) == 1 {
		return "{ " + members[0] + " }"
	}
	return "{\n" + indent + "  " + strings.Join(members, ",\n"+indent+"  ") + "\n" + indent + "}"
}

// members are the members of the definition's object, whose lines begin at indent.
func (d Def) members(indent string) []string {
	var all []string
	if d.Help != "" {
		all = append(all, `"description": `+asJSON(d.Help))
	}
	if d.Of != nil {
		all = append(all, d.object(indent)...)
	}
	if d.JSON != "" {
		all = append(all, d.JSON)
	}
	return all
}

// object are the members that the struct's tags say.
func (d Def) object(indent string) []string {
	all := []string{`"type": "object"`}
	var required, properties []string
	for _, k := range keysOf(reflect.ValueOf(d.Of).Elem()) {
		if only := k.tag.Get("only"); only != "" && only != d.Only {
			continue
		}
		if k.has("required") {
			required = append(required, k.name)
		}
		property := append([]string{`"description": ` + asJSON(k.tag.Get("help"))}, k.schema()...)
		properties = append(properties, asJSON(k.name)+`: { `+strings.Join(property, ", ")+` }`)
	}
	if required != nil {
		all = append(all, `"required": `+asJSON(required))
	}
	return append(all, `"additionalProperties": false`, `"properties": `+lines(indent, properties))
}

// schema are the members that describe a key's value.
func (k key) schema() []string {
	switch k.position.(type) {
	case *Value[int]:
		return k.bounds([]string{`"type": "integer"`}, "minimum", "maximum")
	case *Value[bool]:
		return []string{`"type": "boolean"`}
	case *Value[[]string]:
		return []string{`"type": "array"`, `"items": {` + references("text") + `}`}
	case *Several:
		return k.several()
	}
	if k.tag.Get("form") == "any" {
		return nil
	}
	if form := k.tag.Get("form"); form != "" && form != "line" {
		return []string{references(k.list("form", "|")...)}
	}
	if k.has("enum") {
		return []string{`"enum": ` + asJSON(k.list("enum", ","))}
	}
	return []string{references("text")}
}

// several are the members that describe a list, or a mapping of names.
func (k key) several() []string {
	if k.has("each") {
		return k.bounds([]string{
			`"type": "object"`, `"propertyNames": {` + references("name") + `}`,
			`"additionalProperties": {` + references(k.list("each", "|")...) + `}`,
		}, "minProperties", "maxProperties")
	}
	members := []string{`"type": "array"`, `"items": {` + references(k.list("list", "|")...) + `}`}
	if k.has("unique") {
		members = append(members, `"uniqueItems": true`)
	}
	return k.bounds(members, "minItems", "maxItems")
}

func (k key) bounds(members []string, least, most string) []string {
	if k.has("min") {
		members = append(members, asJSON(least)+": "+k.tag.Get("min"))
	}
	return append(members, asJSON(most)+": "+k.tag.Get("max"))
}

// references is the member that refers to one of several definitions.
func references(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, `"$ref": `+asJSON("#/$defs/"+name))
	}
	if len(all) == 1 {
		return all[0]
	}
	return `"anyOf": [{` + strings.Join(all, "}, {") + `}]`
}

func asJSON(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // texts and lists of texts alone are passed
	}
	return strings.TrimSuffix(out.String(), "\n")
}
