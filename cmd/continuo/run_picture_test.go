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
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// began is when the runs of these tests begin.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// after is so many seconds later.
func after(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// someRun is a run in the middle: a step is done, one goes on for the second time, others wait.
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

// aView is a view of someRun that has heard when its steps began and what the one under way says.
func aView(said string) *runView {
	v := newRunView(someRun(), false)
	event := func(node string, kind continuo.RunEventKind, at int) {
		v.take(engine.RunProgress{Entry: &continuo.Entry{NodeID: node, CreatedAt: after(at), RunEvent: &continuo.RunEvent{Kind: kind}}})
	}
	event("research", continuo.RunNodeBegan, 0)
	event("research", continuo.RunNodeFinished, 12)
	event("draft", continuo.RunNodeBegan, 12)
	event("draft", continuo.RunNodeFinished, 30)
	event("draft", continuo.RunNodeBegan, 60)
	v.take(engine.RunProgress{Turn: &turn.Event{Kind: turn.TextDelta, TurnID: "turn_1", Text: said}})
	return v
}

// TestRunPictures draws a run in terminals of several sizes. UPDATE_GOLDEN=1 rewrites what is expected.
func TestRunPictures(t *testing.T) {
	const said = "Tea was first drunk in China.\n\n茶は中国で最初に飲まれた。 It is better from a warm pot, ✅ as experts know."
	calls := aView(said)
	calls.take(engine.RunProgress{Turn: &turn.Event{Kind: turn.Called, TurnID: "turn_1", Call: &continuo.ToolCall{Name: "fs.read", Arguments: "{\"path\":\"@project/tea\x1b[2J.md\"}"}}})
	stopping := aView(said)
	stopping.stopping = true
	over := aView(said)
	over.status.State = continuo.RunFailed

	var got strings.Builder
	draw := func(name string, f frame, lines []row) {
		fmt.Fprintf(&got, "== %s, %d columns, %d lines\n", name, f.width, f.height)
		for _, line := range lines {
			if line.width() > f.width {
				t.Errorf("%s: %q is %d columns wide, and there are %d", name, line.plain(), line.width(), f.width)
			}
			fmt.Fprintf(&got, "%s\n", line.plain())
		}
		if f.height > 0 && len(lines) > f.height {
			t.Errorf("%s: %d lines, and there is room for %d", name, len(lines), f.height)
		}
	}
	for _, width := range []int{119, 79, 39, 20} {
		f := frame{width: width, now: after(75), beat: 3}
		draw("says", f, aView(said).picture(f))
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
			f := frame{width: width, height: height, now: after(100), beat: width}
			lines := aView("漢字🙂\x1b[31m\r\n e\u0301" + strings.Repeat("x", width)).picture(f)
			if len(lines) > height {
				t.Errorf("%d lines in %d", len(lines), height)
			}
			for _, line := range lines {
				if line.width() > width || strings.ContainsFunc(line.plain(), steers) {
					t.Errorf("%d columns: %q", width, line.plain())
				}
			}
		}
	}
}

// TestTailKeepsTheEnd holds for texts of any script: the end is what is seen, on one line that fits.
func TestTailKeepsTheEnd(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("long ", 1000) + "end", strings.Repeat("漢字", 1000) + "終", "a\nb\tc end", "bad \xff end"} {
		line := lineEnd(tailOf(text, saidBytes), 20)
		if cells(line) > 20 || strings.ContainsFunc(line, steers) {
			t.Errorf("%q is %d columns wide", line, cells(line))
		}
		if last := []rune(text); !strings.HasSuffix(line, string(last[len(last)-1])) {
			t.Errorf("the end of %.20q… became %q", text, line)
		}
	}
}

// TestStretch writes durations as people say them.
func TestStretch(t *testing.T) {
	for seconds, want := range map[int]string{-5: "0 s", 0: "0 s", 59: "59 s", 60: "1 min 0 s", 3599: "59 min 59 s", 3600: "1 h 0 min", 3725: "1 h 2 min", 5_000_000: "1 388 h 53 min"} {
		if got := stretch(time.Duration(seconds) * time.Second); got != want {
			t.Errorf("%d seconds are %q, want %q", seconds, got, want)
		}
	}
}

// screen is a terminal as far as pictures need one: it knows their sequences, and breaks lines anew when it
// becomes narrower.
type screen struct {
	width  int
	lines  [][]rune // logical lines; the last one is where text may still go
	line   int      // of the cursor
	writes int
}

func (s *screen) Write(text []byte) (int, error) {
	s.writes++
	rest := string(text)
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, "\x1b["):
			rest = s.sequence(rest[2:])
		case rest[0] == '\r':
			rest = rest[1:]
		case rest[0] == '\n':
			s.line++
			s.grow()
			rest = rest[1:]
		default:
			end := strings.IndexAny(rest, "\x1b\r\n")
			if end < 0 {
				end = len(rest)
			}
			s.grow()
			s.lines[s.line] = []rune(rest[:end]) // the painter writes whole lines from their beginning
			rest = rest[end:]
		}
	}
	return len(text), nil
}

func (s *screen) grow() {
	for len(s.lines) <= s.line {
		s.lines = append(s.lines, nil)
	}
}

func (s *screen) sequence(rest string) string {
	var n int
	switch end := strings.IndexAny(rest, "AJKhl"); rest[end] {
	case 'A':
		_, _ = fmt.Sscanf(rest, "%dA", &n)
		for n > 0 && s.line > 0 { // rows are counted, not lines
			s.line--
			n -= max(1, (len(s.lines[s.line])+s.width-1)/s.width)
		}
		return rest[end+1:]
	case 'J':
		s.lines = s.lines[:min(s.line, len(s.lines))]
		return rest[end+1:]
	default:
		return rest[end+1:]
	}
}

func (s *screen) String() string {
	var lines []string
	for _, line := range s.lines {
		lines = append(lines, string(line))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// TestPainter shows pictures over one another: each is where the one before was, what stands above is
// left alone, the same picture is not written again, and a terminal that becomes narrower is repainted in place.
func TestPainter(t *testing.T) {
	terminal := &screen{width: 40, lines: [][]rune{[]rune("before")}, line: 1}
	p := painter{out: terminal}
	picture := func(texts ...string) []row {
		var lines []row
		for _, text := range texts {
			lines = append(lines, row{plain(text)})
		}
		return lines
	}
	expect := func(want ...string) {
		t.Helper()
		if got := terminal.String(); got != strings.Join(want, "\n") {
			t.Fatalf("the screen shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
	}
	p.show(picture("one", strings.Repeat("x", 30), "three"), 40)
	expect("before", "one", strings.Repeat("x", 30), "three")
	p.show(picture("one", "two"), 40)
	expect("before", "one", "two")
	writes := terminal.writes
	p.show(picture("one", "two"), 40)
	if terminal.writes != writes {
		t.Error("an unchanged picture was written again")
	}
	p.show(picture("one", strings.Repeat("y", 30)), 40)
	terminal.width = 12
	p.show(picture("narrow", "er"), 12)
	expect("before", "narrow", "er")
	_, _ = fmt.Fprint(terminal, "ok? \n› y\n")
	p.wrote(4, 3)
	p.show(picture("decided"), 12)
	expect("before", "decided")
	p.keep()
	p.show(picture("another"), 12)
	expect("before", "decided", "another")
}
