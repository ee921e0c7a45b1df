package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

// outputLinesMost is how many lines of one step's outputs a person sees.
const outputLinesMost = 20

// edgesOf are those of a run's workflow; none if it cannot be read, which the run's status reports.
func (w *services) edgesOf(ctx context.Context, run continuo.Run) []workflow.Edge {
	found, err := w.engine.RunWorkflow(ctx, run)
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
func givenRows(steps []workflow.NodeStatus, width int, paint palette) []row {
	var rows []row
	for _, step := range steps {
		given := bounded(outputRows(step.Outputs, max(width-2, 1), paint), outputLinesMost, paint)
		if len(given) == 0 {
			continue
		}
		rows = append(rows, row{{step.ID + " gave:", paint.dim}}.fit(width))
		for _, line := range given {
			rows = append(rows, append(row{plain("  ")}, line...).fit(width))
		}
	}
	return rows
}

// bounded are the first of some rows, and how many more there are.
func bounded(rows []row, most int, paint palette) []row {
	if len(rows) <= most {
		return rows
	}
	shown := max(most-1, 0)
	more := row{{"… " + count(len(rows)-shown, "more line"), paint.dim}}
	return append(slices.Clone(rows[:shown]), more)
}

// outputRows formats outputs for a person, in lines of a width (0: unwrapped): a text unchanged, anything else as JSON.
func outputRows(outputs json.RawMessage, width int, paint palette) []row {
	var values map[string]json.RawMessage
	if json.Unmarshal(outputs, &values) != nil {
		return nil
	}
	var rows []row
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := string(values[name])
		var text string
		if json.Unmarshal(values[name], &text) == nil && text != "" {
			value = strings.TrimRight(text, "\n")
		}
		title := oneLine(name, 60) + ":"
		if strings.Contains(value, "\n") {
			rows = append(rows, row{{title, paint.bold}})
			for _, line := range wrapped(value, width) {
				rows = append(rows, row{plain(line)})
			}
			continue
		}
		for i, line := range wrapped(title+" "+value, width) {
			if rest, ok := strings.CutPrefix(line, title); ok && i == 0 {
				rows = append(rows, row{{title, paint.bold}, plain(rest)})
				continue
			}
			rows = append(rows, row{plain(line)})
		}
	}
	return rows
}

// painted are the lines of rows.
func painted(rows []row) []string {
	lines := make([]string, len(rows))
	for i, line := range rows {
		lines[i] = line.painted()
	}
	return lines
}
