package crew_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/continuo-log/continuo/crew"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(crew.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("crew.json", value); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("crew.json")
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
	if err := json.Unmarshal(crew.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(schema.ID, "https://") || !strings.HasSuffix(schema.ID, "/crew/crew.schema.json") {
		t.Errorf("the id is %q", schema.ID)
	}
}

// asJSON reads YAML as an editor does.
func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTheSchemaAcceptsWhatParseAccepts(t *testing.T) {
	compiled := compileSchema(t)
	for _, file := range slices.Concat(crewFiles(t, "good/*.yaml"), crewFiles(t, "../*.yaml")) {
		if err := compiled.Validate(asJSON(t, readCrewFile(t, file))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What is wrong with the form is known to both; what is wrong with the meaning only to Parse.
func TestTheSchemaRefusesBadStructures(t *testing.T) {
	compiled := compileSchema(t)
	for _, file := range crewFiles(t, "bad/structure/*.yaml") {
		if compiled.Validate(asJSON(t, readCrewFile(t, file))) == nil {
			t.Errorf("%s is accepted by the schema and not by Parse", file)
		}
	}
	for _, file := range crewFiles(t, "bad/meaning/*.yaml") {
		if err := compiled.Validate(asJSON(t, readCrewFile(t, file))); err != nil {
			t.Errorf("%s: the form is right, but the schema refuses it: %v", file, err)
		}
	}
}

// A single fault at a time is refused, or accepted, by both.
func TestTheSchemaAndParseAgree(t *testing.T) {
	compiled := compileSchema(t)
	const one = "roles: [{role_name: a, system_prompt: A.}]\n"
	texts := []string{
		one, one + "id: a", one + "id: A", one + "id: schema", one + "id: 5", one + "name: ' '", one + "more: 1", "name: x",
		one + "max_rounds: 0", one + "max_rounds: 1000", one + "max_rounds: 1001", one + "max_rounds: '5'", one + "reminder_interval: 1", one + "reminder_interval: -1",
		one + "summarizer: large", one + "summarizer: 5", one + "summarizer: {}", one + "description: ''", one + "description: 5",
		"roles: {}", "roles: []", "roles: [a]", "roles: [{}]", "roles: [{role_name: a}]", "roles: [{system_prompt: A.}]", "roles: [{role_name: A, system_prompt: A.}]",
		"roles: [{role_name: a-b, system_prompt: A.}]", "roles: [{role_name: 5, system_prompt: A.}]", "roles: [{role_name: a, system_prompt: 5}]", "roles: [{role_name: a, system_prompt: ''}]",
	}
	for _, key := range []string{
		"display_name: Ada", "display_name: ' Ada '", "display_name: Ada the First", "display_name: 'A (B)'", "display_name: 'A: B'", "display_name: '[A]'", `display_name: "A\nB"`, `display_name: "A\tB"`,
		`display_name: "A\u200bB"`, `display_name: "A\u2028B"`, `display_name: "A\u00a0B"`, `display_name: "A\u202eB"`, "display_name: Ａ：", "display_name: ' '", "display_name: 5",
		"display_name: " + strings.Repeat("ż", 64), "display_name: " + strings.Repeat("ż", 65), "display_name: Łódź 😀",
		"agent_type: claude", "agent_type: 'a:b'", "connector: model", "connector: gemini", "connector: ''", "connector: []", "model: demo", "model: 5",
		"connector: model, model: demo", "connector: gemini, model: demo", "connector: gemini, tools: []", "connector: model, tools: []",
		"is_moderator: true", "is_moderator: false", "is_moderator: 'true'", "is_moderator: 1",
		"view: delta", "view: full", "view: window", "view: summary", "view: memory", "view: all", "view: 5", "view: []", "view: {}", "view: {kind: full}", "view: {kind: all}", "view: {newest: 5}",
		"view: {kind: window, newest: 5}", "view: {kind: summary, newest: 5}", "view: {kind: delta, newest: 5}", "view: {kind: window, newest: 0}", "view: {kind: window, newest: 10000}", "view: {kind: window, newest: 10001}",
		"view: {chars: 999}", "view: {chars: 1000}", "view: {tokens: 499}", "view: {tokens: 500}", "view: {tokens: '500'}", "view: {size: 5}",
		"tools: [fs.read, '*']", "tools: ['a b']", "tools: fs.read", "tools: {}", "tools: {allow: [web], otherwise: ask}", "tools: {allow: a}", "tools: {otherwise: no}", "tools: {only: [a]}",
		"timeout: 90s", "timeout: 1m30s", "timeout: 1.5m", "timeout: 90", "timeout: '90'", "timeout: soon", "timeout: -5s", "timeout: 1d", "timeout: ''",
		"bot_token: ${A_TOKEN}", "bot_token: ${a1}", "bot_token: $A", "bot_token: '123:abc'", "bot_token: ${1A}", "bot_token: ' ${A}'", "bot_token: 5", "bot_token: ${A}${B}",
	} {
		texts = append(texts, "roles:\n  - role_name: a\n    system_prompt: A.\n    "+key)
	}
	for _, text := range texts {
		if head, keys, ok := strings.Cut(text, "connector: "); ok && strings.Contains(keys, ", ") {
			text = head + "connector: " + strings.ReplaceAll(keys, ", ", "\n    ")
		}
		_, parsed := crew.Parse("a.yaml", []byte(text), settings)
		valid := compiled.Validate(asJSON(t, []byte(text)))
		if (parsed == nil) != (valid == nil) {
			t.Errorf("%s\nParse: %v\nschema: %v", text, parsed, valid)
		}
	}
}

// Editors show the descriptions: each key has one.
func TestEachKeyOfTheSchemaIsDescribed(t *testing.T) {
	var whole map[string]any
	if err := json.Unmarshal(crew.Schema(), &whole); err != nil {
		t.Fatal(err)
	}
	defs := whole["$defs"].(map[string]any)
	found := 0
	for name, value := range map[string]any{"crew": any(whole), "role": defs["role"], "view": defs["view"], "policy": defs["policy"]} {
		for key, property := range value.(map[string]any)["properties"].(map[string]any) {
			if found++; property.(map[string]any)["description"] == nil {
				t.Errorf("%s.%s has no description", name, key)
			}
		}
	}
	if found < 26 {
		t.Errorf("only %d keys were looked at", found)
	}
}

// The example works offline, and tells of each key: what a reader copies has everything.
func TestTheExampleIsACrewForTheDemoModel(t *testing.T) {
	example, err := crew.Parse("example.yaml", crew.Example(), crew.Known{Models: []string{"demo"}, Tools: []string{"fs.read", "fs.list", "fs.search"}})
	if err != nil {
		t.Fatal(err)
	}
	moderators := 0
	for _, role := range example.Roles {
		if role.Connector != "model" || role.Model != "demo" {
			t.Errorf("%s is spoken for by %s %s", role.Name, role.Connector, role.Model)
		}
		if role.IsModerator {
			moderators++
		}
	}
	if example.ID != "example" || len(example.Roles) != 3 || moderators != 1 {
		t.Errorf("%+v", example)
	}
	var whole struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(crew.Schema(), &whole); err != nil {
		t.Fatal(err)
	}
	for _, keys := range []map[string]any{whole.Properties, whole.Defs["role"].Properties} {
		for key := range keys {
			if !strings.Contains(string(crew.Example()), key+":") {
				t.Errorf("the example does not tell of %s", key)
			}
		}
	}
}
