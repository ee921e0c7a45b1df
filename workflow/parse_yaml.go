package workflow

import (
	"errors"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// What a YAML value is.
const (
	yamlNull    = yamltree.Null
	yamlText    = yamltree.Text
	yamlWhole   = yamltree.Whole
	yamlNumber  = yamltree.Number
	yamlBool    = yamltree.Bool
	yamlList    = yamltree.List
	yamlMapping = yamltree.Mapping
)

// yamlValue is a value of the file and its place.
type yamlValue struct {
	kind   yamltree.Kind
	at     place
	text   string // of a scalar, as it is written; of a text, what it says
	items  []*yamlValue
	fields []yamlField // in order
	node   *yamltree.Node
}

// yamlField is one key of a mapping with its value.
type yamlField struct{ key, value *yamlValue }

// has reports whether a mapping has a key, with or without a value.
func (v *yamlValue) has(key string) bool {
	return slices.ContainsFunc(v.fields, func(f yamlField) bool { return f.key.text == key })
}

// yamlError is a complaint about the file's form.
type yamlError struct {
	at      place
	message string
}

const (
	maxFileBytes = 256 << 10
	maxNesting   = 16
	maxLevels    = 32
	maxKeys      = 5000
)

// parseYAML reads the file: one mapping, with plain scalars, lists and mappings below it.
func parseYAML(data []byte) (*yamlValue, *yamlError) {
	root, err := yamltree.Parse(data, yamltree.Options{
		MaxBytes: maxFileBytes, MaxNesting: maxNesting, MaxLevels: maxLevels, MaxKeys: maxKeys,
		In: "workflows", For: "a workflow",
		IfLong:   "long texts belong into files that a step reads",
		IfSecond: "write each workflow into a file of its own",
	})
	if wrong := (*yamltree.Error)(nil); errors.As(err, &wrong) {
		message := wrong.Message
		if strings.HasPrefix(message, "not valid YAML") && !strings.Contains(message, "already defined") {
			message += `; check the indentation, and put texts that hold ": " or begin with a special sign in quotes`
		}
		return nil, &yamlError{place{wrong.At.Line, wrong.At.Column}, message}
	}
	top := valueOf(root)
	switch top.kind {
	case yamlMapping:
		return top, nil
	case yamlNull:
		return nil, &yamlError{top.at, "the file says nothing; a workflow has nodes, and edges between them"}
	default:
		return nil, &yamlError{top.at, "the file must be a mapping with the keys nodes and edges, not " + top.kind.String()}
	}
}

func valueOf(n *yamltree.Node) *yamlValue {
	v := &yamlValue{kind: n.Kind, at: place{n.At.Line, n.At.Column}, text: n.Text, node: n}
	for _, item := range n.Items {
		v.items = append(v.items, valueOf(item))
	}
	for _, field := range n.Fields {
		v.fields = append(v.fields, yamlField{valueOf(field.Key), valueOf(field.Value)})
	}
	return v
}

// placeIn is the place in the file of a character of a text, as well as it can be told. Line and column count from 1
// within the text.
func (v *yamlValue) placeIn(within place) place {
	at := v.node.PlaceIn(yamltree.Place{Line: within.line, Column: within.column})
	return place{at.Line, at.Column}
}
