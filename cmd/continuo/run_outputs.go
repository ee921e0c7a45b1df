package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/workflow"
)

// outputLinesMost is how many lines of one step's outputs a person sees.
const outputLinesMost = 20

// edgesOf are those of a run's workflow; none if it cannot be read, which the run's status reports.
func (w *services) edgesOf(ctx context.Context, run continuo.Run) []workflow.Edge {
	found, err := w.engine.Runs.WorkflowOf(ctx, run)
	if err != nil {
		return nil
	}
	return found.Edges
}

// leading are the finished steps with an edge directly to a node.
func leading(edges []workflow.Edge, nodes []workflow.NodeStatus, id string) []workflow.NodeStatus {
	var found []workflow.NodeStatus
	for _, node := range nodes {
		leads := func(edge workflow.Edge) bool { return edge.From == node.ID && edge.To == id }
		if node.State == workflow.NodeFinished && slices.ContainsFunc(edges, leads) {
			found = append(found, node)
		}
	}
	return found
}

// givenRows are the outputs of steps, each below the step's name, in lines of a width.
func givenRows(steps []workflow.NodeStatus, width int, paint term.Style) []string {
	var rows []string
	for _, step := range steps {
		given := bounded(outputRows(step.Outputs, max(width-2, 1), paint), outputLinesMost, paint)
		if len(given) == 0 {
			continue
		}
		rows = append(rows, term.Fit(paint.Dim(step.ID+" gave:"), width))
		for _, line := range given {
			rows = append(rows, term.Fit("  "+line, width))
		}
	}
	return rows
}

// bounded are the first of some rows, and how many more there are.
func bounded(rows []string, most int, paint term.Style) []string {
	if len(rows) <= most {
		return rows
	}
	shown := max(most-1, 0)
	more := paint.Dim("… " + term.Count(len(rows)-shown, "more line"))
	return append(slices.Clone(rows[:shown]), more)
}

// outputRows formats outputs for a person, in lines of a width (0: unwrapped): a text unchanged, anything else as JSON.
func outputRows(outputs json.RawMessage, width int, paint term.Style) []string {
	var values map[string]json.RawMessage
	if json.Unmarshal(outputs, &values) != nil {
		return nil
	}
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := string(values[name])
		var text string
		if json.Unmarshal(values[name], &text) == nil && text != "" {
			value = strings.TrimRight(text, "\n")
		}
		title := term.OneLine(name, 60) + ":"
		if strings.Contains(value, "\n") {
			rows = append(rows, paint.Bold(title))
			rows = append(rows, term.Wrap(value, width)...)
			continue
		}
		for i, line := range term.Wrap(title+" "+value, width) {
			if rest, ok := strings.CutPrefix(line, title); ok && i == 0 {
				rows = append(rows, paint.Bold(title)+rest)
				continue
			}
			rows = append(rows, line)
		}
	}
	return rows
}
