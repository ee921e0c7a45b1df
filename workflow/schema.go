package workflow

import (
	_ "embed"
	"slices"
)

//go:embed workflow.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a workflow's file, for editors. It covers the form; Parse also checks
// names and the graph of the edges.
func Schema() []byte { return slices.Clone(schema) }
