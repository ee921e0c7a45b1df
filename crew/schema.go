package crew

import (
	"bytes"
	_ "embed"
)

//go:embed crew.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a crew's file, for editors. It covers the form; Parse also checks that
// names exist and are unique.
func Schema() []byte { return bytes.Clone(schema) }

//go:embed example.yaml
var example []byte

// Example is the text of the crew that ships with Continuo, whose id is example. It works with any model, the built-in
// demo model included.
func Example() []byte { return bytes.Clone(example) }
