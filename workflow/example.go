package workflow

import (
	"bytes"
	_ "embed"
)

//go:embed example.yaml
var example []byte

// Example is the text of the workflow that ships with Continuo, whose id is example. It runs with any model, the
// built-in demo model included, and with the tools that are allowed by default.
func Example() []byte { return bytes.Clone(example) }
