package main

import (
	"cmp"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// origins mark entries with the step or the agent that they are of, such as review or @ada. Where the entries that
// were seen are of several runs, the end of the run's id stands behind the step.
type origins struct {
	paint palette
	runs  map[string]bool
}

func newOrigins(paint palette) *origins { return &origins{paint: paint, runs: map[string]bool{}} }

// see takes an entry, or nil, for one of those that are shown.
func (o *origins) see(entry *continuo.Entry) {
	if entry != nil && entry.RunID != "" {
		o.runs[entry.RunID] = true
	}
}

// cell is the mark of an entry; without text where it is of neither.
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
