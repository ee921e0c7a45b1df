package turn_test

import (
	"context"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// gives is a tool with an output of its own.
type gives struct {
	echo
	text string
}

func (g gives) Run(context.Context, tool.Call) tool.Result { return tool.Result{Content: g.text} }

// TestAnOutputAboveTheLimitFailsItsCall tries outputs at the limit, above it, and above what an entry holds.
func TestAnOutputAboveTheLimitFailsItsCall(t *testing.T) {
	const limit = 300_000
	for size, kept := range map[int]bool{1000: true, limit: true, limit + 1: false} {
		h := newHouse(t, asks(`large {}`), says("Done."))
		h.runner.Tools = tool.Set{gives{echo{name: "large"}, strings.Repeat("x", size)}}
		h.runner.Limits.OutputBytes = limit
		if last := h.say("go"); last.Kind != turn.Finished {
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
