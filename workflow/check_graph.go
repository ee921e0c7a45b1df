package workflow

import "slices"

// graph is the graph of a workflow's nodes, which are identified by their index in the file. Edges without a limit
// are forward edges, the others lead back.
type graph struct {
	on  [][]int // targets of each node's forward edges
	all [][]int // targets of all edges of each node
	// reach contains, for each node, the nodes that can be reached over forward edges, itself included.
	reach []set
	loops []loop
}

// set is a set of nodes.
type set []bool

// checkGraph checks the graph of the edges and completes the workflow's edges.
func (r *reader) checkGraph() {
	r.graph = r.newGraph()
	unlimited := r.checkCycles()
	if !unlimited {
		r.checkLoops()
	}
	r.checkChoices()
	r.checkReached()
	for i := range r.edges {
		r.workflow.Edges = append(r.workflow.Edges, r.edges[i].Edge)
	}
	r.settleJoins()
}

func (r *reader) newGraph() graph {
	n := len(r.workflow.Nodes)
	g := graph{on: make([][]int, n), all: make([][]int, n)}
	for i := range r.edges {
		edge := &r.edges[i]
		if !edge.sound() {
			continue
		}
		g.all[edge.from] = append(g.all[edge.from], edge.to)
		if !edge.limited {
			g.on[edge.from] = append(g.on[edge.from], edge.to)
		}
	}
	for node := range n {
		g.reach = append(g.reach, reachable(g.on, node))
	}
	return g
}

// reachable returns the nodes that can be reached from the given ones, these included.
func reachable(edges [][]int, from ...int) set {
	found, queue := make(set, len(edges)), from
	for _, node := range from {
		found[node] = true
	}
	for len(queue) > 0 {
		node := queue[0]
		queue = queue[1:]
		for _, next := range edges[node] {
			if !found[next] {
				found[next] = true
				queue = append(queue, next)
			}
		}
	}
	return found
}

// path returns a shortest path between nodes, both ends included; between a node and itself, a shortest cycle.
func path(edges [][]int, from, to int) []int {
	before, queue := map[int]int{}, []int{from}
	for len(queue) > 0 {
		node := queue[0]
		queue = queue[1:]
		for _, next := range edges[node] {
			if _, seen := before[next]; seen {
				continue
			}
			before[next] = node
			if next != to {
				queue = append(queue, next)
				continue
			}
			way := []int{to}
			for at := before[to]; ; at = before[at] {
				way = append(way, at)
				if at == from {
					slices.Reverse(way)
					return way
				}
			}
		}
	}
	return nil
}

// checkCycles finds cycles of edges without a limit. It reports one per strongly connected component, at the edge
// that closes the cycle.
func (r *reader) checkCycles() (found bool) {
	reported := make(set, len(r.workflow.Nodes))
	for i := range r.edges {
		edge := &r.edges[i]
		if !edge.sound() || edge.limited || !r.graph.reach[edge.to][edge.from] {
			continue
		}
		found = true
		if edge.to > edge.from || reported[edge.from] {
			continue // it leads forward in the file: one that leads back closes the cycle
		}
		r.reportCycle(edge, reported)
	}
	return found
}

func (r *reader) reportCycle(edge *draftEdge, reported set) {
	way := []int{edge.from, edge.to}
	if edge.from != edge.to {
		way = append(path(r.graph.on, edge.to, edge.from), edge.to)
	}
	for node := range reported {
		reported[node] = reported[node] || r.graph.reach[node][edge.from] && r.graph.reach[edge.from][node]
	}
	stuck := ""
	if len(r.startNodes()) == 0 {
		stuck = "; as it is, no node begins, for a run begins with the nodes to which no edge without max leads"
	}
	r.Complain(edge.at, "the cycle %s has no limit: write max on one of its edges, as a rule on %s%s", r.arrows(way), edge, stuck)
}

func (r *reader) arrows(way []int) string {
	text := ""
	for i, node := range way {
		if i > 0 {
			text += " -> "
		}
		text += r.workflow.Nodes[node].ID
	}
	return text
}

// startNodes are the nodes with which a run begins; there is at least one if every cycle has a limit.
func (r *reader) startNodes() []int {
	led := make(set, len(r.workflow.Nodes))
	for _, nexts := range r.graph.on {
		for _, next := range nexts {
			led[next] = true
		}
	}
	var first []int
	for node := range led {
		if !led[node] {
			first = append(first, node)
		}
	}
	return first
}

// checkChoices finds edges that can never be taken because another always is, and loops that always fail at their
// limit.
func (r *reader) checkChoices() {
	for i := range r.edges {
		edge := &r.edges[i]
		if edge.Otherwise && edge.When == nil && edge.sound() {
			if always := r.alwaysTaken(edge); always != nil {
				r.Complain(edge.otherwiseAt, "this edge is never taken, for %s in line %d always is: give that edge a condition, or remove otherwise", always, always.Line)
			}
		}
		if edge.Max > 0 && len(edge.Body) > 0 && edge.When == nil && !edge.Otherwise && !edge.Continue {
			r.Complain(edge.maxAt, "this edge back is always taken, so that each run which comes here fails at the limit: write when, or at_limit: continue")
		}
	}
}

// alwaysTaken finds another edge of the node which leads forward without a condition.
func (r *reader) alwaysTaken(than *draftEdge) *draftEdge {
	for i := range r.edges {
		edge := &r.edges[i]
		beside := edge.sound() && edge.from == than.from && edge.to != than.to
		if beside && !edge.limited && !edge.Otherwise && edge.When == nil {
			return edge
		}
	}
	return nil
}

// checkReached finds nodes that no run can reach, because each path to them has a condition that is the literal
// false.
func (r *reader) checkReached() {
	open := make([][]int, len(r.workflow.Nodes))
	for i := range r.edges {
		if edge := &r.edges[i]; edge.sound() && (edge.When == nil || edge.When.Text != "false") {
			open[edge.from] = append(open[edge.from], edge.to)
		}
	}
	first := r.startNodes()
	reached, led := reachable(open, first...), reachable(r.graph.all, first...)
	for node := range r.drafts {
		if led[node] && !reached[node] {
			r.Complain(r.drafts[node].at, "the node %s can never be reached: every way to it has an edge with when: false; remove the node, or the condition", r.workflow.Nodes[node].ID)
		}
	}
}

// Ancestors are the nodes from which a path leads to a node, in the order of the file: those that may have finished
// when it begins. A node of a loop is its own ancestor.
func (w *Workflow) Ancestors(id string) []string {
	index := map[string]int{}
	for i := range w.Nodes {
		index[w.Nodes[i].ID] = i
	}
	back := make([][]int, len(w.Nodes))
	for _, edge := range w.Edges {
		from, to := index[edge.From], index[edge.To]
		back[to] = append(back[to], from)
	}
	node, ok := index[id]
	if !ok {
		return nil
	}
	found := reachable(back, back[node]...)
	var ids []string
	for i := range w.Nodes {
		if found[i] {
			ids = append(ids, w.Nodes[i].ID)
		}
	}
	return ids
}
