package config

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("continuo.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("continuo.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// The schema and Load agree on the form of files, here in JSON, which is YAML too.
func TestTheSchemaAndLoadAgree(t *testing.T) {
	schema := compiled(t)
	for text, sound := range map[string]bool{
		`{}`: true,
		`{"listen": "127.0.0.1:0", "context": {"max_messages": 5, "low_water": 1}, "log": {"level": "debug"}}`: true,
		`{"models": {"a": {"protocol": "gemini", "temperature": 0.5, "headers": {"X-A": "b"}}}, "model": "a"}`: true,
		`{"models": {"a": {"strict": true}, "b": {"strict": "no_system"}}}`:                                    true,
		`{"models": null, "context": null}`: true,
		`{"agents": {"a": {"persona": "A.", "tools": ["fs.*"]}, "b": {"persona": "B.", "tools": {"deny": ["*"]}}}}`: true,
		`{"mcp": {"servers": {"s": {"command": ["x"]}}}}`:                                                           true,
		`{"turn": {"keep_events": "2w"}, "demo": {"pace": "0s"}}`:                                                   true,
		`{"tools": {"allow": ["a", "b"]}, "server": {"inspector": false}}`:                                          true,
		`{"quux": 1}`:                                false,
		`{"context": {"max_message": 5}}`:            false,
		`{"context": {"max_messages": 0}}`:           false,
		`{"context": {"max_messages": "5"}}`:         false,
		`{"context": {"low_water": 0}}`:              false,
		`{"log": {"level": "loud"}}`:                 false,
		`{"turn": {"timeout": "10"}}`:                false,
		`{"turn": {"timeout": 10}}`:                  false,
		`{"tools": {"allow": "a"}}`:                  false,
		`{"models": {"a": {"temperature": 3}}}`:      false,
		`{"models": {"a": {"headers": {"X-A": 1}}}}`: false,
		`{"models": {"a": {"key": "x"}}}`:            false,
		`{"mcp": {"server": {}}}`:                    false,
		`{"server": {"inspector": "yes"}}`:           false,
		`{"chat": []}`:                               false,
		`{"webhooks": {"a": {"url": "https://hooks.example.org/a@b", "secret": "${S}", "projects": ["acme"]}}}`: true,
		`{"webhooks": {"a": {"url": "ftp://hooks.example.org", "secret": "${S}"}}}`:                             false,
		`{"webhooks": {"a": {"url": "https://me@hooks.example.org", "secret": "${S}"}}}`:                        false,
		`{"webhooks": {"a": {"url": "https://hooks.example.org", "secret": "written here"}}}`:                   false,
		`{"models": {"a": {"base_url": "HTTP://[::1]:8000/v1", "api_key_env": "A_KEY"}}}`:                       true,
		`{"models": {"a": {"base_url": "https://a.example/v1?x=1"}}}`:                                           false,
		`{"models": {"a": {"api_key_env": "sk-abc"}}}`:                                                          false,
		`{"models": {"a": {"api_key_env": ""}}}`:                                                                true,
		`{"context": {"summarizer": ""}, "recall": {"embeddings": {"base_url": ""}}}`:                           true,
		`{"listen": "8787"}`:                                           false,
		`{"project": "a b"}`:                                           false,
		`{"project": "acme.de_1"}`:                                     true,
		`{"telegram": {"bot_token": "12:secret"}}`:                     false,
		`{"upstreams": {"a": {}, "b": null}, "models": {"c": null}}`:   true,
		`{"webhooks": {"a": {"url": "https://hooks.example.org"}}}`:    false,
		`{"webhooks": {"a": {"secret": "${S}"}}}`:                      false,
		`{"webhooks": {"a": null}}`:                                    false,
		`{"agents": {"a": {}}}`:                                        false,
		`{"agents": {"a": null}}`:                                      false,
		`{"agents": {"a": {"persona": "A.", "persona_file": "b.md"}}}`: false,
		`{"connectors": {"a": {}}}`:                                    false,
		`{"connectors": {"a": {"command": ["x"], "acp": ["y"]}}}`:      false,
		`{"connectors": {"a": {"acp": ["x"]}}}`:                        true,
		`{"connectors": {"a": {"acp": ["x"], "permissions": "allow"}, "b": {"command": ["y"], "prompt": "argument"}}}`: true,
		`{"connectors": {"a": {"command": ["x"], "permissions": "allow"}}}`:                                            false,
		`{"connectors": {"a": {"acp": ["x"], "prompt": "argument"}}}`:                                                  false,
		`{"mcp": {"servers": {"a": {}}}}`:                                                                              false,
		`{"mcp": {"servers": {"a": {"command": ["x"], "url": "http://127.0.0.1:3000/mcp"}}}}`:                          false,
		`{"mcp": {"servers": {"a": {"url": "http://127.0.0.1:3000/mcp", "headers": {"X-A": "${S}"}}}}}`:                true,
		`{"mcp": {"servers": {"a": {"url": "http://127.0.0.1:3000/mcp", "dir": "/tmp"}}}}`:                             false,
		`{"mcp": {"servers": {"a": {"command": ["x"], "headers": {"X-A": "${S}"}}}}}`:                                  false,
		`{"models": {"a": {"input_price": 1, "output_price": 2, "cached_input_price": 0.1}}}`:                          true,
		`{"models": {"a": {"input_price": 1}}}`:                                                                        false,
		`{"models": {"a": {"output_price": 1}}}`:                                                                       false,
		`{"models": {"a": {"cache_write_price": 1}}}`:                                                                  false,
		`{"retention": {"feed": "0d", "delete_after": "1w2d"}, "audit": {"keep": "0s"}}`:                               true,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		_, loaded := load(t, text, Options{})
		if valid := schema.Validate(value); (valid == nil) != sound || (loaded == nil) != sound {
			t.Errorf("%s: the schema says %v, Load says %v; sound: %v", text, valid, loaded, sound)
		}
	}
}

// Every setting is in the schema, with its meaning.
func TestTheSchemaHasEverySetting(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(JSONSchema(), &root); err != nil {
		t.Fatal(err)
	}
	for _, s := range Schema() {
		at := root
		for part := range strings.SplitSeq(s.Key, ".") {
			next, ok := at["additionalProperties"].(map[string]any)
			if part != "NAME" {
				members, _ := at["properties"].(map[string]any)
				if either, list := at["anyOf"].([]any); list {
					members = either[0].(map[string]any)["properties"].(map[string]any)
				}
				next, ok = members[part].(map[string]any)
			}
			if !ok {
				t.Fatalf("%s: the schema ends before %s", s.Key, part)
			}
			at = next
		}
		if text, _ := at["description"].(string); !strings.HasPrefix(text, s.Doc) {
			t.Errorf("%s: %q", s.Key, text)
		}
	}
}
