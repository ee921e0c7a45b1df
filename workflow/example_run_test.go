package workflow_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/workflow"
)

// examplePlayer carries a run out with the demo model and nothing else: no engine, no store.
type examplePlayer struct {
	t        *testing.T
	state    *workflow.State
	messages []map[string]any
	steps    []string // the nodes in the order in which they finished
	called   []string // the tools
	refused  int
}

func playExample(t *testing.T, w *workflow.Workflow, inputs string) *examplePlayer {
	t.Helper()
	p := &examplePlayer{t: t, state: workflow.NewState(w, "run_1")}
	read, err := w.ReadInputs([]byte(inputs))
	if err != nil {
		t.Fatal(err)
	}
	began, err := w.Begin("run_1", "", read)
	if err != nil {
		t.Fatal(err)
	}
	p.apply(began)
	for range 50 {
		if p.state.Run == continuo.RunWaiting {
			node := p.state.Waiting()[0]
			p.apply(p.state.Decide(node, p.state.Visit(node.ID) > 1, "shorter")...) // what is asked for again is good
			continue
		}
		step := p.state.Next()
		switch step.Kind {
		case workflow.StepNone:
			return p
		case workflow.StepRecord:
			p.apply(p.state.Record()...)
		default:
			p.apply(p.state.Cue(step))
			step.Kind = workflow.StepAttend
			p.apply(p.state.Conclude(step, []string{p.answer(step)}, false)...)
		}
	}
	t.Fatalf("the run has not ended after %s", p.steps)
	return nil
}

func (p *examplePlayer) apply(entries ...continuo.Entry) {
	applyAll(p.t, p.state, entries...)
	for _, entry := range entries {
		switch entry.RunEvent.Kind {
		case continuo.RunNodeFinished:
			p.steps = append(p.steps, entry.NodeID)
		case continuo.RunNodeRefused:
			p.refused++
		}
		if !entry.Hidden {
			p.messages = append(p.messages, map[string]any{"role": "user", "content": entry.Content.String()})
		}
	}
}

// answer asks the model until it makes no more calls. Every tool returns the same.
func (p *examplePlayer) answer(step workflow.Step) string {
	texts, err := p.state.Texts(step)
	if err != nil {
		p.t.Fatal(err)
	}
	var system, offered []map[string]any
	for _, text := range texts {
		system = append(system, map[string]any{"role": "system", "content": text})
	}
	for _, name := range []string{"conversation_search", "fs_read"} {
		offered = append(offered, map[string]any{"type": "function", "function": map[string]any{"name": name}})
	}
	for range 3 {
		answer := &model.Answer{}
		body := rawjson.MustMarshal(map[string]any{"tools": offered, "messages": slices.Concat(system, p.messages)})
		for delta, err := range demo.New(demo.Options{}).Stream(p.t.Context(), body) {
			if err != nil {
				p.t.Fatal(err)
			}
			answer.Add(delta)
		}
		entry := answer.Entry(nil)
		message := map[string]any{"role": "assistant", "content": entry.Content.String()}
		p.messages = append(p.messages, message)
		if len(entry.ToolCalls) == 0 {
			return entry.Content.String()
		}
		message["tool_calls"] = entry.ToolCalls
		for _, call := range entry.ToolCalls {
			p.called = append(p.called, call.Name)
			p.messages = append(p.messages, map[string]any{"role": "tool", "tool_call_id": call.ID, "content": "#1 user\n> Run the workflow."})
		}
	}
	p.t.Fatalf("the step %s does nothing but call", step.Node.ID)
	return ""
}

// The shipped example comes to its end with the demo model: both branches, one round of the loop, one search.
func TestTheExampleRunsWithTheDemoModel(t *testing.T) {
	example, err := workflow.Parse("example.yaml", workflow.Example(), exampleNames)
	if err != nil {
		t.Fatal(err)
	}
	p := playExample(t, example, "")
	if got := strings.Join(p.steps, " "); got != "plan recall ideas draft review draft review finish" || p.refused > 0 {
		t.Errorf("the steps were %s, and %d answers were refused", got, p.refused)
	}
	if got := strings.Join(p.called, " "); got != "conversation_search" {
		t.Errorf("the calls were %s", got)
	}
	status := p.state.Status()
	var outputs map[string]string
	if err := json.Unmarshal(status.Outputs, &outputs); err != nil || p.state.Run != continuo.RunFinished || outputs["title"] == "" || outputs["report"] == "" {
		t.Errorf("the run is %s (%s) and gives %s", p.state.Run, status.Reason, status.Outputs)
	}
}

// So do those to copy.
func TestTheExamplesToCopyRunWithTheDemoModel(t *testing.T) {
	for name, test := range map[string]struct{ inputs, steps string }{
		"investigate":   {`{"question": "where?"}`, "scout code tests answer scout code tests answer"},
		"release-notes": {`{"version": "1.4", "changes": "- faster"}`, "sort write approve write approve announce"},
		"triage":        {`{"message": "How do I pay?"}`, "sort explain close"},
	} {
		file := filepath.Join("..", "examples", "workflows", name+".yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := workflow.Parse(file, text, exampleNames)
		if err != nil {
			t.Error(err)
			continue
		}
		p := playExample(t, parsed, test.inputs)
		if got := strings.Join(p.steps, " "); got != test.steps || p.state.Run != continuo.RunFinished {
			t.Errorf("%s: the run is %s (%s) after the steps %s, want %s", name, p.state.Run, p.state.Reason, got, test.steps)
		}
	}
}
