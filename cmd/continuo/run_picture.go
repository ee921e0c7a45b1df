package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// runView is the visible state of a run: its status, and what its step streams. A picture depends on nothing else.
type runView struct {
	status engine.RunStatus
	edges  []workflow.Edge // of its workflow
	after  int64           // events up to this seq are no longer followed
	paint  term.Style
	// show has the newest visits of nodes, as far as their entries were seen.
	show map[string]visit
	// output is the end of the current step's text, doing its other activity; "" for none.
	output, doing string
	others        map[string]string // text of concurrent turns, by their ids
	turn          string            // the turn of this text
	stopping      bool              // a person has stopped it, and it has not ended yet
}

// visit is when a node began and ended; zero where that is not known.
type visit struct{ began, ended time.Time }

func newRunView(status engine.RunStatus, paint term.Style) *runView {
	return &runView{status: status, paint: paint, show: map[string]visit{}}
}

// take applies one step of the run.
func (v *runView) take(progress engine.RunProgress) {
	if progress.Status != nil {
		v.status = *progress.Status
	}
	if entry := progress.Entry; entry != nil && entry.RunEvent != nil {
		v.takeEvent(entry)
	}
	if progress.Turn != nil {
		v.takeTurn(*progress.Turn)
	}
}

func (v *runView) takeEvent(entry *continuo.Entry) {
	of := v.show[entry.NodeID]
	switch entry.RunEvent.Kind {
	case continuo.RunNodeBegan:
		if of.began.IsZero() || !of.ended.IsZero() {
			of = visit{began: entry.CreatedAt}
		}
	case continuo.RunNodeAsked:
		of = visit{began: entry.CreatedAt}
	case continuo.RunNodeFinished:
		of.ended = entry.CreatedAt
		v.output, v.doing = "", ""
	default:
		return
	}
	v.show[entry.NodeID] = of
}

// keptTextBytes is how much of a step's text is kept for display.
const keptTextBytes = 2000

func (v *runView) takeTurn(event turn.Event) {
	if event.TurnID != v.turn {
		if v.others == nil {
			v.others = map[string]string{}
		}
		v.others[v.turn] = v.output
		v.turn, v.output, v.doing = event.TurnID, v.others[event.TurnID], ""
	}
	switch event.Kind {
	case turn.Planned:
		v.output, v.doing = "", "waits for the model"
	case turn.ReasoningDelta:
		v.doing = "thinks"
	case turn.TextDelta:
		v.output, v.doing = tailOf(v.output+event.Text, keptTextBytes), ""
	case turn.Called:
		v.doing = "→ " + callText(*event.Call, 300)
	case turn.Asked:
		v.doing = "? " + callText(*event.Call, 300)
	case turn.ToolDone:
		v.doing = toolText(event.Entry)
	case turn.FellBack:
		v.doing = event.Attempt.Round.Model + " failed, another model is asked"
	case turn.Finished, turn.Failed:
		v.output, v.doing = "", ""
	default:
	}
}

