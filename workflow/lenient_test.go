package workflow_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

const fiveOutputs = `id: one
nodes:
  judge:
    brief: x
    max_attempts: 1
    outputs:
      verdict: {type: string, enum: [redo, go, no_go]}
      report: string
      score: number
      sound: boolean
      tags: array
`

// five are the outputs of an answer as the event has them.
const five = `{"report":"fine","score":8.5,"sound":true,"tags":["a"],"verdict":"go"}`

// concluded is the event of one answer.
func concluded(t *testing.T, text string, answers ...string) *continuo.RunEvent {
	t.Helper()
	p := begin(t, text, nil)
	p.append(p.state.Cue(p.state.Next()))
	made := p.state.Conclude(p.state.Next(), answers, false)
	p.append(made...)
	return made[0].RunEvent
}

// The forms in which models give outputs that have one meaning.
func TestOutputsAreReadWhereTheyHaveOneMeaning(t *testing.T) {
	exact := `{"verdict": "go", "report": "fine", "score": 8.5, "sound": true, "tags": ["a"]}`
	change := func(old, new string) string { return strings.Replace(exact, old, new, 1) }
	fence := func(block string) string { return "Done.\n```json\n" + block + "\n```\n" }
	for name, c := range map[string]struct{ answer, repair string }{
		"exact":                        {fence(exact), ""},
		"prose and bare JSON":          {"I looked at it [1] {carefully}.\n\n" + exact, ""},
		"bare JSON and prose":          {exact + "\n\nThat's all, \"really\".", ""},
		"JSON within a sentence":       {"The outputs are " + exact + " as you see.", ""},
		"a brace that is never closed": {"It starts with { and that is that.\n" + exact, ""},
		"a fence on one line":          {"Here: \n```json " + exact + " ```", ""},
		"a fence begun on its line":    {"```json " + exact + "\n```", ""},
		"another small block behind":   {fence(exact) + fence(`{"note": "ok", "score": 1}`), ""},
		"another block before":         {fence(`{"note": "ok", "score": 1}`) + fence(exact), ""},
		"under outputs":                {fence(`{"outputs": ` + exact + `}`), `the object under "outputs" was taken`},
		"under the step's name":        {fence(`{"judge": ` + exact + `}`), `the object under "judge" was taken`},
		"in a list":                    {fence(`[` + exact + `]`), "the one object of a list was taken"},
		"a comma before the end":       {fence(change(`["a"]`, `["a",],`)), "a comma before a closing bracket was left out"},
		"line comments":                {fence(change(`"report"`, "// what I think\n\"report\"")), "comments were left out"},
		"block comments":               {fence(change(`"report"`, `/* a "b" } */ "report"`)), "comments were left out"},
		"single quotes":                {fence(`{'verdict': 'go', 'report': 'fine', 'score': 8.5, 'sound': True, 'tags': ['a']}`), "single quotes were read as double quotes"},
		"names without quotes":         {fence(`{verdict: "go", report: "fine", score: 8.5, sound: true, tags: ["a"]}`), "names without quotes were read as names"},
		"a number in quotes":           {fence(change(`8.5`, `" 8.5"`)), `score was the string " 8.5"`},
		"a boolean in quotes":          {fence(change(`true`, `"True"`)), `sound was the string "True"`},
		"an option's case":             {fence(change(`"go"`, `"Go"`)), `verdict was "Go"`},
		"spaces around an option":      {fence(change(`"go"`, `"go "`)), `verdict was "go "`},
		"a name's case":                {fence(change(`"report"`, `"Report"`)), `"Report" was read as report`},
		"fences in another language":   {"```go\nfunc main() { fmt.Println(\"{\") }\n```\n" + fence(exact), ""},
		"braces in strings":            {fence(change(`"fine"`, `"fine"`)) + "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			event := concluded(t, fiveOutputs, c.answer)
			if event.Kind != continuo.RunNodeFinished || string(event.Outputs) != five {
				t.Fatalf("%s %s: %s", event.Kind, event.Outputs, event.Reason)
			}
			if got := strings.Join(event.Repairs, "; "); c.repair == "" && got != "" || !strings.Contains(got, c.repair) {
				t.Errorf("noted %q, want %q", got, c.repair)
			}
		})
	}
}

