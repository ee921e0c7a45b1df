package workflow

import (
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// draftEdge is an edge with the data of its checks. Its ends may be unknown.
type draftEdge struct {
	Edge
	at, toAt, otherwiseAt, maxAt position
	limited                      bool // has the key max, valid or not
	from, to                     int  // the nodes' indexes in the file, -1 for none
}

func (d *draftEdge) sound() bool { return d.from >= 0 && d.to >= 0 }

func (d *draftEdge) String() string { return d.From + " -> " + d.To }

func (r *reader) readEdges(edges yamlform.Several) {
	v := edges.Node
	if v == nil {
		return
	}
	if v.Kind != yamltree.List {
		r.Complain(v.At, "edges must be a list, each line such as - a -> b, not %s", v.Kind)
		return
	}
	if len(v.Items) > edges.Most {
		r.Complain(v.Items[edges.Most].At, "there are %d edges, more than the limit of %d", len(v.Items), edges.Most)
		return
	}
	for _, item := range v.Items {
		if draft, ok := r.readEdge(item); ok {
			r.checkEdge(&draft)
			r.edges = append(r.edges, draft)
		}
	}
}

// readEdge reads a mapping, or the short form a -> b.
func (r *reader) readEdge(v *yamltree.Node) (draft draftEdge, ok bool) {
	draft.at, draft.Line = v.At, v.At.Line
	if v.Kind == yamltree.Text {
		from, to, found := strings.Cut(v.Text, "->")
		draft.From, draft.To = strings.TrimSpace(from), strings.TrimSpace(to)
		if !found || draft.From == "" || draft.To == "" || strings.Contains(to, "->") {
			r.Complain(v.At, "an edge is written a -> b, or {from: a, to: b, when: ...}, not %s", yamlform.Quoted(v.Text))
			return draft, false
		}
		draft.from, draft.to = r.findNode(draft.From, v.At), r.findNode(draft.To, v.At)
		draft.toAt = v.At
		return draft, true
	}
	if v.Kind != yamltree.Mapping {
		r.Complain(v.At, "an edge is written a -> b, or {from: a, to: b, when: ...}, not as %s", v.Kind)
		return draft, false
	}
	var file edgeFile
	r.Object(v, "an edge", &file)
	draft.From, draft.from, draft.at = r.readEnd(v, file.From, "from")
	draft.To, draft.to, draft.toAt = r.readEnd(v, file.To, "to")
	r.readConditions(&draft, file)
	r.readLimit(&draft, file)
	return draft, true
}

// edgeFile is the long form of an edge.
type edgeFile struct {
	From      *yamltree.Node         `key:"from" form:"name" required:"true" help:"The node that it leaves."`
	To        *yamltree.Node         `key:"to" form:"name" required:"true" help:"The node that it leads to."`
	When      *yamltree.Node         `key:"when" form:"expression" help:"What must hold for the edge to be taken. Default: true."`
	Otherwise yamlform.Value[bool]   `key:"otherwise" help:"Whether the edge is taken when no other edge of its node is. Default: false."`
	Max       yamlform.Value[int]    `key:"max" min:"1" max:"1000" help:"Of an edge that leads back: how often it may be taken in one passage through its loop."`
	AtLimit   yamlform.Value[string] `key:"at_limit" enum:"fail,continue" help:"What happens when it would be taken more often: the run fails, or continues along the node's other edges. Default: fail."`
}

func (r *reader) readEnd(edge, v *yamltree.Node, key string) (id string, index int, at position) {
	if v == nil {
		if !edge.Has(key) {
			r.Complain(edge.At, "an edge needs the key %s with the id of a node", key)
		}
		return "", -1, edge.At
	}
	if id = r.Text(v, key); id == "" {
		return "", -1, v.At
	}
	return id, r.findNode(id, v.At), v.At
}

// findNode returns a node's index in the file, or -1 after it has reported an error.
func (r *reader) findNode(id string, at position) int {
	index := slices.IndexFunc(r.workflow.Nodes, func(n Node) bool { return n.ID == id })
	if index < 0 {
		r.Complain(at, "there is no node %s%s", yamlform.Quoted(id), yamlform.DidYouMean(id, r.nodeIDs()))
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

func (r *reader) readConditions(draft *draftEdge, file edgeFile) {
	draft.Otherwise = file.Otherwise.Is
	if v := file.Otherwise.Node; v != nil {
		draft.otherwiseAt = v.At
	}
	when := file.When
	if when == nil {
		return
	}
	at := site{role: ofEdge, node: draft.From}
	if draft.from < 0 {
		at.node = ""
	}
	draft.When = r.readExpression(when, "when", at)
	if draft.Otherwise {
		r.Complain(draft.otherwiseAt, "an edge has either when or otherwise, which means that no other edge of the node is taken; remove one of both")
	}
}

func (r *reader) readLimit(draft *draftEdge, file edgeFile) {
	if v := file.Max.Node; v != nil {
		draft.limited, draft.maxAt, draft.Max = true, v.At, file.Max.Is
	}
	draft.Continue = file.AtLimit.Is == "continue"
	if limit := file.AtLimit.Node; limit != nil && file.Max.Node == nil {
		r.Complain(limit.At, "at_limit needs max; add max, or remove at_limit")
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
			r.Complain(draft.at, "there is an edge %s already in line %d; make one of both, and join conditions with or", draft, other.Line)
		} else if draft.Otherwise && other.Otherwise {
			r.Complain(draft.otherwiseAt, "%s has an edge with otherwise already in line %d; only one can be for all other cases", draft.From, other.Line)
		}
	}
}
