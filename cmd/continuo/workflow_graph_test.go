package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/workflow"
)

// TestWorkflowsDrawn draws workflows of many shapes. UPDATE_GOLDEN=1 rewrites what is expected.
func TestWorkflowsDrawn(t *testing.T) {
	const step = ": {brief: Do it.}\n"
	shapes := []struct{ name, nodes, edges string }{
		{"one", "a", ""},
		{"chain", "a b c", "a -> b; b -> c"},
		{"diamond in a chain", "a b c d e", "a -> b; a -> c; b -> d; c -> d; d -> e"},
		{"branches of two", "a b b2 c d", "a -> b; b -> b2; a -> c; b2 -> d; c -> d"},
		{"a way past", "a b c", "a -> b; b -> c; a -> c"},
		{"two beginnings", "a b c", "a -> c; b -> c"},
		{"apart", "a b c", "b -> c"},
		{"nested", "a b c d e f g", "a -> b; a -> c; b -> d; b -> e; d -> f; e -> f; f -> g; c -> g"},
		{"joins that overlap", "a b c d e f g", "a -> b; a -> c; a -> d; b -> e; c -> e; c -> f; d -> f; e -> g; f -> g"},
	}
	var got strings.Builder
	for _, shape := range shapes {
		text := "nodes:\n"
		for id := range strings.FieldsSeq(shape.nodes) {
			text += "  " + id + step
		}
		if shape.edges != "" {
			text += "edges:\n  - " + strings.ReplaceAll(shape.edges, "; ", "\n  - ") + "\n"
		}
		draw(t, &got, shape.name, []byte(text))
	}
	draw(t, &got, "the example", workflow.Example())

	golden := filepath.Join("testdata", "pictures", "workflow.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		write(t, golden, got.String())
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the drawings differ from %s; look at them, and rewrite it with UPDATE_GOLDEN=1. Now they are:\n%s", golden, got.String())
	}
}

// draw draws a workflow, in which each node must have one line.
func draw(t *testing.T, to *strings.Builder, name string, text []byte) {
	t.Helper()
	parsed, err := workflow.Parse("drawn.yaml", text, workflow.Known{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	to.WriteString("== " + name + "\n")
	drawn := 0
	for _, line := range drawWorkflow(parsed, false) {
		if strings.ContainsAny(term.Plain(line), "○?") {
			drawn++
		}
		to.WriteString(term.Plain(line) + "\n")
	}
	if drawn != len(parsed.Nodes) {
		t.Errorf("%s: %d of %d nodes were drawn", name, drawn, len(parsed.Nodes))
	}
}
