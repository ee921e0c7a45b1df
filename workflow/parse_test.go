package workflow

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/tool"
)

var update = flag.Bool("update", false, "rewrite the complaints beside testdata/bad")

// settings are what the workflows in testdata may name.
var settings = Known{
	Agents: []string{"researcher", "writer"}, Models: []string{"demo"}, Views: []string{"codex", "continuity", "replay"},
	Tools: []string{"fs.list", "fs.read", "web", "github.*"},
}

// testFiles finds the workflows of testdata.
func testFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return files
}

func readFile(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func mustParse(t testing.TB, text string) *Workflow {
	t.Helper()
	w, err := Parse("test.yaml", []byte(text), settings)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return w
}

// The complaints about a file stand beside it, as a person would see them.
func TestBadWorkflowsAreRefusedWithTheseComplaints(t *testing.T) {
	for _, file := range testFiles(t, "bad/*/*.yaml") {
		_, err := Parse(filepath.Base(file), readFile(t, file), settings)
		if problems := new(*Problems); !errors.As(err, problems) || !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%s: %v, want *Problems", file, err)
			continue
		}
		golden := strings.TrimSuffix(file, ".yaml") + ".want"
		got := err.Error() + "\n"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if want := string(readFile(t, golden)); got != want {
			t.Errorf("%s: complaints\n%swant\n%s", file, got, want)
		}
	}
}

func TestGoodWorkflowsAreRead(t *testing.T) {
	for _, file := range testFiles(t, "good/*.yaml") {
		if w, err := Parse(filepath.Base(file), readFile(t, file), settings); err != nil {
			t.Errorf("%v", err)
		} else if !bytes.Equal(w.Text, readFile(t, file)) {
			t.Errorf("%s: the text is not kept as it was read", file)
		}
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	w, err := Parse("x.yaml", readFile(t, "testdata/good/every_key.yaml"), settings)
	if err != nil {
		t.Fatal(err)
	}
	if w.ID != "every_key-1" || w.Name != "Every key" || w.Description != "Uses each key at least once." {
		t.Errorf("%q %q %q", w.ID, w.Name, w.Description)
	}
	inputs := []Field{
		{Name: "topic", Type: String},
		{Name: "tone", Type: String, Enum: []string{"plain", "warm"}, Default: "plain", Description: "how it sounds"},
		{Name: "words", Type: Integer, Default: 1000},
		{Name: "share", Type: Number, Default: 0.5},
		{Name: "short", Type: Boolean, Default: false},
		{Name: "tags", Type: Array, Default: []any{"a", map[string]any{"b": 1.0}}},
		{Name: "style", Type: Object, Default: map[string]any{"font": "serif", "sizes": []any{1.0, 2.5}}},
		{Name: "note", Type: String, Optional: true},
	}
	if !reflect.DeepEqual(w.Inputs, inputs) {
		t.Errorf("inputs %+v\nwant %+v", w.Inputs, inputs)
	}
	research := w.Node("research")
	if got := fmt.Sprintf("%s by %s with %s and %s, %d attempts, line %d", research.Name, research.Agent, research.Model, research.View, research.MaxAttempts, research.Line); got != "Find sources by researcher with demo and codex, 5 attempts, line 16" {
		t.Errorf("research: %s", got)
	}
	if research.Brief != "Find sources.\n\nName them." || len(research.SuccessCriteria) != 2 || len(research.Inputs) != 3 || len(research.Outputs) != 4 || research.Check == nil {
		t.Errorf("research: %+v", research)
	}
	if !reflect.DeepEqual(research.Tools, tool.Policy{Allow: []string{"fs.read", "github.*"}, Otherwise: tool.Deny}) {
		t.Errorf("the tools of research: %+v", research.Tools)
	}
	draft := w.Node("draft")
	if !reflect.DeepEqual(draft.Tools, tool.Policy{Allow: []string{"fs.*"}, Ask: []string{"web"}, Deny: []string{"*.delete"}, Otherwise: tool.Deny}) || draft.MaxAttempts != 3 || draft.Inputs != nil {
		t.Errorf("draft: %+v", draft)
	}
	publish, drop := w.Node("publish"), w.Node("drop")
	if publish.Approval == nil || publish.Approval.Question != "Shall the draft be published?" || drop.Tools.Decide("any") != tool.Allow {
		t.Errorf("publish: %+v, drop: %+v", publish, drop)
	}
	back := w.Edges[4]
	if back.From != "publish" || back.Max != 2 || !back.Continue || back.When == nil || !slices.Equal(back.Body, []string{"draft", "publish"}) || !w.Edges[3].Otherwise {
		t.Errorf("the edges: %+v", w.Edges)
	}
}

func TestDefaultsAreThoseOfTheTypes(t *testing.T) {
	w, err := Parse("some/where/short_one.yml", []byte("nodes:\n  greet: {brief: Say hello.}\n"), Known{})
	if err != nil {
		t.Fatal(err)
	}
	want := Node{ID: "greet", Name: "greet", Brief: "Say hello.", Tools: tool.Policy{Otherwise: tool.Allow}, MaxAttempts: 3, Retry: Retry{24 * time.Hour, 200}, Join: JoinAny, Line: 2}
	if w.ID != "short_one" || w.Name != "short_one" || w.Outputs != nil || w.Edges != nil || !reflect.DeepEqual(w.Nodes, []Node{want}) {
		t.Errorf("%+v", w)
	}
}

// A run that has begun goes on where an agent is gone since: only what the settings define may be anything.
func TestAnyKnowsEveryName(t *testing.T) {
	text := []byte("nodes:\n  a: {brief: b, agent: gone, model: gone, view: gone, tools: [gone]}\n")
	if w, err := Parse("x.yaml", text, Known{Any: true}); err != nil || w.Nodes[0].Agent != "gone" {
		t.Errorf("%v, %v", w, err)
	}
	if _, err := Parse("x.yaml", text, Known{}); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("nothing is known, and the complaints are: %v", err)
	}
	if _, err := Parse("x.yaml", text, Known{Tools: []string{}}); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("there are no tools, and the complaints are: %v", err)
	}
	if _, err := Parse("x.yaml", append(text, "edges: [a -> gone]"...), Known{Any: true}); err == nil {
		t.Error("an edge leads to a node that there is not")
	}
}

