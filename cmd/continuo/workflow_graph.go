package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/workflow"
)

// drawing draws the steps of a workflow from the first to the last. A step that always follows is below its predecessor;
// a step on one of several branches is to the right, and where branches meet again the line continues at the left.
type drawing struct {
	paint term.Style
	nodes map[string]*workflow.Node
	order []string                    // from first to last; concurrent ones in the order of the file
	in    map[string][]*workflow.Edge // without the back edges
	out   map[string][]*workflow.Edge
	back  map[string][]*workflow.Edge // by their source node
	below map[string][]string         // by the last step that all paths to them share; "" for none
	lines []string
}

// drawWorkflow draws a workflow, a line for each step and for each back edge.
func drawWorkflow(w *workflow.Workflow, paint term.Style) []string {
	d := &drawing{
		paint: paint, nodes: map[string]*workflow.Node{},
		in: map[string][]*workflow.Edge{}, out: map[string][]*workflow.Edge{}, back: map[string][]*workflow.Edge{}, below: map[string][]string{},
	}
	for i := range w.Edges {
		edge := &w.Edges[i]
		if edge.Max > 0 {
			d.back[edge.From] = append(d.back[edge.From], edge)
			continue
		}
		d.out[edge.From] = append(d.out[edge.From], edge)
		d.in[edge.To] = append(d.in[edge.To], edge)
	}
	d.sort(w)
	d.gather()
	first := d.below[""]
	if len(first) == 1 {
		d.draw(first[0], "", "")
		return d.lines
	}
	d.lines = append(d.lines, paint.Dim("┬"))
	d.follow("", "")
	return d.lines
}

// sort orders the nodes topologically.
func (d *drawing) sort(w *workflow.Workflow) {
	for i := range w.Nodes {
		d.nodes[w.Nodes[i].ID] = &w.Nodes[i]
	}
	placed := map[string]bool{}
	for len(d.order) < len(w.Nodes) {
		at := slices.IndexFunc(w.Nodes, func(node workflow.Node) bool {
			return !placed[node.ID] && !slices.ContainsFunc(d.in[node.ID], func(edge *workflow.Edge) bool { return !placed[edge.From] })
		})
		if at < 0 { // a checked workflow has no such cycle
			return
		}
		placed[w.Nodes[at].ID] = true
		d.order = append(d.order, w.Nodes[at].ID)
	}
}

// gather finds for each node the last one that all paths to it share.
func (d *drawing) gather() {
	through := map[string][]string{} // from the first such node to the node itself
	for _, id := range d.order {
		var common []string
		for i, edge := range d.in[id] {
			if i == 0 {
				common = through[edge.From]
			} else {
				common = shared(common, through[edge.From])
			}
		}
		last := ""
		if len(common) > 0 {
			last = common[len(common)-1]
		}
		d.below[last] = append(d.below[last], id)
		through[id] = append(slices.Clone(common), id)
	}
}

// shared is the common prefix of two lists.
func shared(a, b []string) []string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// draw draws a node and what is below it; lead precedes its own line, prefix the lines that follow.
func (d *drawing) draw(id, lead, prefix string) {
	d.lines = append(d.lines, d.line(d.nodes[id], lead))
	d.follow(id, prefix)
}

// follow draws what is below a node: branches and back edges first, then the continuation.
func (d *drawing) follow(id, prefix string) {
	var branches, continuation []string
	for _, next := range d.below[id] {
		if id != "" && len(d.in[next]) > 1 || len(d.out[id]) == 1 && len(d.back[id]) == 0 || id == "" && len(d.in[next]) > 0 {
			continuation = append(continuation, next)
		} else {
			branches = append(branches, next)
		}
	}
	back := d.back[id]
	for i, next := range branches {
		fork, rest := forks(i == len(branches)-1 && len(back)+len(continuation) == 0)
		d.draw(next, prefix+fork, prefix+rest)
	}
	for i, edge := range back {
		fork, _ := forks(i == len(back)-1 && len(continuation) == 0)
		limit := fmt.Sprintf(", at most %s", times(edge.Max))
		if edge.Continue {
			limit += ", then continues"
		}
		d.lines = append(d.lines, d.paint.Dim(prefix+fork)+d.paint.Cyan("↺ "+edge.To)+d.paint.Yellow("  "+strings.TrimPrefix(edgeText(edge)+limit, ", ")))
	}
	for _, next := range continuation {
		d.lines = append(d.lines, d.paint.Dim(prefix+"│"))
		d.draw(next, prefix, prefix)
	}
}

// forks is the prefix of a branch, and of all lines below it.
func forks(last bool) (fork, rest string) {
	if last {
		return "└─", "  "
	}
	return "├─", "│ "
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// line is a node's text: who executes it, and on which branch.
func (d *drawing) line(node *workflow.Node, lead string) string {
	sign := "○ "
	if node.Approval != nil {
		sign = "? "
	}
	line := d.paint.Dim(lead) + sign + d.paint.Bold(node.ID)
	switch {
	case node.Approval != nil:
		line += "  " + term.OneLine(node.Approval.Question, 100)
	case node.Name != node.ID:
		line += "  " + term.OneLine(node.Name, 100)
	}
	if node.Agent != "" {
		line += d.paint.Dim(" · " + node.Agent)
	}
	var ways []string
	for _, edge := range d.in[node.ID] {
		switch words := edgeText(edge); {
		case len(d.in[node.ID]) == 1:
			ways = append(ways, words)
		case words == "":
			ways = append(ways, edge.From)
		default:
			ways = append(ways, edge.From+" ("+words+")")
		}
	}
	words := strings.Join(ways, ", ")
	if len(ways) > 1 {
		words = "after " + words
	}
	if words != "" {
		line += d.paint.Yellow("  " + words)
	}
	return line
}

// edgeText describes when an edge is taken; "" for always.
func edgeText(edge *workflow.Edge) string {
	switch {
	case edge.When != nil:
		return "when " + term.OneLine(edge.When.Text, 100)
	case edge.Otherwise:
		return "otherwise"
	}
	return ""
}
