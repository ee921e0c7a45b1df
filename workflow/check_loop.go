package workflow

import (
	"fmt"
	"slices"
)

// loop is an edge back with the nodes that it repeats.
type loop struct {
	*draftEdge
	body set
}

// checkLoops computes the bodies of the edges back, and finds edges that cross them. It requires that forward edges
// form no cycle.
func (r *reader) checkLoops() {
	for i := range r.edges {
		edge := &r.edges[i]
		if !edge.limited || !edge.sound() {
			continue
		}
		if !r.graph.reach[edge.to][edge.from] {
			r.Complain(edge.maxAt, "max is for edges that lead back, and no way leads from %s to %s: remove max, or turn the edge round", edge.To, edge.From)
			continue
		}
		r.graph.loops = append(r.graph.loops, loop{edge, r.body(edge)})
	}
	for _, loop := range r.graph.loops {
		r.checkEntries(loop)
	}
	r.checkNesting()
}

// body computes the nodes of a loop and stores them in the edge.
func (r *reader) body(edge *draftEdge) set {
	body := make(set, len(r.workflow.Nodes))
	for node := range body {
		body[node] = r.graph.reach[edge.to][node] && r.graph.reach[node][edge.from]
		if body[node] {
			edge.Body = append(edge.Body, r.workflow.Nodes[node].ID)
		}
	}
	return body
}

// checkEntries finds edges into the middle of a loop and out of it.
func (r *reader) checkEntries(l loop) {
	for i := range r.edges {
		edge := &r.edges[i]
		if !edge.sound() || edge.limited {
			continue
		}
		switch inside := l.body; {
		case !inside[edge.from] && inside[edge.to] && edge.to != l.to:
			r.Complain(edge.toAt, "this edge leads into the middle of %s: lead it to %s, with which the loop begins", r.describeLoop(l), l.To)
		case inside[edge.from] && !inside[edge.to] && edge.from != l.from:
			r.Complain(edge.at, "this edge leads out of the middle of %s: leave the loop from %s", r.describeLoop(l), l.From)
		}
	}
}

// checkNesting finds loops that overlap.
func (r *reader) checkNesting() {
	for i, a := range r.graph.loops {
		for _, b := range r.graph.loops[:i] {
			shared, onlyA, onlyB := false, false, false
			for node := range a.body {
				shared = shared || a.body[node] && b.body[node]
				onlyA = onlyA || a.body[node] && !b.body[node]
				onlyB = onlyB || b.body[node] && !a.body[node]
			}
			if shared && onlyA && onlyB && !r.Full() {
				r.Complain(a.at, "%s and %s overlap: one must be inside the other, or separate from it", r.describeLoop(a), r.describeLoop(b))
			}
		}
	}
}

// describeLoop describes a loop in an error message, by the shortest path through it.
func (r *reader) describeLoop(l loop) string {
	way := []int{l.from}
	if l.from != l.to {
		way = path(r.graph.on, l.to, l.from)
	}
	const most = 6
	if len(way) > most {
		way = slices.Concat(way[:1], way[len(way)-1:])
		return fmt.Sprintf("the loop %s (over others) -> %s", r.arrows(way), l.To)
	}
	return fmt.Sprintf("the loop %s", r.arrows(append(way, l.to)))
}
