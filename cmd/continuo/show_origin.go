package main

import (
	"cmp"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// origins mark entries with their step or agent, such as review or @ada. If the entries are of several runs, the end of
// the run's id follows the step.
type origins struct {
	paint palette
	runs  map[string]bool
}

func newOrigins(paint palette) *origins { return &origins{paint: paint, runs: map[string]bool{}} }

// see records an entry, or nil, as one of those that are shown.
func (o *origins) see(entry *continuo.Entry) {
	if entry != nil && entry.RunID != "" {
		o.runs[entry.RunID] = true
	}
}

// cell is the mark of an entry; without text if it has neither a step nor an agent.
func (o *origins) cell(entry *continuo.Entry) cell {
	const idEnd = 4
	var words []string
	switch {
	case entry.NodeID != "":
		words = append(words, oneLine(entry.NodeID, 40))
	case entry.Author != nil && entry.Role == continuo.Assistant: // of a crew whose chat was imported
		words = append(words, oneLine(cmp.Or(entry.Author.RoleName, entry.Author.DisplayName), 40))
	}
	if run := entry.RunID; run != "" && len(o.runs) > 1 {
		words = append(words, "…"+run[max(len(run)-idEnd, 0):])
	}
	if entry.AgentID != "" && entry.Role != continuo.User {
		words = append(words, "@"+oneLine(entry.AgentID, 40))
	}
	return cell{strings.Join(words, " "), o.paint.dim}
}
