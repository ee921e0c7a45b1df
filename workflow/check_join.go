package workflow

// settleJoins fills in when nodes begin that several edges lead to. Where a file does not say so, a node that several
// independent approvals lead to wants all of them, and any other one of its edges.
func (r *reader) settleJoins() {
	for i := range r.workflow.Nodes {
		node, sources := &r.workflow.Nodes[i], r.sources(i)
		switch {
		case node.Join != "" && len(sources) < 2:
			r.Complain(r.drafts[i].at, "join says what several edges to a node come to, and %s has %d; remove join, or add edges", node.ID, len(sources))
		case node.Join == "" && r.gatesMeet(sources):
			node.Join = JoinAll
		case node.Join == "":
			node.Join = JoinAny
		}
	}
}

// sources are the nodes whose edges lead on to a node.
func (r *reader) sources(node int) []int {
	var sources []int
	for i := range r.edges {
		if edge := &r.edges[i]; edge.sound() && edge.to == node && !edge.limited {
			sources = append(sources, edge.from)
		}
	}
	return sources
}

// gatesMeet reports whether two approvals are among some nodes of which neither comes after the other: one that is asked
// because the other one was rejected stands in its place.
func (r *reader) gatesMeet(nodes []int) bool {
	for _, a := range nodes {
		for _, b := range nodes {
			both := a != b && r.workflow.Nodes[a].Approval != nil && r.workflow.Nodes[b].Approval != nil
			if both && !r.graph.reach[a][b] && !r.graph.reach[b][a] {
				return true
			}
		}
	}
	return false
}
