package workflow

import (
	_ "embed"
	"slices"
)

//go:embed workflow.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a workflow's file, for editors. It knows the form; Parse also knows
// what names stand for and how the edges go together.
func Schema() []byte { return slices.Clone(schema) }
