package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/workflow"
)

// runScreen shows the progress of a run: as a picture, as lines, or as JSON.
type runScreen interface {
	// update shows a step of the run that the view has applied.
	update(progress engine.RunProgress)
	// tick updates what depends on the time.
	tick()
	// end prints what remains when the run is no longer followed.
	end()
}

// newRunScreen chooses how a run is shown.
func (a *app) newRunScreen(view *runView, asJSON bool) runScreen {
	switch {
	case asJSON:
		return &runJSON{app: a, view: view}
	case a.errTerminal && !slices.Contains(a.env, "TERM=dumb"):
		return &runLive{app: a, view: view, screen: term.Screen{Out: a.err}}
	}
	return newRunLines(a, view)
}

// runLive draws the run in place.
type runLive struct {
	*app
	view   *runView
	screen term.Screen
	beats  int
	asking *question // the question below the picture, which is paused meanwhile
}

func (l *runLive) update(engine.RunProgress) {}

func (l *runLive) tick() {
	l.beats++
	if l.asking == nil {
		l.draw(0)
	}
}

// pictureLeast is the least number of lines of the picture, however much is below it.
const pictureLeast = 4

// draw shows the picture, and leaves room for a number of lines below it.
func (l *runLive) draw(below int) {
	f := l.frame()
	f.height = max(f.height-below, pictureLeast)
	l.screen.Show(l.view.picture(f), f.width+1)
}

func (l *runLive) end() {
	f := l.frame()
	l.screen.Show(l.view.finalPicture(f), f.width+1)
	l.screen.Keep()
}

// frame measures the terminal. The last column stays free: some terminals clear it with the rest of the line.
func (l *runLive) frame() frame {
	width, height := l.errSize()
	return frame{width: max(width-1, 8), height: max(height-1, pictureLeast), now: time.Now(), tick: l.beats}
}

// ask writes a question below the picture and leaves the cursor where the answer goes. Text that was typed before is no
// answer.
func (l *runLive) ask(q *question, keys *term.Keyboard) {
	f := l.frame()
	lines := q.lines(f.width, f.height-pictureLeast-1, l.notePaint)
	l.draw(len(lines) + 1)
	var widths []int
	for _, line := range lines {
		_, _ = fmt.Fprintf(l.err, "%s\n", line)
		widths = append(widths, term.Width(line))
	}
	q.since = keys.Mark()
	_, _ = fmt.Fprint(l.err, l.notePaint.Cyan(promptSign))
	l.screen.Wrote(widths...)
	l.asking = q
}

// promptSign is the prompt for a person's input.
const promptSign = "› "

// answered removes the question; typed is the text on its line, and ended says whether Enter was pressed there.
func (l *runLive) answered(typed string, ended bool) {
	if !ended {
		_, _ = fmt.Fprintln(l.err)
	}
	l.screen.Wrote(term.Width(promptSign + typed))
	l.asking = nil
	l.draw(0)
}

// runLines writes a line for each thing that happens to a node or to the run.
type runLines struct {
	*app
	view    *runView
	skipped map[string]bool
	state   continuo.RunState
}

func newRunLines(a *app, view *runView) *runLines {
	l := &runLines{app: a, view: view, skipped: map[string]bool{}, state: view.status.State}
	a.note("%s of %s in %s", view.status.ID, view.status.WorkflowID, view.status.ConversationID)
	for _, node := range view.status.Nodes {
		if node.State == workflow.NodeWaiting && node.Seq <= view.after { // else it is shown in its order
			l.asks(node, view.status.Nodes)
		}
	}
	return l
}

// asks writes a node's question, and below it what is to be approved.
func (l *runLines) asks(node workflow.NodeStatus, nodes []workflow.NodeStatus) {
	l.note("%s: asks: %s", node.ID, term.OneLine(waitsFor(node), 300))
	for _, line := range givenRows(leading(l.view.edges, nodes, node.ID), l.tableWidth()-2, l.notePaint) {
		l.note("  %s", line)
	}
}

