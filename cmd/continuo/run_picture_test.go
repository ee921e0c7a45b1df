package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// began is when the runs of these tests begin.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// after is so many seconds later.
func after(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// someRun is a run in the middle: a step is done, one runs for the second time, others wait.
func someRun() engine.RunStatus {
	return engine.RunStatus{
		Run: continuo.Run{
			ID: "run_0199c0ffee0071b2a1d3c4e5f6a7b8c9", ConversationID: "conv_0199c0ffee0071b2a1d3c4e5f6a7b8c8", ProjectID: "default",
			WorkflowID: "report", State: continuo.RunRunning, StartedAt: began, UpdatedAt: after(60),
		},
		Status: workflow.Status{
			WorkflowName: "Write a report", Inputs: json.RawMessage(`{"topic":"tea"}`),
			Nodes: []workflow.NodeStatus{
				{ID: "research", Name: "Find sources", Agent: "researcher", State: workflow.NodeFinished, Visit: 1, Attempt: 1},
				{ID: "draft", Name: "下書きを書く 🍵", State: workflow.NodeRunning, Visit: 2, Attempt: 1},
				{ID: "a_step_with_a_very_long_name_indeed", Name: "a_step_with_a_very_long_name_indeed", State: workflow.NodeFailed, Visit: 1, Attempt: 3, Reason: "the output score is missing\nin the answer"},
				{ID: "review", Name: "Read it again", Agent: "editor", State: workflow.NodePending},
				{ID: "mend", Name: "Mend it", State: workflow.NodeSkipped},
				{ID: "release", Name: "Publish", State: workflow.NodeWaiting, Visit: 1, Question: "Publish the report?"},
			},
		},
	}
}

// aView is a view of someRun that has received when its steps began and what the one in progress says.
func aView(output string) *runView {
	v := newRunView(someRun(), false)
	event := func(node string, kind continuo.RunEventKind, at int) {
		v.take(engine.RunProgress{Entry: &continuo.Entry{NodeID: node, CreatedAt: after(at), RunEvent: &continuo.RunEvent{Kind: kind}}})
	}
	event("research", continuo.RunNodeBegan, 0)
	event("research", continuo.RunNodeFinished, 12)
	event("draft", continuo.RunNodeBegan, 12)
	event("draft", continuo.RunNodeFinished, 30)
	event("draft", continuo.RunNodeBegan, 60)
	v.take(engine.RunProgress{Turn: &turn.Event{Kind: turn.TextDelta, TurnID: "turn_1", Text: output}})
	return v
}

// TestRunPictures draws a run in terminals of several sizes. UPDATE_GOLDEN=1 rewrites what is expected.
func TestRunPictures(t *testing.T) {
	const output = "Tea was first drunk in China.\n\n茶は中国で最初に飲まれた。 It is better from a warm pot, ✅ as experts know."
	calls := aView(output)
	calls.take(engine.RunProgress{Turn: &turn.Event{Kind: turn.Called, TurnID: "turn_1", Call: &continuo.ToolCall{Name: "fs.read", Arguments: "{\"path\":\"@project/tea\x1b[2J.md\"}"}}})
	stopping := aView(output)
	stopping.stopping = true
	over := aView(output)
	over.status.State = continuo.RunFailed

	var got strings.Builder
	draw := func(name string, f frame, lines []string) {
		fmt.Fprintf(&got, "== %s, %d columns, %d lines\n", name, f.width, f.height)
		for _, line := range lines {
			if term.Width(line) > f.width {
				t.Errorf("%s: %q is %d columns wide, and there are %d", name, term.Plain(line), term.Width(line), f.width)
			}
			fmt.Fprintf(&got, "%s\n", term.Plain(line))
		}
		if f.height > 0 && len(lines) > f.height {
			t.Errorf("%s: %d lines, and there is room for %d", name, len(lines), f.height)
		}
	}
	for _, width := range []int{119, 79, 39, 20} {
		f := frame{width: width, now: after(75), tick: 3}
		draw("says", f, aView(output).picture(f))
		draw("calls", f, calls.picture(f))
	}
	low := frame{width: 60, height: 7, now: after(75)}
	draw("low", low, aView("").picture(low))
	draw("stopping", low, stopping.picture(low))
	draw("failed", frame{width: 79}, over.finalPicture(frame{width: 79, now: after(9999)}))

	golden := filepath.Join("testdata", "pictures", "run.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		write(t, golden, got.String())
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the pictures differ from %s; look at them, and rewrite it with UPDATE_GOLDEN=1. Now they are:\n%s", golden, got.String())
	}
}

// TestRunPicturesFit draws in every small size: nothing is wider or higher than its frame, and nothing steers the terminal.
func TestRunPicturesFit(t *testing.T) {
	for width := 8; width < 100; width++ {
		for height := 4; height < 14; height++ {
			f := frame{width: width, height: height, now: after(100), tick: width}
			lines := aView("漢字🙂\x1b[31m\r\n e\u0301" + strings.Repeat("x", width)).picture(f)
			if len(lines) > height {
				t.Errorf("%d lines in %d", len(lines), height)
			}
			for _, line := range lines {
				if term.Width(line) > width || term.Clean(line) != line {
					t.Errorf("%d columns: %q", width, term.Plain(line))
				}
			}
		}
	}
}

// screen is a terminal as far as pictures need one: it knows their sequences, and breaks lines again when it
