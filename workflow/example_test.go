package workflow_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

// exampleNames is what the examples name, beside what every program has.
var exampleNames = workflow.Known{Agents: []string{"reader", "skeptic", "writer"}, Models: []string{"demo"}, Views: []string{"continuity", "codex", "replay"}, Tools: []string{"conversation.search", "fs.list", "fs.read", "fs.search"}}

func TestTheExampleIsAWorkflowThatNeedsNoInputs(t *testing.T) {
	example, err := workflow.Parse("example.yaml", workflow.Example(), workflow.Known{Agents: []string{}, Models: []string{"demo"}, Views: exampleNames.Views, Tools: exampleNames.Tools})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := example.ReadInputs(nil); err != nil || example.ID != "example" || len(example.Nodes) < 6 {
		t.Errorf("%s, %d nodes, without inputs: %v", example.ID, len(example.Nodes), err)
	}
	for _, node := range example.Nodes {
		if node.Approval != nil {
			t.Errorf("the node %s waits for a person: one command must bring the example to its end", node.ID)
		}
	}
}

func TestTheExamplesToCopyAreWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "examples", "workflows", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := workflow.Parse(filepath.Base(file), text, exampleNames)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if parsed.ID+".yaml" != filepath.Base(file) {
			t.Errorf("%s has the id %s", file, parsed.ID)
		}
	}
}

// A reader of the pages copies what stands there: each block that is a whole workflow must be one.
func TestTheWorkflowsInThePagesAreWorkflows(t *testing.T) {
	found := 0
	for _, page := range []string{"../README.md", "../docs/workflows.md"} {
		for _, block := range yamlBlocks(t, page) {
			if !strings.Contains(block, "\n    brief: ") && !strings.Contains(block, "{brief: ") || strings.Contains(block, "agent: ") {
				continue // a part of one
			}
			found++
			if _, err := workflow.Parse("page.yaml", []byte(block), exampleNames); err != nil {
				t.Errorf("%s:\n%v", page, err)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d whole workflows were found in the pages, want 3", found)
	}
}

// The page shows a workflow and what a step of it is shown, word for word.
func TestThePageShowsWhatAStepIsShown(t *testing.T) {
	page := "../docs/workflows.md"
	blocks := yamlBlocks(t, page)
	at := slices.IndexFunc(blocks, func(block string) bool { return strings.HasPrefix(block, "name: Write a report\n") })
	if at < 0 {
		t.Fatal("the workflow is gone from the page")
	}
	report, err := workflow.Parse("report.yaml", []byte(blocks[at]), exampleNames)
	if err != nil {
		t.Fatal(err)
	}
	state := workflow.NewState(report, "run_0199c0de")
	began, err := report.Begin("run_0199c0de", "", []byte(`{"topic": "tea"}`))
	if err != nil || state.Apply(&began) != nil {
		t.Fatal(err)
	}
	cue := state.Cue(state.Next())
	applyAll(t, state, cue)
	applyAll(t, state, state.Conclude(workflow.Step{Kind: workflow.StepAttend, Node: report.Node("research"), Visit: 1, Attempt: 1},
		[]string{"```json\n{\"summary\": \"Tea is made of leaves.\", \"sources\": [\"a leaf\", \"a pot\"]}\n```"}, false)...)
	step := state.Next()
	texts, err := state.Texts(step)
	if err != nil || step.Node.ID != "draft" {
		t.Fatal(step, err)
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if !strings.Contains(string(written), "``\n"+text+"\n``") {
			t.Errorf("the page does not show\n%s", text)
		}
	}
	if cue := state.Cue(step).Content.String(); !strings.Contains(string(written), "`"+cue+"`") {
		t.Errorf("the page does not show the cue: %s", cue)
	}
}

func applyAll(t *testing.T, state *workflow.State, entries ...continuo.Entry) {
	t.Helper()
	for i := range entries {
		if err := state.Apply(&entries[i]); err != nil {
			t.Fatal(err)
		}
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func yamlBlocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, found := range yamlBlock.FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(found[1]))
	}
	return blocks
}