// A long report in Markdown, its line breaks and fences as they are.
func TestAReportWithRawLineBreaksIsRead(t *testing.T) {
	report := "# Report\n\nSee `x{y}`:\n```go\nfunc main() {}\n```\n- [ ] open\n- a path C:\\dir\n"
	event := concluded(t, "id: one\nnodes:\n  a: {brief: x, outputs: {report: string, n: integer}}\n", "Here it is.\n```json\n{\"report\": \""+report+"\", \"n\": 1}\n```")
	if want := `{"n":1,"report":"# Report\n\nSee ` + "`x{y}`:\\n```go\\nfunc main() {}\\n```" + `\n- [ ] open\n- a path C:\\dir\n"}`; string(event.Outputs) != want {
		t.Fatalf("%s %s\nwant %s: %s", event.Kind, event.Outputs, want, event.Reason)
	}
	if got := strings.Join(event.Repairs, "; "); !strings.Contains(got, "line breaks in strings") || !strings.Contains(got, "backslashes") {
		t.Errorf("noted %q", got)
	}
}

// What may mean two things is refused.
func TestOutputsWithTwoMeaningsAreRefused(t *testing.T) {
	for answer, want := range map[string]string{
		"```json\n[{\"go\": true}, {\"go\": false}]\n```": "does not end with one JSON object",
		`{"go": "maybe"}`:                                 `go is the string "maybe" and must be a boolean`,
		`{"Go": true, "GO": false}`:                       "does not end with one JSON object",
		`{"go": "1"}`:                                     "must be a boolean",
		"```json\n{\"go\": true \"more\": 1}\n```":        "a comma is missing",
		"```json\n{\"go\": \"true}\n```":                  "a string has no closing quote",
		"```json\n{\"go\": treu}\n```":                    "is no value of JSON",
		strings.Repeat("[", 5000):                         "does not end with one JSON object",
		"```json\n" + strings.Repeat("[", 5000) + "\n```": "nested more than",
	} {
		if event := concluded(t, "id: one\nnodes:\n  a: {brief: x, outputs: {go: boolean}}\n", answer); event.Kind != continuo.RunNodeRefused || !strings.Contains(event.Reason, want) {
			t.Errorf("%.80q: %s: %s", answer, event.Kind, event.Reason)
		}
	}
	options := "id: one\nnodes:\n  a: {brief: x, outputs: {go: {type: string, enum: [go-on, go_on]}}}\n"
	if event := concluded(t, options, `{"go": "Go on"}`); event.Kind != continuo.RunNodeRefused {
		t.Errorf("an option of two was taken: %s", event.Outputs)
	}
}

// An answer of brackets takes no longer than any other of its length.
func TestOutputsAreFoundInAnswersOfBrackets(t *testing.T) {
	for _, answer := range []string{strings.Repeat("{", 1<<20), strings.Repeat("{}", 1<<19), strings.Repeat("[{", 1<<19), strings.Repeat(`{"`, 1<<19)} {
		if event := concluded(t, "id: one\nnodes:\n  a: {brief: x, outputs: {go: boolean}}\n", answer); event.Kind != continuo.RunNodeRefused {
			t.Errorf("%.10s…: %s", answer, event.Kind)
		}
	}
}

const twoOutputs = `id: one
nodes:
  write:
    brief: x
    outputs: {report: string, verdict: {type: string, enum: [redo, go]}}
    check: outputs.report != "bad"
`

// Of a refused answer the outputs that are right are kept, and the next answer need not give them again.
func TestOnlyMissingOutputsAreRequestedAgain(t *testing.T) {
	p := begin(t, twoOutputs, nil)
	attempt := func(want, answer string) {
		t.Helper()
		step := p.state.Next()
		cue := p.state.Cue(step)
		if !strings.Contains(cue.Content.String(), want) {
			t.Errorf("attempt %d is asked %q, want %q", step.Attempt, cue.Content.String(), want)
		}
		p.append(cue)
		p.append(p.state.Conclude(p.state.Next(), []string{answer}, false)...)
	}
	attempt("begins", "```json\n{\"report\": \"long\", \"verdict\": \"perhaps\"}\n```")
	attempt("kept as they are: report. Answer with one JSON object in a fenced block (```json) that has only what is missing or wrong: verdict.", "```json\n{\"verdict\": \"fine\"}\n```")
	attempt("only what is missing or wrong: verdict", "I say {\"verdict\": \"Go\"}")
	if got := string(p.state.Status().Outputs); got != `{"write":{"report":"long","verdict":"go"}}` {
		t.Errorf("%s %s: %s", p.state.Run, p.state.Reason, got)
	}
	if got := p.state.Status().Nodes[0].Repairs; len(got) != 1 || got[0] != `verdict was "Go"` {
		t.Errorf("repairs %q", got)
	}
}

