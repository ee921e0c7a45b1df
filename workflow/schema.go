package workflow

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/yamlform"
)

// Schema is the JSON Schema (draft 2020-12) of a workflow's file, for editors. It covers the form; Parse also checks
// names and the graph of the edges. The file workflow.schema.json, which has its address, is a copy.
func Schema() []byte { return slices.Clone(schema()) }

var schema = sync.OnceValue(func() []byte {
	const long = `"anyOf": [{"required": ["type"]}, {"required": ["enum"]}], "dependentSchemas": {"enum": {"properties": {"type": {"const": "string"}}}}`
	return yamlform.Schema{
		ID: "https://raw.githubusercontent.com/continuo-log/continuo/main/workflow/workflow.schema.json", Title: "Continuo workflow",
		Def: yamlform.Def{Help: "Steps for agents and people, and what follows what. A run carries it out in one conversation.", Of: &workflowFile{}},
		Defs: []yamlform.Def{
			{Name: "type", Help: "The type of a value.", JSON: `"enum": ` + string(rawjson.MustMarshal(typeNames))},
			{
				Name: "expression", Help: `An expression over inputs.<input> and nodes.<node>.<output>; in when and check also over outputs.<output> and visit. Such as nodes.draft.text, len(outputs.sources) > 0 or outputs.verdict == "redo".`,
				JSON: `"anyOf": [{"type": "string", "pattern": "\\S", "maxLength": 2000}, {"type": ["boolean", "number"]}]`,
			},
			{Name: "arrow", JSON: `"type": "string", "pattern": "^\\s*[a-z][a-z0-9_]{0,63}\\s*->\\s*[a-z][a-z0-9_]{0,63}\\s*$"`},
			{Name: "duration", JSON: `"type": "string", "minLength": 2, "pattern": "^([0-9]+(\\.[0-9]+)?w)?([0-9]+(\\.[0-9]+)?d)?([0-9.]+h)?([0-9.]+m)?([0-9.]+s)?$"`},
			{Name: "input", Of: &inputFile{}, JSON: long + `, "allOf": [` + defaultTypes() + `]`},
			{Name: "output", Of: &fieldFile{}, JSON: long},
			{Name: "node", JSON: `"type": "object", "if": {"required": ["approval"]}, "then": {"$ref": "#/$defs/approval"}, "else": {"$ref": "#/$defs/step"}`},
			{Name: "step", Help: "A step that a model carries out.", Of: &nodeFile{}, Only: "step"},
			{Name: "approval", Help: "A person's decision, with the outputs approved (boolean) and comment (string).", Of: &nodeFile{}, Only: "approval"},
			{Name: "edge", Of: &edgeFile{}, JSON: `"dependentRequired": {"at_limit": ["max"]}, "dependentSchemas": {"when": {"properties": {"otherwise": {"const": false}}}}`},
			{Name: "retry", Of: &retryFile{}},
		},
	}.JSON()
})

// defaultTypes says that an input's default is of its type, which is string where only enum is there.
func defaultTypes() string {
	var all []string
	for _, name := range typeNames {
		required := `"required": ["type"], `
		if name == string(String) {
			required = ""
		}
		all = append(all, fmt.Sprintf(`{"if": {%s"properties": {"type": {"const": %q}}}, "then": {"properties": {"default": {"type": %q}}}}`, required, name, name))
	}
	return strings.Join(all, ", ")
}
