package workflow

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("workflow.json", value); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// By its id a copy of the schema is known, wherever it is.
func TestTheSchemaHasAnID(t *testing.T) {
	var schema struct {
		ID string `json:"$id"`
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(schema.ID, "https://") || !strings.HasSuffix(schema.ID, "/workflow/workflow.schema.json") {
		t.Errorf("the id is %q", schema.ID)
	}
}

// asJSON reads YAML as an editor does.
func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTheSchemaAcceptsWhatParseAccepts(t *testing.T) {
	compiled := compileSchema(t)
	files := slices.Concat(testFiles(t, "good/*.yaml"), testFiles(t, "../*.yaml"))
	for _, file := range files {
		if err := compiled.Validate(asJSON(t, readFile(t, file))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What is wrong with the form is known to both; what is wrong with the meaning only to Parse.
func TestTheSchemaRefusesBadStructures(t *testing.T) {
	compiled := compileSchema(t)
	for _, file := range testFiles(t, "bad/structure/*.yaml") {
		if compiled.Validate(asJSON(t, readFile(t, file))) == nil {
			t.Errorf("%s is accepted by the schema and not by Parse", file)
		}
	}
	for _, file := range testFiles(t, "bad/meaning/*.yaml") {
		if err := compiled.Validate(asJSON(t, readFile(t, file))); err != nil {
			t.Errorf("%s: the form is right, but the schema refuses it: %v", file, err)
		}
	}
}

// A single fault at a time is refused, or accepted, by both.
func TestTheSchemaAndParseAgree(t *testing.T) {
	compiled := compileSchema(t)
	const frame = "nodes:\n  a: {brief: b}\n  b: {brief: b}\n"
	for _, text := range []string{
		frame + "id: a", frame + "id: A", frame + "id: schema", frame + "id: 5", frame + "name: ' '", frame + "more: 1", "name: x",
		frame + "inputs: {a: string}", frame + "inputs: {a: text}", frame + "inputs: {A: string}", frame + "inputs: [a]", frame + "inputs: {text: string}",
		frame + "inputs: {a: {enum: [x]}}", frame + "inputs: {a: {enum: [x, x]}}", frame + "inputs: {a: {enum: [1]}}", frame + "inputs: {a: {enum: []}}",
		frame + "inputs: {a: {enum: [x], type: number}}", frame + "inputs: {a: {enum: [x], default: x}}", frame + "inputs: {a: {description: x}}",
		frame + "inputs: {a: {type: string, default: 1}}", frame + "inputs: {a: {enum: [x], default: 1}}", frame + "inputs: {a: {type: number, default: 1}}", frame + "inputs: {a: {type: number, default: x}}",
		frame + "inputs: {a: {type: integer, default: 1.5}}", frame + "inputs: {a: {type: integer, default: -1}}", frame + "inputs: {a: {type: boolean, default: true}}",
		frame + "inputs: {a: {type: boolean, default: 'true'}}", frame + "inputs: {a: {type: array, default: {}}}", frame + "inputs: {a: {type: array, default: [1]}}",
		frame + "inputs: {a: {type: object, default: {a: [b]}}}", frame + "inputs: {a: {type: object, default: []}}", frame + "inputs: {a: {type: string, optional: 'yes'}}",
		frame + "inputs: {a: {type: string, format: date}}", frame + "inputs: {a: }",
		"nodes: {}", "nodes: [a]", "nodes: {a: }", "nodes: {a: {}}", "nodes: {a-b: {brief: b}}", "nodes: {a: {brief: ''}}", "nodes: {a: {brief: 5}}", "nodes: {a: {brief: b, prompt: b}}",
		"nodes: {a: {approval: Yes?}}", "nodes: {a: {approval: Yes?, brief: b}}", "nodes: {a: {approval: Yes?, check: outputs.approved}}", "nodes: {a: {approval: Yes?, outputs: {a: string}}}",
		"nodes: {a: {approval: Yes?, name: A, inputs: {x: '1'}}}", "nodes: {a: {approval: ''}}",
		"nodes: {a: {brief: b, tools: fs.read}}", "nodes: {a: {brief: b, tools: [fs.read, '*']}}", "nodes: {a: {brief: b, tools: ['a b']}}", "nodes: {a: {brief: b, tools: []}}",
		"nodes: {a: {brief: b, tools: {}}}", "nodes: {a: {brief: b, tools: {allow: [web], otherwise: ask}}}", "nodes: {a: {brief: b, tools: {allow: a}}}", "nodes: {a: {brief: b, tools: {otherwise: no}}}", "nodes: {a: {brief: b, tools: {only: [a]}}}",
		"nodes: {a: {brief: b, inputs: {x: 1}}}", "nodes: {a: {brief: b, inputs: {x: [1]}}}", "nodes: {a: {brief: b, inputs: {X: '1'}}}", "nodes: {a: {brief: b, inputs: {x: ''}}}",
		"nodes: {a: {brief: b, outputs: {text: string}}}", "nodes: {a: {brief: b, outputs: {x: string}}}", "nodes: {a: {brief: b, outputs: {x: {type: string, default: a}}}}", "nodes: {a: {brief: b, outputs: {x: {type: string, optional: true, enum: [a]}}}}",
		"nodes: {a: {brief: b, success_criteria: [x]}}", "nodes: {a: {brief: b, success_criteria: x}}", "nodes: {a: {brief: b, success_criteria: [1]}}",
		"nodes: {a: {brief: b, check: true}}", "nodes: {a: {brief: b, check: []}}", "nodes: {a: {brief: b, max_attempts: 1}}", "nodes: {a: {brief: b, max_attempts: 0}}", "nodes: {a: {brief: b, max_attempts: 101}}", "nodes: {a: {brief: b, max_attempts: '3'}}",
		frame + "edges: [a -> b]", frame + "edges: [a->b]", frame + "edges: [a b]", frame + "edges: [a -> b -> a]", frame + "edges: a -> b", frame + "edges: []", frame + "edges: [{from: a}]", frame + "edges: [{from: a, to: b}]", frame + "edges: [{from: a, to: b, on: x}]",
		frame + "edges: [{from: a, to: b, when: true}]", frame + "edges: [{from: a, to: b, when: [true]}]", frame + "edges: [{from: a, to: b, otherwise: true}]", frame + "edges: [{from: a, to: b, otherwise: maybe}]", frame + "edges: [{from: a, to: b, otherwise: true, when: true}]", frame + "edges: [{from: a, to: b, otherwise: false, when: true}]",
		frame + "edges: [{from: a, to: a, max: 2, when: visit < 2}]", frame + "edges: [{from: a, to: a, max: 0, when: visit < 2}]", frame + "edges: [{from: a, to: a, max: 1001, when: visit < 2}]", frame + "edges: [{from: a, to: a, max: 2, at_limit: continue}]",
		frame + "edges: [{from: a, to: a, max: 2, at_limit: stop}]", frame + "edges: [{from: a, to: b, at_limit: fail}]",
		frame + "retry: {for: 24h, max: 50}", frame + "retry: {for: 1d}", frame + "retry: {max: 0}", frame + "retry: {for: 90}", frame + "retry: 3", frame + "retry: {}",
		"nodes: {a: {brief: b, retry: {for: 90s}}}", "nodes: {a: {approval: b, retry: {max: 3}}}", "nodes: {a: {brief: b, join: some}}",

		frame + "outputs: {x: nodes.a.text}", frame + "outputs: {x: }", frame + "outputs: [x]", frame + "outputs: {X: '1'}",
	} {
		_, parsed := Parse("a.yaml", []byte(text), settings)
		valid := compiled.Validate(asJSON(t, []byte(text)))
		if (parsed == nil) != (valid == nil) {
			t.Errorf("%s\nParse: %v\nschema: %v", strings.TrimPrefix(text, frame), parsed, valid)
		}
	}
}

// Editors show the descriptions: each key has one.
func TestEachKeyOfTheSchemaIsDescribed(t *testing.T) {
	var whole map[string]any
	if err := json.Unmarshal(Schema(), &whole); err != nil {
		t.Fatal(err)
	}
	defs := whole["$defs"].(map[string]any)
	described := func(value any) bool {
		key := value.(map[string]any)
		ref, _ := key["$ref"].(string)
		target, _ := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return key["description"] != nil || target["description"] != nil
	}
	found := 0
	for name, value := range map[string]any{"workflow": any(whole), "output": defs["output"], "input": defs["input"], "step": defs["step"], "approval": defs["approval"], "edge": defs["edge"]} {
		for key, property := range value.(map[string]any)["properties"].(map[string]any) {
			if found++; !described(property) {
				t.Errorf("%s.%s has no description", name, key)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d keys were looked at", found)
	}
}
