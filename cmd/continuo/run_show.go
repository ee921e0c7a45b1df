package main

import (
	"fmt"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/workflow"
)

// printRun prints the state of a run, and what can be done about it.
func (a *app) printRun(status engine.RunStatus, edges []workflow.Edge) {
	f := frame{width: a.tableWidth(), now: time.Now()}
	a.printLines(newRunView(status, a.paint).finalPicture(f))
	a.print("%s", a.paint.Dim(fmt.Sprintf("in %s from entry %s, %s", status.ConversationID, term.Number(status.FirstSeq), term.Time(status.StartedAt))))
	a.printValues("inputs", status.Inputs)
	if status.Reason != "" {
		a.print("\n%s %s", a.paint.Bold("reason:"), a.shown(status.Reason))
	}
	a.printSteps(status, edges)
	a.printValues("outputs", status.Outputs)
	if next := nextCommand(status, f.now); next != "" {
		a.print("\n%s", a.paint.Dim(next))
	}
}

// printSteps prints the outputs of the finished steps, and below each question those of the steps directly before it.
func (a *app) printSteps(status engine.RunStatus, edges []workflow.Edge) {
	asked := map[string]bool{}
	var questions []workflow.NodeStatus
	for _, node := range status.Nodes {
		for _, call := range node.WaitingFor {
			words := callText(continuo.ToolCall{Name: call.Name, Arguments: call.Arguments}, 2000)
			a.print("\n%s %s %s", a.paint.Bold(node.ID+" waits for a decision on"), a.shown(words), a.paint.Dim("("+call.ID+")"))
		}
		if node.State != workflow.NodeWaiting || node.Question == "" {
			continue
		}
		questions = append(questions, node)
		for _, step := range leading(edges, status.Nodes, node.ID) {
			asked[step.ID] = true
		}
	}
	for _, node := range status.Nodes {
		if node.State == workflow.NodeFinished && node.Question == "" && !asked[node.ID] {
			a.printGiven([]workflow.NodeStatus{node})
		}
	}
	for _, node := range questions {
		a.print("\n%s %s", a.paint.Bold(node.ID+" asks:"), a.shown(node.Question))
		a.printGiven(leading(edges, status.Nodes, node.ID))
	}
}

// printGiven prints the outputs of steps, long ones truncated; nothing if there are none.
func (a *app) printGiven(steps []workflow.NodeStatus) {
	if lines := givenRows(steps, a.tableWidth(), a.paint); len(lines) > 0 {
		a.print("\n%s", strings.Join(lines, "\n"))
	}
}

// printValues prints a JSON object under a title; nothing if it is empty.
func (a *app) printValues(title string, values []byte) {
	if lines := outputRows(values, max(a.width-2, 0), a.paint); len(lines) > 0 {
		a.print("\n%s\n%s", a.paint.Dim(title), term.Indent(strings.Join(lines, "\n"), "  "))
	}
}

// nextCommand says how a run continues; "" if no person has to do anything.
func nextCommand(status engine.RunStatus, now time.Time) string {
	switch {
	case isAbandoned(status, now):
		return "Left behind; continue with: continuo run resume " + status.ID
	case status.State == continuo.RunFailed:
		return repairCommands(status)
	case status.State == continuo.RunStopped:
		return "Continue with: continuo run resume " + status.ID
	case status.State == continuo.RunWaiting:
		return "Decide with: continuo run approve " + status.ID + ", or with --reject"
	default:
		return ""
	}
}
