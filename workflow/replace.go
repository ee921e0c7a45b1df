package workflow

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Replace makes the entry with which the run continues with a corrected workflow; changed is false where the run
// already has it. The workflow must contain all finished steps, with declared outputs that match theirs, unless the
// steps are dropped by name.
func (s *State) Replace(w *Workflow, drop []string, by string) (entry continuo.Entry, changed bool, err error) {
	if w.Hash() == s.Workflow.Hash() && len(drop) == 0 {
		return continuo.Entry{}, false, nil
	}
	if w.ID != s.Workflow.ID {
		return continuo.Entry{}, false, fmt.Errorf("workflow %s: %w: the run is of the workflow %s; give the file the id %s", w.ID, continuo.ErrInvalid, s.Workflow.ID, s.Workflow.ID)
	}
	if wrong := s.unfit(w, drop); len(wrong) > 0 {
		return continuo.Entry{}, false, fmt.Errorf("workflow %s: %w: %s", w.ID, continuo.ErrInvalid, strings.Join(wrong, "; "))
	}
	inputs, err := w.ReadInputs(canonical(declared(w.Inputs, s.inputs)))
	if err != nil {
		return continuo.Entry{}, false, err
	}
	event := continuo.RunEvent{Kind: continuo.RunReplaced, Workflow: w.Hash(), Inputs: inputs, Dropped: drop, By: by}
	if event.Followed, err = s.followedBy(w, event); err != nil {
		return continuo.Entry{}, false, err
	}
	text := "The workflow was replaced by a corrected one."
	if len(drop) > 0 {
		text += " Steps that it does not have any more: " + strings.Join(drop, ", ")
	}
	entry = s.event("", event, text)
	entry.OutputRef = continuo.InputsRef(s.RunID)
	return entry, true, nil
}

// Adopt sets the workflow that the next RunReplaced event names.
func (s *State) Adopt(w *Workflow) { s.coming = w }

// unfit lists the conflicts of the run's finished steps with a workflow.
func (s *State) unfit(w *Workflow, drop []string) (wrong []string) {
	for i := range s.Workflow.Nodes {
		id := s.Workflow.Nodes[i].ID
		node, dropped := w.Node(id), slices.Contains(drop, id)
		switch finished := s.nodes[id].state == NodeFinished; {
		case dropped && node != nil:
			wrong = append(wrong, fmt.Sprintf("the step %s is still in it, so that it cannot be dropped", id))
		case !finished:
		case node == nil && !dropped:
			wrong = append(wrong, fmt.Sprintf("the step %s has finished and is not in it; keep it, or drop it by name", id))
		case node != nil:
			if _, problems := takeFields(node.outputFields(), s.nodes[id].outputs); len(problems) > 0 {
				wrong = append(wrong, fmt.Sprintf("the step %s has finished with other outputs than it declares now: %s; "+
					"have it carried out again, without resuming the run, before the workflow is replaced", id, strings.Join(problems, ", ")))
			}
		}
	}
	for _, id := range drop {
		if s.nodes[id] == nil {
			wrong = append(wrong, fmt.Sprintf("there is no step %q to drop", firstWords(id)))
		}
	}
	return wrong
}

// declared are the values of declared fields.
func declared(fields []Field, values map[string]any) map[string]any {
	result := map[string]any{}
	for name, value := range values {
		if isField(name, fields) {
			result[name] = value
		}
	}
	return result
}

// followedBy computes the followed edges of settled nodes whose edges a workflow changes.
func (s *State) followedBy(w *Workflow, event continuo.RunEvent) (map[string][]string, error) {
	ahead := s.Clone()
	ahead.Adopt(w)
	if err := ahead.replace(&event); err != nil {
		return nil, err
	}
	followed := map[string][]string{}
	for i := range w.Nodes {
		id := w.Nodes[i].ID
		before := s.nodes[id]
		if before == nil || before.state != NodeFinished && !before.passed || sameEdges(s.Workflow, w, id) {
			continue
		}
		next, problem := ahead.leadOn(&w.Nodes[i], ahead.nodes[id].outputs)
		if problem != "" {
			return nil, fmt.Errorf("workflow %s: %w: the step %s has finished, and %s", w.ID, continuo.ErrInvalid, id, problem)
		}
		followed[id] = next
	}
	return followed, nil
}

// replace applies the event of a corrected workflow.
func (s *State) replace(event *continuo.RunEvent) (err error) {
	before, w := s.Workflow, s.coming
	if w == nil || w.Hash() != event.Workflow {
		return fmt.Errorf("the workflow %s was not read", event.Workflow)
	}
	s.Workflow, s.coming = w, nil
	if s.inputs, err = s.decode(w.Inputs, event.Inputs); err != nil {
		return err
	}
	nodes := map[string]*progress{}
	for i := range w.Nodes {
		id := w.Nodes[i].ID
		if nodes[id] = s.nodes[id]; nodes[id] == nil {
			nodes[id] = &progress{state: NodePending}
		}
	}
	s.nodes, s.taken = nodes, renumber(before, w, s.taken)
	for i := range w.Nodes {
		s.carryOver(before, &w.Nodes[i], event)
	}
	s.skip()
	return nil
}

// carryOver keeps the state of a node as far as it is valid in a corrected workflow. A node that has begun is reset
// if its definition or its edges differ.
func (s *State) carryOver(before *Workflow, node *Node, event *continuo.RunEvent) {
	progress := s.nodes[node.ID]
	if next, changed := event.Followed[node.ID]; changed {
		progress.next = next
	}
	if progress.outputs != nil {
		progress.outputs, _ = takeFields(node.outputFields(), progress.outputs)
	}
	if s.nodes[progress.sentBy] == nil {
		progress.due, progress.sentBy = false, ""
	}
	switch progress.state {
	case NodeSkipped:
		if !progress.passed {
			progress.reset() // skip decides again
		}
	case NodeRunning, NodeFailed, NodeWaiting:
		if !sameNode(before, s.Workflow, node.ID) || !sameEdges(before, s.Workflow, node.ID) {
			progress.reset()
		}
	}
}

// renumber counts how often the edges back were taken, by their indexes in another workflow.
func renumber(before, after *Workflow, taken map[int]int) map[int]int {
	result := map[int]int{}
	for index, times := range taken {
		edge := &before.Edges[index]
		for i := range after.Edges {
			if other := &after.Edges[i]; other.Max > 0 && other.From == edge.From && other.To == edge.To {
				result[i] = times
			}
		}
	}
	return result
}

// sameNode reports whether a node has the same definition in two workflows.
func sameNode(a, b *Workflow, id string) bool {
	one, other := a.Node(id), b.Node(id)
	return one != nil && other != nil && bytes.Equal(rawjson.MustMarshal(one.shown()), rawjson.MustMarshal(other.shown())) && one.Join == other.Join
}

// sameEdges reports whether the same edges leave a node in two workflows.
func sameEdges(a, b *Workflow, id string) bool {
	return bytes.Equal(rawjson.MustMarshal(a.leaving(id)), rawjson.MustMarshal(b.leaving(id)))
}

// leaving are the edges that leave a node.
func (w *Workflow) leaving(id string) (edges []ShownEdge) {
	for i := range w.Edges {
		if w.Edges[i].From == id {
			shown := w.Edges[i].shown()
			shown.Body = nil
			edges = append(edges, shown)
		}
	}
	return edges
}
