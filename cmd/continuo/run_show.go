package main

import (
	"fmt"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/workflow"
)

// printRun prints how a run stands, and what can be done about it.
func (a *app) printRun(status engine.RunStatus) {
	f := frame{width: a.tableWidth(), now: time.Now()}
	for _, line := range newRunView(status, a.paint).finalPicture(f) {
		a.print("%s", line.painted())
	}
	a.print("%s", a.paint.dim(fmt.Sprintf("in %s from entry %s, %s", status.ConversationID, number(status.FirstSeq), when(status.StartedAt))))
	a.printValues("inputs", status.Inputs)
	if status.Reason != "" {
		a.print("\n%s %s", a.paint.bold("reason:"), a.shown(status.Reason))
	}
	for _, node := range status.Nodes {
		if node.State == workflow.NodeWaiting && node.Question != "" {
			a.print("\n%s %s", a.paint.bold(node.ID+" asks:"), a.shown(node.Question))
		}
	}
	a.printValues("outputs", status.Outputs)
	if next := nextCommand(status.Run); next != "" {
		a.print("\n%s", a.paint.dim(next))
	}
}

// printValues prints a JSON object under a title; nothing when it has nothing.
func (a *app) printValues(title string, values []byte) {
	if lines := outputLines(values, max(a.width-2, 0), a.paint); len(lines) > 0 {
		a.print("\n%s\n%s", a.paint.dim(title), indent(strings.Join(lines, "\n"), "  "))
	}
}

// nextCommand says how a run goes on; "" when nobody has to do anything.
func nextCommand(run continuo.Run) string {
	switch run.State {
	case continuo.RunFailed, continuo.RunStopped:
		return "Go on with: continuo run resume " + run.ID
	case continuo.RunWaiting:
		return "Decide with: continuo run approve " + run.ID + ", or with --reject"
	default:
		return ""
	}
}
