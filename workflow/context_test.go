package workflow_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

func TestDeclaredInputsAreTheWholeContextOfAStep(t *testing.T) {
	for inputs, shown := range map[string]bool{"": true, ", inputs: {x: len(nodes.a.text)}": false} {
		p := begin(t, "id: two\nnodes:\n  a: {brief: x}\n  b: {brief: y"+inputs+"}\nedges: [a -> b]\n", func(workflow.Step) string { return "a long answer" })
		for p.state.Next().Node.ID == "a" {
			p.append(p.state.Cue(p.state.Next()))
			p.append(p.state.Conclude(p.state.Next(), []string{"a long answer"}, false)...)
		}
		texts, err := p.state.Texts(p.state.Next())
		if err != nil || p.state.Run != continuo.RunRunning {
			t.Fatal(err)
		}
		if got := texts[2]; strings.Contains(got, "a long answer") != shown || strings.Contains(got, "outputs of earlier steps") != shown || !shown && !strings.Contains(got, "- x: 13") {
			t.Errorf("with %q the context is\n%s", inputs, got)
		}
	}
}

// Large values are shown by their beginnings and ends, with the path of the whole; many of them by less, and small ones whole.
func TestLargeValuesOfAStepAreShownByPreviews(t *testing.T) {
	for inputs, path := range map[string]string{
		"":                                  "@state/runs/run_1/steps/a.json",
		", inputs: {x: nodes.a.text, y: 7}": "@state/runs/run_1/steps/a.json",
		", inputs: {x: inputs.topic, y: 7}": "@state/runs/run_1/inputs.json",
	} {
		p := begin(t, "id: two\ninputs: {topic: {type: string, default: "+strings.Repeat("t", 9000)+"}}\nnodes:\n  a: {brief: x}\n  b: {brief: y"+inputs+"}\nedges: [a -> b]\n", nil)
		for p.state.Next().Node.ID == "a" {
			p.append(p.state.Cue(p.state.Next()))
			p.append(p.state.Conclude(p.state.Next(), []string{"begin " + strings.Repeat("x", 40_000) + " end"}, false)...)
		}
		texts, err := p.state.Texts(p.state.Next())
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(texts[2], p.state.RunID, "run_1")
		if len(got) > 4000 || !strings.Contains(got, "characters left out ...]") || !strings.Contains(got, "\n  Full output: "+path) {
			t.Errorf("with %q %d bytes of context:\n%s", inputs, len(got), got)
		}
		if inputs != "" && !strings.Contains(got, "\n- y: 7") {
			t.Errorf("a small value is not shown whole:\n%s", got)
		}
	}
}