func TestAnAnswerThatFailsItsCheckGivesWhatHasToChange(t *testing.T) {
	p := begin(t, twoOutputs, nil)
	p.append(p.state.Cue(p.state.Next()))
	p.append(p.state.Conclude(p.state.Next(), []string{`{"report": "bad", "verdict": "go"}`}, false)...)
	cue := p.state.Cue(p.state.Next())
	if !strings.Contains(cue.Content.String(), "only those of them that have to change") {
		t.Errorf("asked %q", cue.Content.String())
	}
	p.append(cue)
	p.append(p.state.Conclude(p.state.Next(), []string{`{"report": "good"}`}, false)...)
	if got := string(p.state.Status().Outputs); got != `{"write":{"report":"good","verdict":"go"}}` {
		t.Errorf("%s %s: %s", p.state.Run, p.state.Reason, got)
	}
}

// An answer that reached the limit of tokens goes on in the next, and the pieces are one.
func TestACutAnswerIsContinued(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		pieces     []string
	}{
		"a text":  {"id: one\nnodes:\n  a: {brief: x}\n", `{"a":{"text":"one two three"}}`, []string{"one ", "two ", "three"}},
		"outputs": {"id: one\nnodes:\n  a: {brief: x, outputs: {report: string}}\n", `{"a":{"report":"one two three"}}`, []string{"```json\n{\"report\": \"one ", "two ", "three\"}\n```"}},
		"whole":   {"id: one\nnodes:\n  a: {brief: x, outputs: {report: string}}\n", `{"a":{"report":"one"}}`, []string{"```json\n{\"report\": \"one\"}\n```\nAnd"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, c.text, nil)
			for i := range c.pieces {
				step := p.state.Next()
				if step.Cut != (i > 0) || step.Resumes != step.Cut || step.Refused != "" {
					t.Fatalf("piece %d: %+v", i+1, step)
				}
				cue := p.state.Cue(step)
				if step.Cut != (cue.PartType == continuo.PartResume) || step.Cut != strings.Contains(cue.Content.String(), "Go on exactly where it ends") {
					t.Errorf("piece %d is asked for by %s %q", i+1, cue.PartType, cue.Content.String())
				}
				p.append(cue)
				cut := name == "whole" || i < len(c.pieces)-1
				made := p.state.Conclude(p.state.Next(), c.pieces[:i+1], cut)
				if kind := made[0].RunEvent; kind.Cut != (cut && name != "whole") || kind.Cut && !strings.Contains(kind.Reason, "models.NAME.max_output_tokens") {
					t.Errorf("piece %d: %+v", i+1, kind)
				}
				p.append(made...)
			}
			if got := string(p.state.Status().Outputs); got != c.want {
				t.Errorf("%s %s: %s", p.state.Run, p.state.Reason, got)
			}
		})
	}
}

func TestAnAnswerThatIsAlwaysCutFails(t *testing.T) {
	p := begin(t, "id: one\nnodes:\n  a: {brief: x}\n", nil)
	for p.state.Next().Kind == workflow.StepBegin {
		p.append(p.state.Cue(p.state.Next()))
		p.append(p.state.Conclude(p.state.Next(), []string{"more"}, true)...)
	}
	if p.state.Run != continuo.RunFailed || !strings.Contains(p.state.Reason, "no whole answer in 16 pieces") {
		t.Errorf("it is %s: %s", p.state.Run, p.state.Reason)
	}
}

func TestTheSchemaOfAnAnswerHasTheMissingOutputs(t *testing.T) {
	p := begin(t, twoOutputs, nil)
	first := `{"type":"object","properties":{"report":{"type":"string"},"verdict":{"type":"string","enum":["redo","go"]}},"required":["report","verdict"],"additionalProperties":false}`
	step := p.state.Next()
	if got := string(step.AnswerSchema()); got != first {
		t.Errorf("the schema is %s", got)
	}
	p.append(p.state.Cue(step))
	p.append(p.state.Conclude(p.state.Next(), []string{`{"report": "long"}`}, false)...)
	if got := string(p.state.Next().AnswerSchema()); !strings.Contains(got, `"required":["verdict"]`) {
		t.Errorf("the schema is %s", got)
	}
}
