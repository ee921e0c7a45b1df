package workflow

import (
	"slices"
	"strings"
)

// draftEdge is what is known of an edge beside the edge itself, and of those of which not both ends are known.
type draftEdge struct {
	Edge
	at, toAt, otherwiseAt, maxAt place
	limited                      bool // has the key max, right or wrong
	from, to                     int  // the nodes' places in the file, -1 for none
}

func (d *draftEdge) sound() bool { return d.from >= 0 && d.to >= 0 }

func (d *draftEdge) String() string { return d.From + " -> " + d.To }

func (r *reader) readEdges(v *yamlValue) {
	if v == nil {
		return
	}
	if v.kind != yamlList {
		r.complain(v.at, "edges must be a list, each line such as - a -> b, not %s", v.kind)
		return
	}
	if len(v.items) > maxEdges {
		r.complain(v.items[maxEdges].at, "there are %d edges, more than the limit of %d", len(v.items), maxEdges)
		return
	}
	for _, item := range v.items {
		if draft, ok := r.readEdge(item); ok {
			r.checkEdge(&draft)
			r.edges = append(r.edges, draft)
		}
	}
}

// readEdge reads a mapping, or the short form a -> b.
func (r *reader) readEdge(v *yamlValue) (draft draftEdge, ok bool) {
	draft.at, draft.Line = v.at, v.at.line
	if v.kind == yamlText {
		from, to, found := strings.Cut(v.text, "->")
		draft.From, draft.To = strings.TrimSpace(from), strings.TrimSpace(to)
		if !found || draft.From == "" || draft.To == "" || strings.Contains(to, "->") {
			r.complain(v.at, "an edge is written a -> b, or {from: a, to: b, when: ...}, not %s", word(v.text))
			return draft, false
		}
		draft.from, draft.to = r.findNode(draft.From, v.at), r.findNode(draft.To, v.at)
		draft.toAt = v.at
		return draft, true
	}
	if v.kind != yamlMapping {
		r.complain(v.at, "an edge is written a -> b, or {from: a, to: b, when: ...}, not as %s", v.kind)
		return draft, false
	}
	keys := r.mapping(v, "an edge", "from", "to", "when", "otherwise", "max", "at_limit")
	draft.From, draft.from, draft.at = r.readEnd(v, keys["from"], "from")
	draft.To, draft.to, draft.toAt = r.readEnd(v, keys["to"], "to")
	r.readConditions(&draft, keys)
	r.readLimit(&draft, keys)
	return draft, true
}

func (r *reader) readEnd(edge, v *yamlValue, key string) (id string, index int, at place) {
	if v == nil {
		if !edge.has(key) {
			r.complain(edge.at, "an edge needs the key %s with the id of a node", key)
		}
		return "", -1, edge.at
	}
	if id = r.readText(v, key); id == "" {
		return "", -1, v.at
	}
	return id, r.findNode(id, v.at), v.at
}

// findNode returns a node's place in the file, or -1 and a complaint.
func (r *reader) findNode(id string, at place) int {
	index := slices.IndexFunc(r.workflow.Nodes, func(n Node) bool { return n.ID == id })
	if index < 0 {
		r.complain(at, "there is no node %s%s", word(id), didYouMean(id, r.nodeIDs()))
	}
	return index
}

func (r *reader) nodeIDs() []string {
	ids := make([]string, len(r.workflow.Nodes))
	for i := range r.workflow.Nodes {
		ids[i] = r.workflow.Nodes[i].ID
	}
	return ids
}

func (r *reader) readConditions(draft *draftEdge, keys map[string]*yamlValue) {
	draft.Otherwise = r.readBool(keys["otherwise"], "otherwise")
	if v := keys["otherwise"]; v != nil {
		draft.otherwiseAt = v.at
	}
	when := keys["when"]
	if when == nil {
		return
	}
	at := site{role: ofEdge, node: draft.From}
	if draft.from < 0 {
		at.node = ""
	}
	draft.When = r.readExpression(when, "when", at)
	if draft.Otherwise {
		r.complain(draft.otherwiseAt, "an edge has either when or otherwise, which means that no other edge of the node is taken; remove one of both")
	}
}

func (r *reader) readLimit(draft *draftEdge, keys map[string]*yamlValue) {
	if v := keys["max"]; v != nil {
		draft.limited, draft.maxAt = true, v.at
		draft.Max = r.readCount(v, "max", mostRounds)
	}
	limit := keys["at_limit"]
	draft.GoOn = r.readWord(limit, "at_limit", "fail", "go_on") == "go_on"
	if limit != nil && keys["max"] == nil {
		r.complain(limit.at, "at_limit says what happens when max is reached, and the edge has no max; write one, or remove at_limit")
	}
}

// checkEdge compares an edge with those before it.
func (r *reader) checkEdge(draft *draftEdge) {
	for i := range r.edges {
		other := &r.edges[i]
		if !draft.sound() || !other.sound() || other.From != draft.From {
			continue
		}
		if other.To == draft.To {
			r.complain(draft.at, "there is an edge %s already in line %d; make one of both, and join conditions with or", draft, other.Line)
		} else if draft.Otherwise && other.Otherwise {
			r.complain(draft.otherwiseAt, "%s has an edge with otherwise already in line %d; only one can be for all other cases", draft.From, other.Line)
		}
	}
}
