package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// A run that failed or was stopped is repaired by events. A repair changes the state of a node or replaces the
// workflow; the run is resumed by an event of its own ([State.Resume]). Nodes that depend on a set or repeated node
// over forward edges run again after it. No other finished node does.

// ErrNotRepairable says that a run or a step is not in a state that a repair can change.
var ErrNotRepairable = errors.New("this cannot be repaired in this way")

// Set makes the entry that finishes a node with outputs from a person, a JSON object. They must match the declared
// outputs; the node's check is not evaluated. The conditions of its edges are evaluated with them.
func (s *State) Set(id string, outputs json.RawMessage, by string) (continuo.Entry, error) {
	node, err := s.step(id, "continuo run retry asks again")
	if err != nil {
		return continuo.Entry{}, err
	}
	if err := s.isLedTo(id); err != nil {
		return continuo.Entry{}, err
	}
	values, err := decodeObject(outputs)
	if err != nil {
		return continuo.Entry{}, fmt.Errorf("outputs of the step %s: %w: %w", id, continuo.ErrInvalid, err)
	}
	read, problems := readOutputs(node.outputFields(), values)
	if len(problems) > 0 {
		return continuo.Entry{}, fmt.Errorf("outputs of the step %s: %w: %s", id, continuo.ErrInvalid, strings.Join(problems, "; "))
	}
	event := continuo.RunEvent{Kind: continuo.RunNodeSet, Visit: s.visitOf(id), Outputs: canonical(read), By: by}
	ahead := s.Clone()
	ahead.reopen(id)
	next, problem, fatal := ahead.follows(node, read, event.Visit)
	if problem += fatal; problem != "" {
		return continuo.Entry{}, fmt.Errorf("outputs of the step %s: %w: with them %s", id, continuo.ErrInvalid, problem)
	}
	event.Next = next
	entry := s.event(id, event, fmt.Sprintf("The outputs of the step %s were set by hand: %s", id, event.Outputs))
	entry.OutputRef = continuo.StepRef(s.RunID, id)
	return entry, nil
}

// readOutputs reads outputs by their exact names, and reports those that are not declared.
func readOutputs(fields []Field, values map[string]any) (read map[string]any, problems []string) {
	read, problems = takeFields(fields, values)
	var unknown []string
	for name := range values {
		if !isField(name, fields) {
			unknown = append(unknown, fmt.Sprintf("there is no output %q%s", firstWords(name), suggest(name, fields)))
		}
	}
	slices.Sort(unknown)
	return read, append(unknown, problems...)
}

// Again makes the entry with which a node runs again, in a new visit, with all nodes that depend on it.
func (s *State) Again(id, by string) (continuo.Entry, error) {
	progress := s.nodes[id]
	switch {
	case progress == nil:
		return continuo.Entry{}, s.noNode(id)
	case progress.state == NodePending:
		return continuo.Entry{}, fmt.Errorf("step %s: %w: it has not begun; it begins when the run is resumed", id, ErrNotRepairable)
	}
	if err := s.isLedTo(id); err != nil {
		return continuo.Entry{}, err
	}
	event := continuo.RunEvent{Kind: continuo.RunNodeRetried, Visit: progress.visit, By: by}
	entry := s.event(id, event, fmt.Sprintf("The step %s is carried out again, and what depends on it.", id))
	ahead := s.Clone()
	if err := ahead.Apply(&entry); err != nil {
		return continuo.Entry{}, err
	}
	if !ahead.ready(id) {
		return continuo.Entry{}, fmt.Errorf("step %s: %w: steps before it have not finished, and it begins after them", id, ErrNotRepairable)
	}
	return entry, nil
}

// Skip makes the entry with which the run continues after a node as if the node did not exist. The node has no
// outputs, so Skip fails if an expression that is still to be evaluated needs them.
func (s *State) Skip(id, by string) (continuo.Entry, error) {
	node, err := s.step(id, "continuo run approve decides it")
	if err != nil {
		return continuo.Entry{}, err
	}
	switch s.nodes[id].state {
	case NodeFinished:
		return continuo.Entry{}, fmt.Errorf("step %s: %w: it has finished; its outputs can be set, or it can be carried out again", id, ErrNotRepairable)
	case NodeSkipped:
		return continuo.Entry{}, fmt.Errorf("step %s: %w: it is skipped already", id, ErrNotRepairable)
	}
	if needs := s.needing(id); len(needs) > 0 {
		return continuo.Entry{}, fmt.Errorf("step %s: %w: a skipped step has no outputs, and %s; set its outputs instead",
			id, ErrNotRepairable, strings.Join(needs, ", and "))
	}
	next, problem := s.leadOn(node, nil)
	if problem != "" {
		return continuo.Entry{}, fmt.Errorf("step %s: %w: %s", id, ErrNotRepairable, problem)
	}
	event := continuo.RunEvent{Kind: continuo.RunNodeSkipped, Visit: s.visitOf(id), Next: next, By: by}
	return s.event(id, event, fmt.Sprintf("The step %s is skipped.", id)), nil
}

