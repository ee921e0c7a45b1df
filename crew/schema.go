package crew

import (
	"bytes"
	_ "embed"
	"sync"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/yamlform"
)

// Schema is the JSON Schema (draft 2020-12) of a crew's file, for editors. It covers the form; Parse also checks that
// names exist and are unique. The file crew.schema.json, which has its address, is a copy.
func Schema() []byte { return bytes.Clone(schema()) }

var schema = sync.OnceValue(func() []byte {
	return yamlform.Schema{
		ID: "https://raw.githubusercontent.com/continuo-log/continuo/main/crew/crew.schema.json", Title: "Continuo crew",
		Def: yamlform.Def{Help: "Agents that share one conversation and speak in turn.", Of: &crewFile{}},
		Defs: []yamlform.Def{
			{Name: "label", JSON: `"type": "string", "pattern": "^\\s*[^\\s()\\[\\]:（）［］：﹙﹚﹕︰\\p{C}\\p{Zl}\\p{Zp}]([^()\\[\\]:（）［］：﹙﹚﹕︰\\p{C}\\p{Z}]| ){0,63}\\s*$"`},
			{Name: "kind", JSON: `"enum": ` + string(rawjson.MustMarshal(viewKinds))},
			{Name: "duration", JSON: `"type": "string", "minLength": 2, "pattern": "^([0-9]+(\\.[0-9]+)?w)?([0-9]+(\\.[0-9]+)?d)?(\\+?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)?$"`},
			{Name: "variable", JSON: `"type": "string", "pattern": "^\\$\\{[A-Za-z_][A-Za-z0-9_]{0,99}\\}$"`},
			{Name: "role", Of: &roleFile{}, JSON: `"if": {"properties": {"connector": {"type": "string", "not": {"pattern": "^\\s*model\\s*$"}}}, "required": ["connector"]}, "then": {"properties": {"model": false, "tools": false}}`},
			{Name: "view", Of: &viewFile{}, JSON: `"dependentSchemas": {"newest": {"required": ["kind"], "properties": {"kind": {"enum": ["window", "summary"]}}}}`},
		},
	}.JSON()
})

//go:embed example.yaml
var example []byte

// Example is the text of the crew that ships with Continuo, whose id is example. It works with any model, the built-in
// demo model included.
func Example() []byte { return bytes.Clone(example) }
