package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/expr-lang/expr/conf"
)

// stage is a workflow on which expressions are tried: as an output of the run, and as a condition of the edge
// from judge.
const stage = `
inputs: {topic: string, count: integer, share: number, flag: boolean, tags: array, style: object, note: {type: string, optional: true}}
nodes:
  research: {brief: b, outputs: {sources: array, score: number, n: integer, verdict: {enum: [go, redo]}, extra: {type: string, optional: true}}}
  judge: {brief: b, outputs: {verdict: {enum: [go, redo]}, score: number, n: integer, late: {type: number, optional: true}}}
  sign: {approval: Sign?}
  end: {brief: b}
edges:
  - research -> judge
  - research -> sign
  - {from: judge, to: end, when: %s}
outputs: {value: %s}
`

// on makes an expression of a text, as the run's output or as an edge's condition.
func on(t testing.TB, text string, condition bool) *Expression {
	t.Helper()
	quoted := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	if condition {
		return mustParse(t, fmt.Sprintf(stage, quoted(text), "'1'")).Edges[2].When
	}
	return mustParse(t, fmt.Sprintf(stage, "true", quoted(text))).Outputs[0].Value
}

// stageValues are as a run has them: decoded from JSON, integers as int or float64.
func stageValues() Values {
	return Values{
		Inputs: map[string]any{
			"topic": "tea", "count": 3, "share": 0.5, "flag": true, "tags": []any{"a", "b", 1.0, 2.5},
			"style": map[string]any{"font": map[string]any{"size": 12.0}, "big": 3e15},
		},
		Outputs: map[string]any{"verdict": "redo", "score": 7.0, "n": json.Number("4")},
		Nodes: map[string]map[string]any{
			"research": {"sources": []any{map[string]any{"name": "x", "year": 1999.0}, map[string]any{"name": "y", "year": 2024.0}}, "score": 0.25, "n": 2, "verdict": "go"},
			"judge":    {"verdict": "redo", "score": 7.0, "n": 4},
		},
		Visit: 2,
	}
}

