package main

import (
	"cmp"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
)

// origins mark entries with their step or agent, such as review or @ada. If the entries are of several runs, the end of
// the run's id follows the step.
type origins struct {
	paint term.Style
	runs  map[string]bool
}

func newOrigins(paint term.Style) *origins { return &origins{paint: paint, runs: map[string]bool{}} }

// see records an entry, or nil, as one of those that are shown.
func (o *origins) see(entry *continuo.Entry) {
	if entry != nil && entry.RunID != "" {
		o.runs[entry.RunID] = true
	}
}

// cell is the mark of an entry; without text if it has neither a step nor an agent.
func (o *origins) cell(entry *continuo.Entry) string {
	const idEnd = 4
	var words []string
	switch {
	case entry.NodeID != "":
		words = append(words, term.OneLine(entry.NodeID, 40))
	case entry.Author != nil && entry.Role == continuo.Assistant: // of a crew whose chat was imported
		words = append(words, term.OneLine(cmp.Or(entry.Author.RoleName, entry.Author.DisplayName), 40))
	}
	if run := entry.RunID; run != "" && len(o.runs) > 1 {
		words = append(words, "…"+run[max(len(run)-idEnd, 0):])
	}
	if entry.AgentID != "" && entry.Role != continuo.User {
		words = append(words, "@"+term.OneLine(entry.AgentID, 40))
	}
	return o.paint.Dim(strings.Join(words, " "))
}
