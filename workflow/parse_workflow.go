package workflow

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// workflowFile is a workflow's file.
type workflowFile struct {
	ID          *yamltree.Node         `key:"id" form:"id" help:"What the workflow is called by programs and on the command line. Default: the file's name without .yaml."`
	Name        yamlform.Value[string] `key:"name" form:"line" help:"What people call it. Default: the id."`
	Description yamlform.Value[string] `key:"description" help:"What it is for."`
	Inputs      yamlform.Several       `key:"inputs" each:"type|input" max:"100" help:"What a run is given, by name."`
	Nodes       yamlform.Several       `key:"nodes" each:"node" min:"1" max:"200" required:"true" help:"The steps, by id. A run begins with those that no edge leads to; branches run side by side."`
	Edges       yamlform.Several       `key:"edges" list:"arrow|edge" max:"1000" help:"What follows what. A node begins when all edges to it are settled, and one of them was taken, or all (join)."`
	Outputs     yamlform.Several       `key:"outputs" each:"expression" max:"100" help:"What the run gives in the end: names with expressions. Default: the outputs of the finished nodes that no edge leaves."`
	Retry       *yamltree.Node         `key:"retry" form:"retry" help:"For how long steps are taken up again, without a person, after failures that pass. Default: {for: 24h, max: 200}."`
}

// readWorkflow reads the whole file. Expressions remain pending.
func (r *reader) readWorkflow(root *yamltree.Node) {
	var file workflowFile
	r.Object(root, "a workflow", &file)
	w := r.workflow
	w.ID = r.ID(file.ID, root.At, "workflow")
	w.Name = cmp.Or(file.Name.Is, w.ID)
	w.Description = file.Description.Is
	r.retry = r.readRetry(file.Retry, Retry{defaultRetryFor, defaultRetryMax})
	r.inputs = r.readFields(file.Inputs, "input")
	w.Inputs = r.inputs.list
	if file.Nodes.Node != nil {
		r.readNodes(file.Nodes)
	} else if !root.Has("nodes") {
		r.Complain(root.At, "a workflow needs nodes; write the key nodes with a step below it, such as draft: {brief: Write a draft.}")
	}
	r.readEdges(file.Edges)
	w.Outputs = r.readBindings(file.Outputs, "outputs", site{role: ofRun})
}

// fieldList are declared fields. Open says that some could not be read, so that an unknown name is no error.
type fieldList struct {
	list []Field
	open bool
}

// readFields reads inputs or outputs; what is "input" or "output".
func (r *reader) readFields(v yamlform.Several, what string) fieldList {
	if v.Node == nil {
		return fieldList{}
	}
	before := r.Complaints()
	var fields fieldList
	r.Names(v, what+"s", func(key, value *yamltree.Node) {
		if r.Name(key, "an "+what) {
			fields.list = append(fields.list, r.readField(key, value, what))
		}
	})
	fields.open = r.Complaints() > before
	return fields
}

// fieldFile is the long form of an output.
type fieldFile struct {
	Type        *yamltree.Node         `key:"type" form:"type" help:"The type of the value."`
	Description yamlform.Value[string] `key:"description" form:"line" help:"What it is, in a sentence; models read it."`
	Optional    yamlform.Value[bool]   `key:"optional" help:"Whether it may be missing. Default: false."`
	Enum        yamlform.Several       `key:"enum" list:"text" min:"1" max:"100" unique:"true" help:"What a string may be."`
}

// inputFile is the long form of an input.
type inputFile struct {
	fieldFile
	Default *yamltree.Node `key:"default" form:"any" help:"Its value when none is given."`
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
	var file inputFile
	known := any(&file)
	if what == "output" {
		known = &file.fieldFile
	}
	if r.Object(v, what+" "+key.Text, known) {
		r.describeField(&field, key, what, file)
	}
	return field
}

// describeField reads the long form.
func (r *reader) describeField(field *Field, key *yamltree.Node, what string, file inputFile) {
	if file.Type == nil && file.Enum.Node == nil {
		r.Complain(key.At, "%s %s has no type; write type: string, or another of %s", what, key.Text, yamlform.OrList(typeNames))
	}
	field.Type = Type(r.OneOf(file.Type, "type", typeNames...))
	if file.Type == nil && file.Enum.Node != nil {
		field.Type = String
	}
	field.Description = file.Description.Is
	field.Optional = file.Optional.Is
	r.readEnum(field, file.Enum.Node, file.Enum.Most)
	r.readDefault(field, file.Default)
}

var typeNames = []string{string(String), string(Number), string(Integer), string(Boolean), string(Array), string(Object)}

func (r *reader) readEnum(field *Field, v *yamltree.Node, most int) {
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
	case len(field.Enum) > most:
		r.Complain(v.At, "enum has %d values, more than the limit of %d", len(field.Enum), most)
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
func (r *reader) readBindings(v yamlform.Several, what string, at site) []Binding {
	if v.Node == nil {
		return nil
	}
	bindings := []Binding{}
	r.Names(v, what, func(key, value *yamltree.Node) {
		if r.Name(key, "one of "+what) {
			name := what + "." + key.Text
			bindings = append(bindings, Binding{Name: key.Text, Value: r.readExpression(value, name, at)})
		}
	})
	return bindings
}