func TestExpressionsAreComputed(t *testing.T) {
	for text, want := range map[string]any{
		`inputs.topic`:                                   "tea",
		`inputs.topic + "!"`:                             "tea!",
		`inputs["topic"]`:                                "tea",
		`inputs.count`:                                   3.0,
		`inputs.count + 1`:                               4.0,
		`inputs.count % 2`:                               1.0,
		`inputs.count / 2`:                               1.5,
		`inputs.share * 2`:                               1.0,
		`inputs.share * 2 == 1`:                          true,
		`inputs.style.big == 3000000000000000`:           true,
		`string(inputs.style.big)`:                       "3000000000000000",
		`inputs.style.font.size > 11`:                    true,
		`inputs.style.none`:                              nil,
		`inputs.style.none?.deeper`:                      nil,
		`inputs.note`:                                    nil,
		`inputs.note == nil`:                             true,
		`inputs.note ?? "none"`:                          "none",
		`inputs.tags`:                                    []any{"a", "b", 1.0, 2.5},
		`inputs.tags[-1]`:                                2.5,
		`1 in inputs.tags`:                               true,
		`nodes.research.n == 2 and nodes.judge.n == 4.0`: true,
		`map(nodes.research.sources, .name)`:             []any{"x", "y"},
		`nodes.research.sources | filter(#.year > 2000) | len()`: 1.0,
		`join(map(nodes.research.sources, #.name), ", ")`:        "x, y",
		`count(nodes.research.sources, .year > 1900)`:            2.0,
		`sum(map(nodes.research.sources, .year))`:                4023.0,
		`all(1..3, # > 0) and none(1..3, # > 3)`:                 true,
		`sort([3, 1, 2])`:                                        []any{1.0, 2.0, 3.0},
		`sortBy(nodes.research.sources, -.year)[0].name`:         "y",
		`{"a": inputs.count, "b": [nil, 1.5]}`:                   map[string]any{"a": 3.0, "b": []any{nil, 1.5}},
		`inputs.flag ? "yes" : "no"`:                             "yes",
		`nodes.sign?.approved`:                                   nil,
		`nodes.sign?.approved ?? false`:                          false,
		`nodes.sign?.comment == "x"`:                             false,
		`nodes.end?.text`:                                        nil,
		`"sign" in nodes`:                                        false,
		`"judge" in nodes`:                                       true,
		`nodes.research.extra == nil`:                            true,
		`nodes["research"].verdict`:                              "go",
		`split("a,b", ",")`:                                      []any{"a", "b"},
		`toJSON(inputs.style.font)`:                              "{\n  \"size\": 12\n}",
		`inputs.topic matches "^t.a$"`:                           true,
		`max(inputs.count, 5)`:                                   5.0,
		`nil`:                                                    nil,
	} {
		got, err := on(t, text, false).Eval(stageValues())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v, want %#v", text, got, err, want)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestConditionsHoldOrNot(t *testing.T) {
	for text, want := range map[string]bool{
		`true`:                                               true,
		`outputs.verdict == "redo"`:                          true,
		`outputs.verdict in ["go"]`:                          false,
		`outputs.score >= 7`:                                 true,
		`outputs.score == 7 and outputs.n == 4`:              true,
		`outputs.n % 2 == 0`:                                 true,
		`outputs.late == nil or outputs.late > 3`:            true,
		`visit == 2`:                                         true,
		`visit < 2 or nodes.research.score < 0.5`:            true,
		`nodes.judge.verdict != nodes.research.verdict`:      true,
		`inputs.style.strict ?? false`:                       false,
		`not (inputs.flag and len(inputs.topic) == 3)`:       false,
		`nodes.research?.verdict == "redo"`:                  false,
		`any(nodes.research.sources, .name == inputs.topic)`: false,
	} {
		got, err := on(t, text, true).Holds(stageValues())
		if err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestErrorsNameTheExpressionAndItsLine(t *testing.T) {
	values := stageValues()
	delete(values.Nodes, "research")
	for text, want := range map[string]string{
		`nodes.research.verdict == "go"`: "ask with ?.",
		`inputs.style.none.deeper == 1`:  "ask with ?.",
		`inputs.style.font`:              "it must be true or false, and is an object",
		`outputs.late`:                   "and is null",
		`outputs.late > 3`:               "<nil>",
		`inputs.tags[9] == 1`:            "out of range",
		`all(inputs.tags, # > 1)`:        "string",
		`outputs.n % 0 == 1`:             "divide by zero",
		`inputs.style.big + "a" == "b"`:  "int",
		"visit == 2 and\n  outputs.late": "visit == 2 and outputs.late",
	} {
		_, err := on(t, text, true).Holds(values)
		if err == nil || !strings.Contains(err.Error(), strings.Join(strings.Fields(text), " ")) || !strings.Contains(err.Error(), " line 11 ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{`1 / 0`: "no number", `0 / 0`: "no number", `[1.5, 2 ** 2000]`: "no number"} {
		if got, err := on(t, text, false).Eval(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", text, got, err, want)
		}
	}
	if _, err := (&Expression{Text: "x"}).Eval(Values{}); err == nil {
		t.Error("an expression that was not read is computed")
	}
}

// What costs much is refused, whatever it would come to.
func TestExpressionsAreBounded(t *testing.T) {
	many := make([]any, 50_000)
	for i := range many {
		many[i] = strings.Repeat("x", 1000)
	}
	values := Values{Inputs: map[string]any{"tags": many, "topic": strings.Repeat("x", 1<<20), "style": map[string]any{}}}
	for _, text := range []string{
		`len(1..2000000)`,
		`len(1..9223372036854775807)`,
		`count(1..900, count(1..900, # > 1) > 1)`,
		`all(inputs.tags, all(inputs.tags, # != ""))`,
		`len(map(inputs.tags, inputs.topic + #))`,
		`len(map(1..1000, inputs.tags))`,
		`len(flatten(map(1..1000, inputs.tags)))`,
		`len(map(1..90000, 1..100))`,
		`len(filter(inputs.tags, any(inputs.tags, # == "y")))`,
	} {
		if got, err := on(t, text, false).Eval(values); err == nil {
			t.Errorf("%s: %v", text, got)
		} else {
			t.Logf("%.200s", err)
		}
	}
	if got, err := on(t, `count(inputs.tags, len(#) == 1000)`, false).Eval(values); err != nil || got != 50_000.0 {
		t.Errorf("many items: %v, %v", got, err)
	}
}

// No function knows a clock, chance or an order of its own.
func TestFunctionsAreThoseThatAreNamed(t *testing.T) {
	all := conf.CreateNew().Builtins
	for _, name := range functions {
		if all[name] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
	for _, name := range []string{"now", "date", "duration", "timezone", "keys", "values", "toPairs", "fromPairs", "groupBy", "reduce", "repeat", "replace"} {
		if all[name] == nil || slices.Contains(functions, name) {
			t.Errorf("%s is not there or can be called", name)
		}
		for _, form := range []string{"%s()", "%s(inputs.style)", "%s(inputs.tags, #)", "inputs.tags | %s()", "$env.%s()"} {
			text := fmt.Sprintf(stage, "true", "'"+fmt.Sprintf(form, name)+"'")
			if w, err := Parse("x.yaml", []byte(text), settings); err == nil {
				t.Errorf("%s can be called: %+v", fmt.Sprintf(form, name), w.Outputs)
			}
		}
	}
	names := slices.Clone(functions)
	slices.Sort(names)
	if len(slices.Compact(names)) != len(functions) {
		t.Error("a function is named twice")
	}
}

// The same values give the same result, in any order and at any time at once, and are left as they were.
func TestEvaluationIsPureAndSafeForConcurrentUse(t *testing.T) {
	expressions := []*Expression{
		on(t, `{"a": map(nodes.research.sources, #), "b": inputs.style, "c": toJSON(inputs), "d": string(inputs.style)}`, false),
		on(t, `filter(inputs.tags, # in ["a", 1])`, false),
		on(t, `sort(map(1..100, -#))`, false),
	}
	condition := on(t, `outputs.verdict == "redo" and any(nodes.research.sources, .year > 2000) and inputs.topic matches "t.*"`, true)
	values, untouched := stageValues(), stageValues()
	var want []any
	for _, e := range expressions {
		value, err := e.Eval(values)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, value)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				for i, e := range expressions {
					if got, err := e.Eval(values); err != nil || !reflect.DeepEqual(got, want[i]) {
						t.Errorf("%s: %v, %v, want %v", e.Text, got, err, want[i])
					}
				}
				if holds, err := condition.Holds(values); !holds || err != nil {
					t.Errorf("%s: %v, %v", condition.Text, holds, err)
				}
			}
		})
	}
	group.Wait()
	want[0].(map[string]any)["b"].(map[string]any)["font"] = "changed"
	if !reflect.DeepEqual(values, untouched) {
		t.Errorf("the values were changed: %v", values)
	}
}

// Every output that a node can have can be spoken of by its name, whatever the words of the language are.
func TestWordsOfTheLanguageCanBeNames(t *testing.T) {
	for _, name := range []string{"in", "not", "and", "or", "matches", "contains", "true", "nil", "if", "else", "let", "len", "map", "inputs", "nodes", "visit", "now"} {
		text := fmt.Sprintf("nodes:\n  %s: {brief: b, outputs: {%s: string}}\noutputs: {a: nodes.%s.%s}\n", name, name, name, name)
		w, err := Parse("x.yaml", []byte(text), settings)
		if name == "true" { // of YAML
			text = strings.ReplaceAll(text, "true:", `"true":`)
			w, err = Parse("x.yaml", []byte(text), settings)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := w.Outputs[0].Value.Eval(Values{Nodes: map[string]map[string]any{name: {name: "x"}}})
		if got != "x" || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Whatever is asked of whatever values: an answer or an error, and no other names than the known ones.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		`inputs.topic == "tea"`, `nodes.research?.verdict in ["go"]`, `all(inputs.tags, # != nil)`, `inputs.tags[1:2] | first()`, `-visit ** 2`, `1..3`, `"a" + string(inputs.style)`,
		`inputs.flag ? 1 : [2]`, `inputs.topic matches inputs.topic`, `map(inputs.tags, map(inputs.tags, #))`, `nodes[inputs.topic]?.x`, `{"a": {"b": nil}}.a.b`, `b"bytes"`, `get(inputs, "x")`, `if inputs.flag { 1 } else { 2 }`,
	} {
		f.Add(text)
	}
	stage := mustParse(f, fmt.Sprintf(stage, "true", "'1'"))
	r := &reader{workflow: stage, inputs: fieldList{list: stage.Inputs}}
	for i := range stage.Nodes {
		r.drafts = append(r.drafts, draftNode{outputs: fieldList{list: stage.Nodes[i].outputFields()}})
	}
	scope := r.scopeOf(site{ofEdge, "judge"})
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxExpression {
			return
		}
		compiled, wrong := compile(text, scope, false)
		if wrong != nil {
			if wrong.at.Line < 1 || wrong.at.Column < 1 || wrong.message == "" || strings.Contains(wrong.message, "\n") {
				t.Fatalf("%q: %+v", text, wrong)
			}
			return
		}
		e := &Expression{Text: text, program: compiled.program}
		values := stageValues()
		first, err := e.Eval(values)
		second, again := e.Eval(values)
		if !reflect.DeepEqual(first, second) || (err == nil) != (again == nil) {
			t.Fatalf("%q gives %v, %v and then %v, %v", text, first, err, second, again)
		}
		if err == nil {
			if _, err := json.Marshal(first); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
		if !maps.Equal(values.Nodes["judge"], stageValues().Nodes["judge"]) {
			t.Fatalf("%q changed the values", text)
		}
		_, _ = e.Holds(Values{})
	})
}
