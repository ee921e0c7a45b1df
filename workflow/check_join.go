package workflow

// settleJoins sets the default Join of nodes with several incoming edges: JoinAll where several independent approvals
// lead to the node, JoinAny otherwise.
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

// sources are the nodes with a forward edge to a node.
func (r *reader) sources(node int) []int {
	var sources []int
	for i := range r.edges {
		if edge := &r.edges[i]; edge.sound() && edge.to == node && !edge.limited {
			sources = append(sources, edge.from)
		}
	}
	return sources
}

// gatesMeet reports whether the nodes include two approvals of which neither comes after the other. An approval that
// is only asked after another one's rejection replaces that one.
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
