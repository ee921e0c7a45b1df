package turn_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// outputTool is a tool with an output of its own.
type outputTool struct {
	echo
	text string
}

func (g outputTool) Run(context.Context, tool.Call) tool.Result { return tool.Result{Content: g.text} }

// TestAnOutputAboveTheLimitFailsItsCall tries outputs at the limit, above it, and above what an entry holds.
func TestAnOutputAboveTheLimitFailsItsCall(t *testing.T) {
	const limit = 300_000
	for size, kept := range map[int]bool{1000: true, limit: true, limit + 1: false} {
		h := newHouse(t, asks(`large {}`), textAnswer("Done."))
		h.runner.Tools = tool.Set{outputTool{echo{name: "large"}, strings.Repeat("x", size)}}
		h.runner.Limits.OutputBytes = limit
		if last := h.send("go"); last.Kind != turn.Finished {
			t.Fatalf("%d bytes: %+v", size, last)
		}
		result := h.entries()[2]
		whole, err := h.log.WholeContent(t.Context(), &result)
		if err != nil {
			t.Fatal(err)
		}
		got := whole.String()
		if kept && (got != strings.Repeat("x", size) || result.PartType != "tool_result") {
			t.Errorf("%d bytes: %d are kept, %s", size, len(got), result.PartType)
		}
		if !kept && (result.PartType != "tool_error" || !strings.Contains(got, "ask for less") || !strings.Contains(got, "tools.max_output_bytes")) {
			t.Errorf("%d bytes: %s: %.300s", size, result.PartType, got)
		}
		if large := size == limit; large != (result.Output != nil) {
			t.Errorf("%d bytes are kept as %+v", size, result.Output)
		}
		if second := h.model.bodies[1]; size == limit && (!strings.Contains(second, "300000 bytes") || !strings.Contains(second, "Full output: "+result.OutputRef) || len(second) > 10_000) {
			t.Errorf("the model is shown %d bytes: %.3000s", len(second), second)
		}
	}
}

type badTool struct{ echo }

func (badTool) Run(context.Context, tool.Call) tool.Result { return tool.Result{Content: "caf\xe9"} }

func TestAnOutputThatIsNoUTF8(t *testing.T) {
	h := newHouse(t, asks("bad {}"), textAnswer("fine"))
	h.runner.Tools = tool.Set{badTool{echo{name: "bad"}}}
	last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
	if err != nil || last.Kind != turn.Finished {
		t.Errorf("%v %v; entries %d", last.Kind, err, len(h.entries()))
	}
}

type bigTool struct{ echo }

func (bigTool) Run(context.Context, tool.Call) tool.Result {
	return tool.Result{Content: strings.Repeat("x", 33<<20)}
}

func TestALargeOutputIsKept(t *testing.T) {
	h := newHouse(t, asks("bad {}"), textAnswer("fine"))
	h.runner.Tools = tool.Set{bigTool{echo{name: "bad"}}}
	last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
	if err != nil || last.Kind != turn.Finished {
		t.Errorf("%v %v; entries %d", last.Kind, err, len(h.entries()))
	}
}

type endlessCalls struct{ given int }

func (*endlessCalls) Info() model.Info {
	return model.Info{Provider: "script", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat}
}

func (e *endlessCalls) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for i := range 64 << 10 {
			d := model.Delta{ToolCall: &model.ToolCallDelta{Index: i, ID: fmt.Sprint(i), Type: "function", Name: strings.Repeat("n", 1000)}}
			e.given += 1000
			if !yield(d, nil) {
				return
			}
		}
		yield(model.Delta{}, &model.Error{Reason: continuo.ReasonNetwork, Message: "end"})
	}
}

func TestAnAnswerWithTooManyCallsEnds(t *testing.T) {
	h := newHouse(t)
	m := &endlessCalls{}
	h.runner.Model = m
	_, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
	if m.given > 17<<20 {
		t.Errorf("took %d MB of an answer, the limit is 16 MB; %v", m.given>>20, fmt.Sprint(err)[:min(200, len(fmt.Sprint(err)))])
	}
}

// TestAToolThatDoesNotListenIsLeftBehind: neither its turn nor its conversation may wait for ever.
func TestAToolThatDoesNotListenIsLeftBehind(t *testing.T) {
	for name, stop := range map[string]func(*turn.Journal){"timeout": func(*turn.Journal) {}, "cancel": func(j *turn.Journal) { j.Stop(nil) }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				h := newHouse(t, asks("stuck {}", "echo {}"), textAnswer("fine"))
				h.runner.Tools = tool.Set{echo{name: "stuck", begin: func() { <-release }}, echo{name: "echo"}}
				journal := h.begin(context.Background())
				ran := make(chan error, 1)
				go func() { ran <- h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}) }()
				time.Sleep(time.Second)
				stop(journal)
				select {
				case err := <-ran:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(5 * time.Minute):
					t.Fatal("the turn never ends")
				}
				if got := shapes(h.entries())[2:4]; !strings.HasPrefix(got[0], "tool call_0 error: ") || got[1] != "tool call_1 {}" {
					t.Errorf("results: %q", got)
				}
			})
		})
	}
}

// TestTheOutputsOfOneAnswerAreBoundedTogether has a model ask for many large outputs at once.
func TestTheOutputsOfOneAnswerAreBoundedTogether(t *testing.T) {
	h := newHouse(t, asks(slices.Repeat([]string{"large {}"}, 20)...), textAnswer("fine"))
	h.runner.Tools = tool.Set{mebibyteTool{echo{name: "large"}}}
	h.runner.Limits.OutputBytes = 1 << 20
	if last := h.send("go"); last.Kind != turn.Finished {
		t.Fatalf("%+v", last)
	}
	kept := 0
	for _, e := range h.entries() {
		if e.PartType == "tool_result" {
			kept++
		} else if e.Role == continuo.Tool && !strings.Contains(e.Content.String(), "4194304 bytes together") {
			t.Errorf("%.200s", e.Content.String())
		}
	}
	if kept != 4 {
		t.Errorf("%d outputs are kept, want 4", kept)
	}
}

// mebibyteTool is a tool with an output of just that size.
type mebibyteTool struct{ echo }

func (mebibyteTool) Run(context.Context, tool.Call) tool.Result {
	return tool.Result{Content: strings.Repeat("x", 1<<20)}
}