// tailOf is the end of a text, of at most so many bytes.
func tailOf(text string, size int) string {
	if len(text) <= size {
		return text
	}
	text = text[len(text)-size:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// frame is the area that a picture has to fit in, and when it is drawn.
type frame struct {
	width, height int // in columns and lines; a height of 0 is no limit
	now           time.Time
	tick          int  // counts the pictures, for animations
	still         bool // the picture is the last one, without animations
}

// picture draws the run while it is in progress. It never exceeds the frame.
func (v *runView) picture(f frame) []string {
	lines := v.head(f)
	nodes := v.nodes(f)
	tail := v.tail(f.width)
	if f.height > 0 {
		nodes = v.visibleNodes(nodes, f.height-len(lines)-len(tail), f.width)
	}
	return append(append(lines, nodes...), tail...)
}

// finalPicture draws the whole run in its final state.
func (v *runView) finalPicture(f frame) []string {
	f.still = true
	return append(v.head(f), v.nodes(f)...)
}

func (v *runView) head(f frame) []string {
	name := v.status.WorkflowID
	if title := v.status.WorkflowName; title != "" && title != name {
		name += "  " + title
	}
	words := stateText(v.status.State)
	if v.stopping && v.status.State == continuo.RunRunning {
		words = "stopping"
	}
	state := v.runPaint()(words + " · " + term.Duration(v.elapsed(f.now)))
	if f.still && isAbandoned(v.status, f.now) {
		state = v.paint.Yellow(abandoned)
	}
	room := f.width - term.Width(state) - 2
	title := term.Fit(term.OneLine(name, 200), max(room, 8))
	return []string{term.Fit(v.paint.Bold(title)+"  "+state, f.width), term.Fit(v.paint.Dim(v.status.ID), f.width)}
}

func (v *runView) elapsed(now time.Time) time.Duration {
	switch {
	case !v.status.EndedAt.IsZero():
		now = v.status.EndedAt
	case v.status.State == continuo.RunFailed || v.status.State == continuo.RunStopped:
		now = v.status.UpdatedAt
	}
	return now.Sub(v.status.StartedAt)
}

// abandoned is the state of a run that no process continues.
const abandoned = "abandoned"

// quietRun is the longest time between a run's events between its steps while a process continues it.
const quietRun = 15 * time.Second

// isAbandoned reports whether a run should continue, and no process continues it.
func isAbandoned(status engine.RunStatus, now time.Time) bool {
	latest := status.UpdatedAt
	for _, node := range status.Nodes {
		if node.RetryAt.After(latest) {
			latest = node.RetryAt
		}
	}
	return status.State == continuo.RunRunning && status.TurnID == "" && now.Sub(latest) > quietRun
}

// stateText describes the state of a run.
func stateText(state continuo.RunState) string {
	if state == continuo.RunWaiting {
		return "waits for a decision"
	}
	return string(state)
}

func (v *runView) runPaint() func(string) string {
	switch v.status.State {
	case continuo.RunFinished:
		return v.paint.Green
	case continuo.RunFailed:
		return v.paint.Red
	case continuo.RunRunning:
		return v.paint.Cyan
	default:
		return v.paint.Yellow
	}
}

// nodes draws a line for each node, and one more where a node has failed.
func (v *runView) nodes(f frame) []string {
	width := 0
	for _, node := range v.status.Nodes {
		width = max(width, term.Width(node.ID))
	}
	width = min(width, max(8, f.width/3))
	lines := make([]string, 0, len(v.status.Nodes))
	for _, node := range v.status.Nodes {
		line := v.glyph(node.State) + " " + term.Pad(term.Fit(node.ID, width), width) + "  "
		line += v.nodePaint(node.State)(v.nodeText(node, f))
		if node.Name != "" && node.Name != node.ID {
			line += v.paint.Dim("  " + term.OneLine(node.Name, 100))
		}
		lines = append(lines, term.Fit(line, f.width))
	}
	return lines
}

// nodeText describes the state of a node.
func (v *runView) nodeText(node workflow.NodeStatus, f frame) string {
	words := string(node.State)
	took := v.show[node.ID]
	switch {
	case node.State == workflow.NodeFailed && v.status.State != continuo.RunFailed && v.status.State != continuo.RunRunning:
		words = "stopped"
	case node.State == workflow.NodeRunning && f.still && isAbandoned(v.status, f.now):
		words = "broke off"
	case node.State == workflow.NodeRetrying:
		words = "waits to retry until " + node.RetryAt.Local().Format(time.TimeOnly)
	case node.State == workflow.NodeRunning:
		if !f.still {
			words += " " + spinner(f.tick)
		}
		if !took.began.IsZero() {
			words += " " + term.Duration(f.now.Sub(took.began))
		}
	case node.State == workflow.NodeFinished && !took.began.IsZero() && !took.ended.IsZero():
		words += " " + term.Duration(took.ended.Sub(took.began))
	}
	if node.State == workflow.NodeFinished && node.Question != "" {
		words += decisionText(node.Outputs)
	}
	if node.State == workflow.NodeFinished && len(node.Repairs) > 0 {
		words += " · repaired: " + term.OneLine(strings.Join(node.Repairs, "; "), 200)
	}
	if node.Visit > 1 {
		words += fmt.Sprintf(" · visit %d", node.Visit)
	}
	if node.Attempt > 1 && node.State != workflow.NodeFinished {
		words += fmt.Sprintf(" · attempt %d", node.Attempt)
	}
	if node.Agent != "" {
		words += " · " + term.OneLine(node.Agent, 40)
	}
	if node.Reason != "" && (node.State == workflow.NodeFailed || node.State == workflow.NodeRunning || node.State == workflow.NodeRetrying) {
		words += " · " + term.OneLine(node.Reason, 200)
	}
	return words
}

// decisionText describes a person's decision.
func decisionText(outputs json.RawMessage) string {
	var decision struct {
		Approved bool   `json:"approved"`
		Comment  string `json:"comment"`
	}
	if json.Unmarshal(outputs, &decision) != nil {
		return ""
	}
	words := " · rejected"
	if decision.Approved {
		words = " · approved"
	}
	if decision.Comment != "" {
		words += ": " + term.OneLine(decision.Comment, 100)
	}
	return words
}

func (v *runView) glyph(state workflow.NodeState) string {
	glyphs := map[workflow.NodeState]string{
		workflow.NodePending: "○", workflow.NodeRunning: "●", workflow.NodeRetrying: "◌", workflow.NodeFinished: "✓",
		workflow.NodeWaiting: "?", workflow.NodeFailed: "✗", workflow.NodeSkipped: "-",
	}
	return v.nodePaint(state)(cmp.Or(glyphs[state], " "))
}

func (v *runView) nodePaint(state workflow.NodeState) func(string) string {
	switch state {
	case workflow.NodeRunning:
		return v.paint.Cyan
	case workflow.NodeFinished:
		return v.paint.Green
	case workflow.NodeWaiting, workflow.NodeRetrying:
		return v.paint.Yellow
	case workflow.NodeFailed:
		return v.paint.Red
	default:
		return v.paint.Dim
	}
}

// tail is the line with the current step's text or activity. It is there as long as the run is in progress, so that the
// other lines do not move.
func (v *runView) tail(width int) []string {
	if v.status.State != continuo.RunRunning {
		return nil
	}
	text := term.OneLine(v.doing, max(width-2, 1))
	if v.doing == "" {
		text = term.FitEnd(term.OneLine(v.output, keptTextBytes), max(width-2, 1))
	}
	return []string{term.Fit(v.paint.Dim(strings.TrimRight("  "+text, " ")), width)}
}

// visibleNodes keeps those lines of the nodes for which there is room, the ones around the current node.
func (v *runView) visibleNodes(nodes []string, room, width int) []string {
	if len(nodes) <= room {
		return nodes
	}
	now := slices.IndexFunc(v.status.Nodes, func(node workflow.NodeStatus) bool {
		return node.State == workflow.NodeRunning || node.State == workflow.NodeWaiting
	})
	room = max(room, 1)
	from := min(max(now-room/2, 0), len(nodes)-room)
	lines := slices.Clone(nodes[from : from+room])
	if room < 3 { // there is no room for a line about the omitted ones
		return lines
	}
	more := func(n int, where string) string {
		return term.Fit(v.paint.Dim(fmt.Sprintf("… %s %s", term.Count(n, "step"), where)), width)
	}
	if from > 0 {
		lines[0] = more(from+1, "before")
	}
	if rest := len(nodes) - from - room; rest > 0 {
		lines[room-1] = more(rest+1, "after")
	}
	return lines
}

// spinner is the animation of a running node.
func spinner(beat int) string {
	signs := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	return string(signs[beat%len(signs)])
}
