package workflow

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
)

const (
	maxNodes  = 200
	maxEdges  = 1000
	maxFields = 100 // of one mapping of inputs or outputs
	maxChoice = 100 // values of an enum
)

// readWorkflow reads the whole file. Expressions remain pending.
func (r *reader) readWorkflow(root *yamltree.Node) {
	keys := r.Mapping(root, "a workflow", "id", "name", "description", "inputs", "nodes", "edges", "outputs", "retry")
	w := r.workflow
	w.ID = r.ID(keys["id"], root.At, "workflow")
	if w.Name = r.Line(keys["name"], "name"); w.Name == "" {
		w.Name = w.ID
	}
	w.Description = r.Text(keys["description"], "description")
	r.retry = r.readRetry(keys["retry"], Retry{defaultRetryFor, defaultRetryMax})
	r.inputs = r.readFields(keys["inputs"], "input")
	w.Inputs = r.inputs.list
	if nodes := keys["nodes"]; nodes != nil {
		r.readNodes(nodes)
	} else if !root.Has("nodes") {
		r.Complain(root.At, "a workflow needs nodes; write the key nodes with a step below it, such as draft: {brief: Write a draft.}")
	}
	r.readEdges(keys["edges"])
	w.Outputs = r.readBindings(keys["outputs"], "outputs", site{role: ofRun})
}

// fieldList are declared fields. Open says that some could not be read, so that an unknown name is no error.
type fieldList struct {
	list []Field
	open bool
}

// readFields reads inputs or outputs; what is "input" or "output".
func (r *reader) readFields(v *yamltree.Node, what string) fieldList {
	if v == nil {
		return fieldList{}
	}
	before := r.Complaints()
	var fields fieldList
	r.Names(v, what+"s", maxFields, func(key, value *yamltree.Node) {
		if r.Name(key, "an "+what) {
			fields.list = append(fields.list, r.readField(key, value, what))
		}
	})
	fields.open = r.Complaints() > before
	return fields
}

// readField reads one field: a type, or a mapping that describes it.
func (r *reader) readField(key, v *yamltree.Node, what string) Field {
	field := Field{Name: key.Text}
	switch v.Kind {
	case yamltree.Null:
		r.Complain(key.At, "%s %s has no type; write %s: string, or another of %s", what, key.Text, key.Text, yamlform.OrList(typeNames))
		return field
	case yamltree.Text:
		field.Type = Type(r.OneOf(v, "the type of "+key.Text, typeNames...))
		return field
	}
	known := []string{"type", "description", "optional", "enum"}
	if what == "input" {
		known = append(known, "default")
	}
	if keys := r.Mapping(v, what+" "+key.Text, known...); keys != nil {
		r.describeField(&field, key, what, keys)
	}
	return field
}

// describeField reads the long form.
func (r *reader) describeField(field *Field, key *yamltree.Node, what string, keys map[string]*yamltree.Node) {
	if keys["type"] == nil && keys["enum"] == nil {
		r.Complain(key.At, "%s %s has no type; write type: string, or another of %s", what, key.Text, yamlform.OrList(typeNames))
	}
	field.Type = Type(r.OneOf(keys["type"], "type", typeNames...))
	if keys["type"] == nil && keys["enum"] != nil {
		field.Type = String
	}
	field.Description = r.Line(keys["description"], "description")
	field.Optional = r.Bool(keys["optional"], "optional")
	r.readEnum(field, keys["enum"])
	r.readDefault(field, keys["default"])
}

var typeNames = []string{string(String), string(Number), string(Integer), string(Boolean), string(Array), string(Object)}

func (r *reader) readEnum(field *Field, v *yamltree.Node) {
	if v == nil {
		return
	}
	if field.Type != String && field.Type != "" {
		r.Complain(v.At, "enum is for strings, and %s is %s %s; remove one of both", field.Name, article(field.Type), field.Type)
		return
	}
	field.Enum = r.Texts(v, "enum")
	switch {
	case v.Kind == yamltree.List && len(v.Items) == 0:
		r.Complain(v.At, "enum allows nothing; write at least one value, or remove the key")
	case len(field.Enum) > maxChoice:
		r.Complain(v.At, "enum has %d values, more than the limit of %d", len(field.Enum), maxChoice)
	}
	for i, value := range field.Enum {
		if slices.Contains(field.Enum[:i], value) {
			r.Complain(v.At, "enum has %s twice", yamlform.Quoted(value))
		}
	}
}

func (r *reader) readDefault(field *Field, v *yamltree.Node) {
	if v == nil || field.Type == "" {
		return
	}
	value, problem := plainValue(v)
	if problem == "" {
		value, problem = field.read(value)
	}
	if problem != "" {
		r.Complain(v.At, "the default of %s %s", field.Name, problem)
		return
	}
	field.Default = value
}

// plainValue converts a YAML value to the types of JSON's decoder.
func plainValue(v *yamltree.Node) (value any, problem string) {
	switch v.Kind {
	case yamltree.Text:
		return v.Text, ""
	case yamltree.Bool:
		return strings.EqualFold(v.Text, "true"), ""
	case yamltree.Whole, yamltree.Number:
		return plainNumber(v)
	case yamltree.List:
		items := []any{}
		for _, item := range v.Items {
			value, problem := plainValue(item)
			if problem != "" {
				return nil, problem
			}
			items = append(items, value)
		}
		return items, ""
	case yamltree.Mapping:
		fields := map[string]any{}
		for _, field := range v.Fields {
			value, problem := plainValue(field.Value)
			if problem != "" {
				return nil, problem
			}
			fields[field.Key.Text] = value
		}
		return fields, ""
	default:
		return nil, ""
	}
}

func plainNumber(v *yamltree.Node) (value any, problem string) {
	digits := strings.ReplaceAll(v.Text, "_", "")
	if whole, err := strconv.ParseInt(digits, 0, 64); v.Kind == yamltree.Whole && err == nil {
		return float64(whole), ""
	}
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return nil, "is " + yamlform.Quoted(v.Text) + ", which is no number that JSON can hold"
	}
	return number, ""
}

// readBindings reads names with expressions, which remain pending.
func (r *reader) readBindings(v *yamltree.Node, what string, at site) []Binding {
	if v == nil {
		return nil
	}
	bindings := []Binding{}
	r.Names(v, what, maxFields, func(key, value *yamltree.Node) {
		if r.Name(key, "one of "+what) {
			name := what + "." + key.Text
			bindings = append(bindings, Binding{Name: key.Text, Value: r.readExpression(value, name, at)})
		}
	})
	return bindings
}