func TestTheBodyOfALoopIsInTheOrderOfTheFile(t *testing.T) {
	w, err := Parse("loops.yaml", readFile(t, "testdata/good/loops.yaml"), settings)
	if err != nil {
		t.Fatal(err)
	}
	for edge, want := range map[int]string{0: "", 4: "join", 5: "begin left right join", 8: "inner last", 9: "begin left right join inner last"} {
		if got := strings.Join(w.Edges[edge].Body, " "); got != want {
			t.Errorf("edge %s -> %s: body %q, want %q", w.Edges[edge].From, w.Edges[edge].To, got, want)
		}
	}
	for id, want := range map[string]string{"begin": "begin left right join inner last", "end": "begin left right join inner last", "nobody": ""} {
		if got := strings.Join(w.Ancestors(id), " "); got != want {
			t.Errorf("before %s: %q, want %q", id, got, want)
		}
	}
}

// A complaint about an expression points at the word that is wrong, which is wrng here.
func TestComplaintsPointIntoTheExpression(t *testing.T) {
	for _, form := range []string{
		"check: outputs.wrng == 1",
		"check:   'outputs.wrng == 1'",
		`check: "outputs.wrng == 1"`,
		"check: |\n      true and\n        outputs.wrng == 1\n",
		"check: |-\n\n      outputs.wrng\n      == 1\n",
		"{brief: ä, check: 'true and outputs.wrng'}",
		"check: '\"ä\" == outputs.wrng'",
	} {
		text := "nodes:\n  a:\n    brief: b\n    " + form
		if strings.HasPrefix(form, "{") {
			text = "nodes:\n  a: " + form
		}
		_, err := Parse("x.yaml", []byte(text), settings)
		var problems *Problems
		if !errors.As(err, &problems) || len(problems.List) != 1 {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		before, _, _ := strings.Cut(text, "wrng")
		line := strings.Count(before, "\n") + 1
		column := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
		if problem := problems.List[0]; problem.Line != line || problem.Column != column {
			t.Errorf("%s\n%v\nwant %d:%d", text, err, line, column)
		}
	}
}

func TestProblemsAreBoundedAndInOrder(t *testing.T) {
	var text strings.Builder
	text.WriteString("nodes:\n  a: {brief: b}\nedges:\n")
	for range 500 {
		text.WriteString("  - a -> nobody\n")
	}
	_, err := Parse("many.yaml", []byte(text.String()), settings)
	var problems *Problems
	if !errors.As(err, &problems) || len(problems.List) != 20 || !strings.HasSuffix(err.Error(), "\nand 480 more") {
		t.Fatalf("%v", err)
	}
	for i, problem := range problems.List {
		if problem.Line != 4+i {
			t.Errorf("problem %d is in line %d, want %d", i, problem.Line, 4+i)
		}
	}
}

// workPerByte bounds what a file may allocate, in bytes for each byte of it: the measure of work that is the same on
// every machine. As many keys as are allowed, each on a short line, come to three quarters of it.
const workPerByte = 4 << 10

// Hostile files are refused without work that grows out of hand; internal/yamltree tests more that are so by their
// form.
func TestHostileFilesAreRefusedWithLittleWork(t *testing.T) {
	chain := func(n int, edge string) string {
		var text strings.Builder
		text.WriteString("nodes:\n")
		for i := range n {
			fmt.Fprintf(&text, "  n%d: {brief: b}\n", i)
		}
		text.WriteString("edges:\n")
		for i := range n {
			for j := range n {
				if i != j {
					fmt.Fprintf(&text, edge, i, j)
				}
			}
		}
		return text.String()
	}
	for name, text := range map[string]string{
		"brackets":             "nodes: " + strings.Repeat("[", 100_000),
		"indents":              indents(600),
		"bytes":                "nodes: {a: {brief: " + strings.Repeat("x", yamlform.MaxBytes) + "}}",
		"keys":                 "nodes: {a: {brief: b}}\n" + numbered(15_000, "k%d: 1\n"),
		"just too few keys":    "nodes: {a: {brief: b}}\n" + numbered(4_900, "k%d: 1\n"),
		"edges":                "nodes: {a: {brief: b}}\nedges:\n" + strings.Repeat("- a -> a\n", 20_000),
		"a dense graph":        chain(31, "  - n%d -> n%d\n"),
		"loops over loops":     chain(31, "  - {from: n%d, to: n%d, when: visit < 3, max: 3}\n"),
		"an expression":        "nodes: {a: {brief: b, check: '" + strings.Repeat("(", 100_000) + "'}}",
		"a deep expression":    "nodes: {a: {brief: b, check: '" + strings.Repeat("(", 1900) + "'}}",
		"a list in expression": "nodes: {a: {brief: b, check: '[" + strings.Repeat("1,", 950) + "] == visit'}}",
		"not not":              "nodes: {a: {brief: b, check: '" + strings.Repeat("!", 1900) + "true'}}",
	} {
		var err error
		work := allocated(func() { _, err = Parse("hostile.yaml", []byte(text), settings) })
		if !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if most := uint64(1<<20 + workPerByte*len(text)); work > most {
			t.Errorf("%s: %d bytes are allocated for a file of %d, more than %d", name, work, len(text), most)
		}
	}
}

// allocated is how many bytes a function allocates.
func allocated(does func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	does()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func indents(levels int) string {
	var text strings.Builder
	for level := range levels {
		text.WriteString(strings.Repeat(" ", level) + "a:\n")
	}
	return text.String()
}

func numbered(n int, format string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

// FuzzParse reads any bytes as a workflow. Whatever they are, Parse ends with a workflow whose parts go together,
// or with problems that are each on a line of their own and point into the file.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"good/*.yaml", "bad/*/*.yaml"} {
		for _, file := range testFiles(f, pattern) {
			f.Add(readFile(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		w, err := Parse("f.yaml", text, settings)
		if err == nil {
			checkWorkflow(t, w)
			return
		}
		var problems *Problems
		if !errors.As(err, &problems) || len(problems.List) == 0 || len(problems.List) > yamlform.MaxProblems {
			t.Fatalf("not problems: %v", err)
		}
		lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + 1
		for _, problem := range problems.List {
			if problem.Line < 1 || problem.Line > lines || problem.Column < 1 || problem.Message == "" || strings.ContainsAny(problem.String(), "\n\r") {
				t.Fatalf("a problem that points nowhere in %d lines, or on several: %q", lines, problem)
			}
		}
	})
}

// checkWorkflow checks what a run relies on.
func checkWorkflow(t *testing.T, w *Workflow) {
	if len(w.Nodes) == 0 || w.ID == "" || w.Name == "" {
		t.Fatalf("a workflow without nodes or names: %+v", w)
	}
	for _, edge := range w.Edges {
		if w.Node(edge.From) == nil || w.Node(edge.To) == nil || (edge.Max > 0) != (len(edge.Body) > 0) {
			t.Fatalf("an edge that leads nowhere, or whose loop is not known: %+v", edge)
		}
		if edge.Max > 0 && (!slices.Contains(edge.Body, edge.From) || !slices.Contains(edge.Body, edge.To)) {
			t.Fatalf("a loop without its ends: %+v", edge)
		}
	}
	for _, e := range expressionsOf(w) {
		if e.program == nil || e.Line < 1 {
			t.Fatalf("an expression that cannot be computed: %+v", e)
		}
		_, _ = e.Eval(Values{})
		_, _ = e.Holds(Values{Inputs: map[string]any{"a": 1.0}, Outputs: map[string]any{"text": "x"}, Visit: 1})
	}
}

// expressionsOf are all expressions of a workflow.
func expressionsOf(w *Workflow) (found []*Expression) {
	bindings := slices.Clone(w.Outputs)
	for _, node := range w.Nodes {
		bindings = append(bindings, node.Inputs...)
		if node.Check != nil {
			found = append(found, node.Check)
		}
	}
	for _, binding := range bindings {
		found = append(found, binding.Value)
	}
	for _, edge := range w.Edges {
		if edge.When != nil {
			found = append(found, edge.When)
		}
	}
	return found
}
