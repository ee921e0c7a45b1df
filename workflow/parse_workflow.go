package workflow

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	maxNodes  = 200
	maxEdges  = 1000
	maxFields = 100 // of one mapping of inputs or outputs
	maxChoice = 100 // values of an enum
)

// reservedID is taken by the address of the JSON Schema.
const reservedID = "schema"

// readWorkflow reads the whole file. Expressions are left pending.
func (r *reader) readWorkflow(root *yamlValue) {
	keys := r.mapping(root, "a workflow", "id", "name", "description", "inputs", "nodes", "edges", "outputs")
	r.readID(keys["id"], root.at)
	w := r.workflow
	if w.Name = r.readLine(keys["name"], "name"); w.Name == "" {
		w.Name = w.ID
	}
	w.Description = r.readText(keys["description"], "description")
	r.inputs = r.readFields(keys["inputs"], "input")
	w.Inputs = r.inputs.list
	if nodes := keys["nodes"]; nodes != nil {
		r.readNodes(nodes)
	} else if !root.has("nodes") {
		r.complain(root.at, "a workflow needs nodes; write the key nodes with a step below it, such as draft: {brief: Write a draft.}")
	}
	r.readEdges(keys["edges"])
	w.Outputs = r.readBindings(keys["outputs"], "outputs", site{role: ofRun})
}

func (r *reader) readID(v *yamlValue, top place) {
	id, at := idOfFile(r.file), top
	if v != nil {
		id, at = r.readText(v, "id"), v.at
	}
	switch {
	case v != nil && id == "": // told already
	case !idPattern.MatchString(id):
		r.complain(at, "the workflow's id cannot be %s: ids are %s; write one with the key id, or name the file so", word(id), idForm)
	case id == reservedID:
		r.complain(at, "the workflow's id cannot be %s, which is the address of the JSON Schema; choose another", id)
	}
	r.workflow.ID = id
}

// fieldList are declared fields. Open says that some could not be read, so that nothing can be said of names
// that are not there.
type fieldList struct {
	list []Field
	open bool
}

// readFields reads inputs or outputs; what is "input" or "output".
func (r *reader) readFields(v *yamlValue, what string) fieldList {
	if v == nil {
		return fieldList{}
	}
	before := len(r.list)
	var fields fieldList
	r.names(v, what+"s", maxFields, func(key, value *yamlValue) {
		if r.readName(key, "an "+what) {
			fields.list = append(fields.list, r.readField(key, value, what))
		}
	})
	fields.open = len(r.list) > before
	return fields
}

// readField reads one field: a type, or a mapping that describes it.
func (r *reader) readField(key, v *yamlValue, what string) Field {
	field := Field{Name: key.text}
	switch v.kind {
	case yamlNull:
		r.complain(key.at, "%s %s has no type; write %s: string, or another of %s", what, key.text, key.text, orList(typeNames))
		return field
	case yamlText:
		field.Type = Type(r.readWord(v, "the type of "+key.text, typeNames...))
		return field
	}
	known := []string{"type", "description", "optional", "enum"}
	if what == "input" {
		known = append(known, "default")
	}
	if keys := r.mapping(v, what+" "+key.text, known...); keys != nil {
		r.describeField(&field, key, what, keys)
	}
	return field
}

// describeField reads the long form.
func (r *reader) describeField(field *Field, key *yamlValue, what string, keys map[string]*yamlValue) {
	if keys["type"] == nil && keys["enum"] == nil {
		r.complain(key.at, "%s %s has no type; write type: string, or another of %s", what, key.text, orList(typeNames))
	}
	field.Type = Type(r.readWord(keys["type"], "type", typeNames...))
	if keys["type"] == nil && keys["enum"] != nil {
		field.Type = String
	}
	field.Description = r.readLine(keys["description"], "description")
	field.Optional = r.readBool(keys["optional"], "optional")
	r.readEnum(field, keys["enum"])
	r.readDefault(field, keys["default"])
}

var typeNames = []string{string(String), string(Number), string(Integer), string(Boolean), string(Array), string(Object)}

func (r *reader) readEnum(field *Field, v *yamlValue) {
	if v == nil {
		return
	}
	if field.Type != String && field.Type != "" {
		r.complain(v.at, "enum is for strings, and %s is %s %s; remove one of both", field.Name, article(field.Type), field.Type)
		return
	}
	field.Enum = r.readTexts(v, "enum")
	switch {
	case v.kind == yamlList && len(v.items) == 0:
		r.complain(v.at, "enum allows nothing; write at least one value, or remove the key")
	case len(field.Enum) > maxChoice:
		r.complain(v.at, "enum has %d values, more than the limit of %d", len(field.Enum), maxChoice)
	}
	for i, value := range field.Enum {
		if slices.Contains(field.Enum[:i], value) {
			r.complain(v.at, "enum has %s twice", word(value))
		}
	}
}

func (r *reader) readDefault(field *Field, v *yamlValue) {
	if v == nil || field.Type == "" {
		return
	}
	value, problem := plainValue(v)
	if problem == "" {
		value, problem = field.read(value)
	}
	if problem != "" {
		r.complain(v.at, "the default of %s %s", field.Name, problem)
		return
	}
	field.Default = value
}

// plainValue is a YAML value as JSON's decoder would give it.
func plainValue(v *yamlValue) (value any, problem string) {
	switch v.kind {
	case yamlText:
		return v.text, ""
	case yamlBool:
		return strings.EqualFold(v.text, "true"), ""
	case yamlWhole, yamlNumber:
		return plainNumber(v)
	case yamlList:
		items := []any{}
		for _, item := range v.items {
			value, problem := plainValue(item)
			if problem != "" {
				return nil, problem
			}
			items = append(items, value)
		}
		return items, ""
	case yamlMapping:
		fields := map[string]any{}
		for _, field := range v.fields {
			value, problem := plainValue(field.value)
			if problem != "" {
				return nil, problem
			}
			fields[field.key.text] = value
		}
		return fields, ""
	default:
		return nil, ""
	}
}

func plainNumber(v *yamlValue) (value any, problem string) {
	digits := strings.ReplaceAll(v.text, "_", "")
	if whole, err := strconv.ParseInt(digits, 0, 64); v.kind == yamlWhole && err == nil {
		return float64(whole), ""
	}
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return nil, "is " + word(v.text) + ", which is no number that JSON can hold"
	}
	return number, ""
}

// readBindings reads names with expressions, which stay pending.
func (r *reader) readBindings(v *yamlValue, what string, at site) []Binding {
	if v == nil {
		return nil
	}
	bindings := []Binding{}
	r.names(v, what, maxFields, func(key, value *yamlValue) {
		if r.readName(key, "one of "+what) {
			name := what + "." + key.text
			bindings = append(bindings, Binding{Name: key.text, Value: r.readExpression(value, name, at)})
		}
	})
	return bindings
}
