package config

import (
	"reflect"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func TestWhatModelsAreAsked(t *testing.T) {
	config := mustLoad(t, `
models:
  a:
    top_p: 0.5
    stop: ["END", "# "]
    seed: -3
    response_format: {type: json_schema, json_schema: {name: x, schema: {type: object}}}
    extra_body:
      enable_thinking: false
      provider: {order: [one, 2, null], max: 1.50}
  b: {protocol: anthropic-messages, model: claude-sonnet-4-5, thinking_budget: 2000}
  c: {extra_body: '{"a": 1}'}
  d: {}
`, Options{})
	a := config.Models["a"]
	top, seed := 0.5, int64(-3)
	if want := (&continuo.Sampling{TopP: &top, Stop: []string{"END", "# "}, Seed: &seed}); !reflect.DeepEqual(a.Sampling(), want) {
		t.Errorf("sampling %+v, want %+v", a.Sampling(), want)
	}
	for got, want := range map[string]string{
		string(a.ResponseFormat):             `{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}}`,
		string(a.ExtraBody):                  `{"enable_thinking":false,"provider":{"order":["one",2,null],"max":1.50}}`,
		string(config.Models["c"].ExtraBody): `{"a": 1}`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	b := config.Models["b"]
	if s := b.Sampling(); s == nil || *s.ThinkingBudget != 2000 || b.ReasoningEffort != "medium" {
		t.Errorf("b: %+v, effort %s", s, b.ReasoningEffort)
	}
	d := config.Models["d"]
	if d.Sampling() != nil || d.ResponseFormat != nil || d.ExtraBody != nil {
		t.Errorf("d: %+v", d)
	}
}

func TestWhatModelsCannotBeAsked(t *testing.T) {
	for model, want := range map[string]string{
		"{protocol: openai-responses, stop: [x]}":                              "stop: openai-responses has no such member",
		"{protocol: anthropic-messages, seed: 1}":                              "seed: anthropic-messages has no such member",
		"{protocol: openai-responses, seed: 1}":                                "seed: openai-responses has no such member",
		"{extra_body: {messages: []}}":                                         "extra_body: messages is what Continuo writes itself",
		"{extra_body: {a: 1}, tool_calls: transcript}":                         "extra_body: not with tool_calls: transcript",
		"{extra_body: 5}":                                                      "allowed: a mapping",
		"{extra_body: '[1]'}":                                                  "allowed: a mapping",
		"{extra_body: {a: .inf}}":                                              "no number of JSON",
		"{response_format: {type: text}}":                                      "response_format: allowed: {type: json_object}",
		"{response_format: {type: json_schema}}":                               "response_format: allowed: {type: json_object}",
		"{protocol: anthropic-messages, response_format: {type: json_object}}": "given json_object; allowed: json_schema for anthropic-messages",
		"{structured_outputs: off, response_format: {type: json_object}}":      "structured_outputs is off",
		"{top_p: 1.5}":  "top_p: given 1.5; allowed: a number from 0 to 1",
		"{seed: 1.5}":   "allowed: a whole number",
		"{stop: [' ']}": "allowed: a list of texts that are not blank",
	} {
		if _, err := load(t, "models: {m: "+model+"}", Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", model, err, want)
		}
	}
}
