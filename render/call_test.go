package render

import (
	"encoding/json"
	"strings"
	"testing"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
)

// A call as the transcript writes it is read as the call that it was.
func TestCallsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		call := genCall().Draw(t, "call")
		name, arguments, err := ParseCall(callText(call))
		if !isObject(json.RawMessage(call.Arguments)) || call.Type == "custom" {
			if err == nil {
				t.Fatalf("%q passed for arguments", call.Arguments)
			}
			return
		}
		if err != nil || name != call.Name || arguments != call.Arguments {
			t.Fatalf("%+v was read as %q, %q, %v", call, name, arguments, err)
		}
	})
}

func TestParseCall(t *testing.T) {
	for text, want := range map[string]string{
		` {"name": "f", "args": {"a": 1}} `:     `f {"a": 1}`,
		`{"args": {}, "name": "f"}`:             `f {}`,
		`{"name": "f"}`:                         `f {}`,
		`{"name": "f", "arguments": {"a": 1}}`:  `f {"a": 1}`,
		`{"name": "f", "parameters": {"a": 1}}`: `f {"a": 1}`,
		``:                                      `nothing follows`,
		`f("a")`:                                `it must be a JSON object, but it begins with "f(\"a\")"`,
		`{"name": "f", "args": {"a": "b`:        `has no end`,
		"{\"name\": \"f\", \"args\": {\"a\": \"b\nc\"}}":                    `at character 31: invalid character '\n' in string literal; in a text, write a line end as \n`,
		`{"name": "f", "args": {'a': 1}}`:                                   `at character 24, before "'a': 1}}"`,
		`{"name": "f"} and so on`:                                           `at character 15, before "and so on"`,
		`{"args": {}}`:                                                      `"name" is missing`,
		`{"name": 1}`:                                                       `"name" is missing`,
		`{"name": " "}`:                                                     `"name" is missing`,
		`{"name": "f", "args": "x"}`:                                        `"args" must be a JSON object, but it is "\"x\""`,
		`{"name": "f", "args": null}`:                                       `"args" must be`,
		`{"name": "f", "path": "x"}`:                                        `here it has "path"`,
		`{"name": "f", "args": {}, "arguments": {}}`:                        `twice`,
		`{"name": "f", "args": "` + strings.Repeat("§", 2000) + `"}`:        `…`,
		strings.Repeat(`{"name":`, 20000):                                   `it is no JSON`,
		`{"name": "f", "args": {"a": ` + strings.Repeat("[", 20000) + `}} `: `it is no JSON`,
	} {
		name, arguments, err := ParseCall(text)
		got := name + " " + arguments
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || !strings.Contains(got, want) || len(got) > 300 {
			t.Errorf("%.60q: got %q, want %q", text, got, want)
		}
	}
}

func TestExplainMalformed(t *testing.T) {
	for _, test := range []struct{ name, arguments, want string }{
		{MalformedCall, MalformedArguments("f(x)", CutNone), "it must be a JSON object"},
		{MalformedCall, MalformedArguments("{", CutNone), "has no end"},
		{MalformedCall, MalformedArguments("{\xff", CutNone), "no JSON"},
		{MalformedCall, MalformedArguments("{", CutLong), "too long"},
		{MalformedCall, MalformedArguments("{", CutLength), "limit of length"},
		{MalformedCall, `{"text": "{\"name\": \"f\"}"}`, "is no tool"},
		{MalformedCall, `x`, ""},
		{"f", MalformedArguments("f(x)", CutNone), ""},
	} {
		got, ok := ExplainMalformed(continuo.FunctionCall("id", test.name, test.arguments))
		if ok != (test.want != "") || !strings.Contains(got, test.want) || ok && !strings.Contains(got, "some_tool") {
			t.Errorf("%s %s: got %v, %q", test.name, test.arguments, ok, got)
		}
	}
}