func (l *runLines) update(progress engine.RunProgress) {
	if progress.Entry == nil || progress.Entry.RunEvent == nil || progress.Status == nil {
		return
	}
	if node := nodeOf(progress.Entry.NodeID, progress.Status.Nodes); node.ID != "" {
		l.tookNode(progress.Entry, node, progress.Status.Nodes)
	}
	for _, node := range progress.Status.Nodes {
		if skipped := node.State == workflow.NodeSkipped; skipped != l.skipped[node.ID] {
			l.skipped[node.ID] = skipped
			if skipped {
				l.note("%s: skipped", node.ID)
			}
		}
	}
	if progress.Entry.NodeID != "" { // the next steps of a run that waited follow
		return
	}
	if state := progress.Status.State; state != l.state {
		l.state = state
		if state != continuo.RunRunning {
			l.note("run: %s", stateText(state))
		}
	}
}

// nodeOf finds a node; one without an id where there is none.
func nodeOf(id string, nodes []workflow.NodeStatus) workflow.NodeStatus {
	for _, node := range nodes {
		if node.ID == id {
			return node
		}
	}
	return workflow.NodeStatus{}
}

// tookNode writes an event of its node.
func (l *runLines) tookNode(entry *continuo.Entry, node workflow.NodeStatus, nodes []workflow.NodeStatus) {
	if entry.RunEvent.Kind == continuo.RunNodeAsked {
		l.asks(node, nodes)
		return
	}
	if words := eventText(entry.RunEvent, node); words != "" {
		l.note("%s: %s", node.ID, words)
	}
}

// eventText describes an event of its node.
func eventText(event *continuo.RunEvent, node workflow.NodeStatus) string {
	switch event.Kind {
	case continuo.RunNodeBegan:
		words := "running"
		if event.Visit > 1 {
			words += fmt.Sprintf(", visit %d", event.Visit)
		}
		if event.Attempt > 1 {
			words += fmt.Sprintf(", attempt %d", event.Attempt)
		}
		return words
	case continuo.RunNodeDelayed:
		return "waits to retry until " + event.Until.Local().Format(time.TimeOnly) + ", because of " + term.OneLine(event.Reason, 300)
	case continuo.RunNodeFailed:
		return "failed: " + term.OneLine(event.Reason, 300)
	case continuo.RunNodeRefused:
		if event.Cut {
			return "continues: " + term.OneLine(event.Reason, 300)
		}
		return "not taken: " + term.OneLine(event.Reason, 300)
	case continuo.RunNodeFinished:
		if node.Question != "" {
			return cmp.Or(strings.TrimPrefix(decisionText(event.Outputs), " · "), "decided")
		}
		if len(event.Repairs) > 0 {
			return "finished; repaired: " + term.OneLine(strings.Join(event.Repairs, "; "), 300)
		}
		return "finished"
	default:
		return ""
	}
}

func (l *runLines) tick() {}
func (l *runLines) end()  {}

// runJSON writes lines of JSON.
type runJSON struct {
	*app
	view *runView
}

func (j *runJSON) update(progress engine.RunProgress) {
	jsonLines(j.app, progress.Entry, progress.Status)
}

func (j *runJSON) tick() {}
func (j *runJSON) end()  { j.jsonLine("end", "status", j.view.status) }

// printOutputs writes the outputs of a finished run: for a person, or as JSON for a program.
func (a *app) printOutputs(outputs json.RawMessage) error {
	if len(outputs) == 0 {
		outputs = json.RawMessage("{}")
	}
	if !a.outTerminal {
		return a.json(outputs)
	}
	a.measure()
	if lines := outputRows(outputs, a.width, a.paint); len(lines) > 0 {
		a.print("\n%s", strings.Join(lines, "\n"))
	}
	return nil
}
