package workflow

import (
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// State is computed from the events of one run. It is not safe for concurrent use.
type State struct {
	Workflow *Workflow
	RunID    string
	// Run is the state of the run, Reason why it failed or was stopped.
	Run    continuo.RunState
	Reason string
	// Seq is the seq of the newest event.
	Seq int64

	inputs  map[string]any
	outputs map[string]any // of a run that has finished
	nodes   map[string]*progress
	taken   map[int]int // how often each edge back was taken in the current passage, by its index in Edges
	coming  *Workflow   // the workflow that the next RunReplaced names; see Adopt
}

// progress is the state of a node.
type progress struct {
	state          NodeState
	due            bool // an edge back was taken to this node: it begins again whatever its other edges
	passed         bool // a person skipped it: the run continues after it
	visit          int
	attempt        int  // the newest of the visit
	open           bool // no event records the attempt's result
	retry          bool // the run was resumed after the attempt had begun
	refused        int  // refused answers of the visit since the run was last resumed
	failedAttempts int  // attempts that broke off since the last answer or resume of the run
	// delayed is when the attempt after one that broke off begins; zero for at once. since is when the first of the
	// attempts that broke off was recorded.
	delayed, since time.Time
	began          int64  // the seq of the visit's first entry
	branch         string // the conversation of the visit; "" is the run's own
	sentBy         string // the node whose edge back was taken to this one; only if due
	reason         string
	outputs        map[string]any
	next           []string
	kept           map[string]any // valid outputs of the visit's refused answers
	repairs        []string       // of the answer with the outputs
	cut            bool           // the newest answer reached the model's token limit
	afterCut       bool           // so did the answer before the attempt
	cuts           int            // how often that happened since the visit began or the run was resumed
}

// NewState makes the initial state of a run.
func NewState(w *Workflow, runID string) *State {
	s := &State{Workflow: w, RunID: runID, Run: continuo.RunRunning, nodes: map[string]*progress{}, taken: map[int]int{}}
	for i := range w.Nodes {
		s.nodes[w.Nodes[i].ID] = &progress{state: NodePending}
	}
	return s
}

// RunState is the state of the run.
func (s *State) RunState() continuo.RunState { return s.Run }

// Apply applies an entry of the log; entries without an event of the run change nothing. An event that is invalid for
// the workflow is an error: the run cannot continue. A redacted event has no inputs and outputs.
func (s *State) Apply(entry *continuo.Entry) error {
	event := entry.RunEvent
	if event == nil || entry.RunID != s.RunID || s.Run.IsOver() {
		return nil
	}
	var node *progress
	if entry.NodeID != "" {
		if node = s.nodes[entry.NodeID]; node == nil {
			return fmt.Errorf("run %s: %w: entry %d is of the node %q, which the workflow does not have", s.RunID, continuo.ErrInvalid, entry.Seq, entry.NodeID)
		}
	}
	if err := s.follow(entry, event, node); err != nil {
		return fmt.Errorf("run %s: entry %d: %w: %w", s.RunID, entry.Seq, continuo.ErrInvalid, err)
	}
	s.Seq = entry.Seq
	return nil
}

// follow applies an event; node is the event's node.
func (s *State) follow(entry *continuo.Entry, event *continuo.RunEvent, node *progress) (err error) {
	switch event.Kind {
	case continuo.RunNodeSet, continuo.RunNodeRetried, continuo.RunNodeSkipped:
		if node == nil {
			return fmt.Errorf("%s names no node", event.Kind)
		}
		return s.repair(entry, node, event)
	case continuo.RunNodeBegan, continuo.RunNodeAsked, continuo.RunNodeRefused, continuo.RunNodeFinished, continuo.RunNodeDelayed, continuo.RunNodeFailed:
		if node == nil {
			return fmt.Errorf("%s names no node", event.Kind)
		}
		if asks := s.Workflow.Node(entry.NodeID).Approval != nil; asks != (event.Kind == continuo.RunNodeAsked) && event.Kind != continuo.RunNodeFinished {
			return fmt.Errorf("%s is no event of the node %s", event.Kind, entry.NodeID)
		}
	}
	switch event.Kind {
	case continuo.RunBegan:
		s.inputs, err = s.decode(s.Workflow.Inputs, event.Inputs)
	case continuo.RunNodeBegan:
		if event.Visit != node.visit {
			node.visit, node.refused, node.began = event.Visit, 0, entry.Seq
			node.kept, node.cuts = nil, 0
			node.branch = event.Branch
			node.clearFailures()
		} else if node.open {
			node.failedAttempts++
		}
		node.state, node.attempt, node.open, node.retry, node.due = NodeRunning, event.Attempt, true, false, false
		node.delayed, node.afterCut, node.cut = time.Time{}, node.cut, false
	case continuo.RunNodeAsked:
		node.state, node.visit, node.attempt, node.began, node.due = NodeWaiting, event.Visit, 1, entry.Seq, false
	case continuo.RunNodeRefused:
		err = s.refuse(entry.NodeID, node, event)
	case continuo.RunNodeDelayed:
		node.delayed, node.reason = event.Until, event.Reason
		if node.since.IsZero() {
			node.since = entry.CreatedAt
		}
	case continuo.RunNodeFailed:
		node.state, node.reason, node.delayed = NodeFailed, event.Reason, time.Time{}
	case continuo.RunNodeFinished:
		err = s.finish(entry.NodeID, node, event)
	case continuo.RunEventWaiting:
		s.Run = continuo.RunWaiting
	case continuo.RunEventFinished:
		s.Run = continuo.RunFinished
		s.outputs, err = decodeObject(event.Outputs)
	case continuo.RunEventFailed:
		s.Run, s.Reason = continuo.RunFailed, event.Reason
	case continuo.RunEventStopped:
		s.Run, s.Reason = continuo.RunStopped, event.Reason
	case continuo.RunEventCancelled:
		s.Run, s.Reason = continuo.RunCancelled, event.Reason
	case continuo.RunResumed:
		s.resume()
	case continuo.RunReplaced:
		err = s.replace(event)
	default:
		return fmt.Errorf("there is no event %q", event.Kind)
	}
	return err
}

// refuse applies the refusal of a node's answer.
func (s *State) refuse(id string, node *progress, event *continuo.RunEvent) (err error) {
	node.open, node.reason, node.cut = false, event.Reason, event.Cut
	node.clearFailures()
	if event.Cut {
		node.cuts++
		return nil
	}
	node.refused++
	node.kept, err = s.decode(s.Workflow.Node(id).outputFields(), event.Outputs)
	return err
}

// finish settles a node and what depends on it.
func (s *State) finish(id string, node *progress, event *continuo.RunEvent) (err error) {
	if node.outputs, err = s.decode(s.Workflow.Node(id).outputFields(), event.Outputs); err != nil {
		return err
	}
	node.state, node.next, node.open, node.reason = NodeFinished, event.Next, false, ""
	node.kept, node.repairs = nil, event.Repairs
	node.clearFailures()
	for i := range s.Workflow.Edges {
		edge := &s.Workflow.Edges[i]
		if edge.From == id && edge.Max > 0 && slices.Contains(event.Next, edge.To) {
			s.repeat(i, edge)
			return nil
		}
	}
	s.skip()
	return nil
}

// repeat repeats a loop: its nodes become pending, and the loops within it may repeat up to their limits again.
// Earlier outputs of the nodes remain available.
func (s *State) repeat(index int, edge *Edge) {
	s.taken[index]++
	for i := range s.Workflow.Edges {
		inner := &s.Workflow.Edges[i]
		if i != index && inner.Max > 0 && len(inner.Body) < len(edge.Body) && slices.Contains(edge.Body, inner.From) && slices.Contains(edge.Body, inner.To) {
			delete(s.taken, i)
		}
	}
	for _, id := range edge.Body {
		node := s.nodes[id]
		node.state, node.next, node.due, node.sentBy = NodePending, nil, id == edge.To, edge.From
	}
}

// skip settles nodes to which no edge can be taken any more.
func (s *State) skip() {
	for changed := true; changed; {
		changed = false
		for i := range s.Workflow.Nodes {
			id := s.Workflow.Nodes[i].ID
			node := s.nodes[id]
			if node.state != NodePending || node.due {
				continue
			}
			if settled, taken, any := s.into(id); any && settled && !taken {
				node.state, node.next = NodeSkipped, nil
				changed = true
			}
		}
	}
}

// into inspects the forward edges to a node: whether all are settled, whether as many were taken as the node's join
// requires, and whether there are any.
func (s *State) into(id string) (settled, taken, any bool) {
	settled = true
	left := 0 // edges of finished nodes that were not taken
	for i := range s.Workflow.Edges {
		edge := &s.Workflow.Edges[i]
		if edge.To != id || edge.Max > 0 {
			continue
		}
		any = true
		from := s.nodes[edge.From]
		switch from.state {
		case NodeFinished:
			if slices.Contains(from.next, id) {
				taken = true
			} else {
				left++
			}
		case NodeSkipped: // the run continues after a node that a person skips
			taken = taken || slices.Contains(from.next, id)
		default:
			settled = false
		}
	}
	if s.Workflow.Node(id).Join == JoinAll && left > 0 {
		taken = false
	}
	return settled, taken, any
}

// clearFailures clears the record of attempts that broke off.
func (p *progress) clearFailures() {
	p.failedAttempts, p.delayed, p.since = 0, time.Time{}, time.Time{}
}

// ready reports whether a node may begin.
func (s *State) ready(id string) bool {
	node := s.nodes[id]
	if node.state != NodePending {
		return false
	}
	settled, taken, any := s.into(id)
	return node.due || settled && (taken || !any)
}

// resume resumes a run that failed or was stopped: steps that broke off are tried again, and steps whose answers were
// refused too often are asked again.
func (s *State) resume() {
	s.Run, s.Reason = continuo.RunRunning, ""
	for _, node := range s.nodes {
		if node.state == NodeRunning || node.state == NodeFailed {
			node.state, node.retry, node.refused, node.cuts = NodeRunning, true, 0, 0
			node.clearFailures()
		}
	}
}

// decode reads the values of fields from an event.
func (s *State) decode(fields []Field, raw []byte) (map[string]any, error) {
	values, err := decodeObject(raw)
	if err != nil {
		return nil, err
	}
	read, _ := takeFields(fields, values) // a missing value was optional, or checked before it was recorded
	return read, nil
}

// values are the values for an expression of a node; outputs are the node's own.
func (s *State) values(id string, outputs map[string]any, visit int) Values {
	values := Values{Inputs: s.inputs, Outputs: outputs, Visit: visit, Nodes: map[string]map[string]any{}}
	for other, node := range s.nodes {
		if node.outputs != nil {
			values.Nodes[other] = node.outputs
		}
	}
	if outputs != nil {
		values.Nodes[id] = outputs
	}
	return values
}