// needing lists the expressions that need the outputs of a node: those of its own edges, and those elsewhere that are
// still to be evaluated.
func (s *State) needing(id string) (found []string) {
	add := func(e *Expression, own bool, what string) {
		if e != nil && (own && e.own || slices.Contains(e.needs, id)) {
			found = append(found, fmt.Sprintf("%s needs them (%s)", what, e.Text))
		}
	}
	for i := range s.Workflow.Nodes {
		node := &s.Workflow.Nodes[i]
		if state := s.nodes[node.ID].state; node.ID == id || state == NodeFinished || state == NodeSkipped {
			continue
		}
		add(node.Check, false, "the check of the step "+node.ID)
		for _, input := range node.Inputs {
			add(input.Value, false, fmt.Sprintf("the input %s of the step %s", input.Name, node.ID))
		}
	}
	for i := range s.Workflow.Edges {
		edge := &s.Workflow.Edges[i]
		if state := s.nodes[edge.From].state; edge.From == id || state != NodeFinished && state != NodeSkipped {
			add(edge.When, edge.From == id, fmt.Sprintf("the condition of the edge %s -> %s", edge.From, edge.To))
		}
	}
	for _, output := range s.Workflow.Outputs {
		add(output.Value, false, fmt.Sprintf("the run's output %s", output.Name))
	}
	return found
}

// leadOn decides which forward edges are followed from a settled node.
func (s *State) leadOn(node *Node, outputs map[string]any) (next []string, problem string) {
	values := s.values(node.ID, outputs, s.nodes[node.ID].visit)
	otherwise := ""
	for i := range s.Workflow.Edges {
		edge := &s.Workflow.Edges[i]
		switch {
		case edge.From != node.ID || edge.Max > 0:
		case edge.Otherwise:
			otherwise = edge.To
		case edge.When == nil:
			next = append(next, edge.To)
		default:
			holds, err := edge.When.Holds(values)
			if err != nil {
				return nil, fmt.Sprintf("the condition of the edge %s -> %s cannot be computed: %s", edge.From, edge.To, err)
			}
			if holds {
				next = append(next, edge.To)
			}
		}
	}
	if len(next) == 0 && otherwise != "" {
		next = []string{otherwise}
	}
	return next, ""
}

// step finds a node that a model executes; the error for an approval says what to do instead.
func (s *State) step(id, instead string) (*Node, error) {
	node := s.Workflow.Node(id)
	switch {
	case node == nil:
		return nil, s.noNode(id)
	case node.Approval != nil:
		return nil, fmt.Errorf("step %s: %w: it is a person's decision; %s", id, ErrNotRepairable, instead)
	}
	return node, nil
}

func (s *State) noNode(id string) error {
	fields := make([]Field, len(s.Workflow.Nodes))
	for i := range s.Workflow.Nodes {
		fields[i].Name = s.Workflow.Nodes[i].ID
	}
	return fmt.Errorf("step %q: %w in the workflow %s%s", firstWords(id), continuo.ErrNotFound, s.Workflow.ID, suggest(id, fields))
}

// isLedTo refuses a node that was skipped because no edge to it was taken.
func (s *State) isLedTo(id string) error {
	if node := s.nodes[id]; node.state == NodeSkipped && !node.passed {
		return fmt.Errorf("step %s: %w: no edge that was taken leads to it; repair the step before it", id, ErrNotRepairable)
	}
	return nil
}

// visitOf is the visit that a repair settles: the next one of a pending node, else the newest.
func (s *State) visitOf(id string) int {
	if node := s.nodes[id]; node.state != NodePending {
		return max(node.visit, 1)
	}
	return s.nodes[id].visit + 1
}

// repair applies a repair of a node.
func (s *State) repair(entry *continuo.Entry, node *progress, event *continuo.RunEvent) error {
	id := entry.NodeID
	if node.state == NodePending && event.Kind != continuo.RunNodeRetried {
		node.branch, _ = s.continuedBranch(id)
		node.visit, node.attempt, node.began = event.Visit, 0, entry.Seq
	}
	s.reopen(id)
	node.reset()
	switch event.Kind {
	case continuo.RunNodeSet:
		return s.finish(id, node, event)
	case continuo.RunNodeSkipped:
		node.state, node.passed, node.next, node.outputs, node.repairs = NodeSkipped, true, event.Next, nil, nil
		s.skip()
	}
	return nil
}

// reset sets a node to its state before it began; its earlier outputs remain available.
func (p *progress) reset() {
	p.state, p.next, p.reason, p.kept = NodePending, nil, "", nil
	p.due, p.open, p.retry, p.passed, p.cut, p.afterCut = false, false, false, false, false, false
	p.refused, p.cuts = 0, 0
	p.clearFailures()
}

// reopen resets all nodes that depend on a node over forward edges, so that they run after it. Loops among them may
// repeat up to their limits again.
func (s *State) reopen(id string) {
	behind := map[string]bool{}
	for todo := []string{id}; len(todo) > 0; todo = todo[1:] {
		for i := range s.Workflow.Edges {
			if edge := &s.Workflow.Edges[i]; edge.From == todo[0] && edge.Max == 0 && !behind[edge.To] {
				behind[edge.To] = true
				todo = append(todo, edge.To)
			}
		}
	}
	for other := range behind {
		s.nodes[other].reset()
	}
	for i := range s.Workflow.Edges {
		if edge := &s.Workflow.Edges[i]; edge.Max > 0 && behind[edge.To] && !slices.Contains(edge.Body, id) {
			delete(s.taken, i)
		}
	}
}

// Attends reports whether no event records the result of a step's attempt, whether or not the run is running.
func (s *State) Attends(step Step) bool {
	node := s.nodes[step.Node.ID]
	return node != nil && node.state == NodeRunning && node.open && node.visit == step.Visit && node.attempt == step.Attempt
}
