package workflow

import (
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// State is what the events of one run come to. It is not safe for concurrent use.
type State struct {
	Workflow *Workflow
	RunID    string
	// Run is how far the run is, Reason why it failed or was stopped.
	Run    continuo.RunState
	Reason string
	// Seq is the seq of the newest event.
	Seq int64

	inputs  map[string]any
	outputs map[string]any // of a run that has finished
	nodes   map[string]*progress
	taken   map[int]int // how often each edge back was taken in the passage under way, by its place in Edges
	coming  *Workflow   // what the next RunReplaced names; see Adopt
}

// progress is how far a node is.
type progress struct {
	state   NodeState
	due     bool // an edge back leads here: it begins anew whatever leads to it
	passed  bool // a person skipped it: the run goes on behind it
	visit   int
	attempt int  // the newest of the visit
	open    bool // nothing is recorded of what came of the attempt
	retry   bool // somebody resumed the run since the attempt began
	refused int  // answers of the visit since somebody resumed the run
	broken  int  // attempts that broke off since an answer came or somebody resumed the run
	// delayed is when the attempt behind one that broke off begins; zero for at once. since is when the first of the
	// attempts that broke off was recorded.
	delayed, since time.Time
	began          int64  // the seq that the visit began with
	branch         string // the conversation of the visit; "" is the run's own
	sentBy         string // the node whose edge back leads here, of one that is due
	reason         string
	outputs        map[string]any
	next           []string
	kept           map[string]any // outputs of the visit's refused answers that were right
	repairs        []string       // of the answer that outputs are of
	cut            bool           // the newest answer reached the model's limit of tokens
	afterCut       bool           // the answer before the attempt did
	cuts           int            // how often that was so since the visit began or somebody resumed the run
}

// NewState makes the state of a run of which nothing is known yet.
func NewState(w *Workflow, runID string) *State {
	s := &State{Workflow: w, RunID: runID, Run: continuo.RunRunning, nodes: map[string]*progress{}, taken: map[int]int{}}
	for i := range w.Nodes {
		s.nodes[w.Nodes[i].ID] = &progress{state: NodePending}
	}
	return s
}

// RunState is how far the run is.
func (s *State) RunState() continuo.RunState { return s.Run }

// Apply follows an entry of the log; those without an event of the run change nothing. An event that the workflow
// does not know is an error: the run cannot go on. Of one that was redacted the inputs and outputs are missing.
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

// follow applies an event; node is the one that the event is of.
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
			node.mend()
		} else if node.open {
			node.broken++
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
	case continuo.RunHeld:
		s.Run = continuo.RunWaiting
	case continuo.RunEnded:
		s.Run = continuo.RunFinished
		s.outputs, err = decodeObject(event.Outputs)
	case continuo.RunBrokeOff:
		s.Run, s.Reason = continuo.RunFailed, event.Reason
	case continuo.RunHalted:
		s.Run, s.Reason = continuo.RunStopped, event.Reason
	case continuo.RunCalledOff:
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

// refuse follows that a node's answer was not enough.
func (s *State) refuse(id string, node *progress, event *continuo.RunEvent) (err error) {
	node.open, node.reason, node.cut = false, event.Reason, event.Cut
	node.mend()
	if event.Cut {
		node.cuts++
		return nil
	}
	node.refused++
	node.kept, err = s.decode(s.Workflow.Node(id).outputFields(), event.Outputs)
	return err
}

// finish settles a node and what follows of it.
func (s *State) finish(id string, node *progress, event *continuo.RunEvent) (err error) {
	if node.outputs, err = s.decode(s.Workflow.Node(id).outputFields(), event.Outputs); err != nil {
		return err
	}
	node.state, node.next, node.open, node.reason = NodeFinished, event.Next, false, ""
	node.kept, node.repairs = nil, event.Repairs
	node.mend()
	for i := range s.Workflow.Edges {
		edge := &s.Workflow.Edges[i]
		if edge.From == id && edge.Max > 0 && slices.Contains(event.Next, edge.To) {
			s.goBack(i, edge)
			return nil
		}
	}
	s.skip()
	return nil
}

// goBack begins a loop anew: its nodes are to come again, and the loops within it have all their rounds. What the
// nodes gave before stays known.
func (s *State) goBack(place int, edge *Edge) {
	s.taken[place]++
	for i := range s.Workflow.Edges {
		inner := &s.Workflow.Edges[i]
		if i != place && inner.Max > 0 && len(inner.Body) < len(edge.Body) && slices.Contains(edge.Body, inner.From) && slices.Contains(edge.Body, inner.To) {
			delete(s.taken, i)
		}
	}
	for _, id := range edge.Body {
		node := s.nodes[id]
		node.state, node.next, node.due, node.sentBy = NodePending, nil, id == edge.To, edge.From
	}
}

// skip settles nodes that no taken edge leads to any more.
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

// into looks at the edges that lead to a node, without those that lead back: whether all are settled, and
// whether as many of them were taken as its join wants.
func (s *State) into(id string) (settled, taken, any bool) {
	settled = true
	left := 0 // edges of nodes that were carried out and that were not taken
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
		case NodeSkipped: // a person who skips a node has the run go on behind it
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

// mend forgets the attempts that broke off.
func (p *progress) mend() { p.broken, p.delayed, p.since = 0, time.Time{}, time.Time{} }

// ready reports whether a node is to begin.
func (s *State) ready(id string) bool {
	node := s.nodes[id]
	if node.state != NodePending {
		return false
	}
	settled, taken, any := s.into(id)
	return node.due || settled && (taken || !any)
}

// resume lets a run go on that failed or was stopped: what broke off is tried again, and answers that were
// refused too often are asked for again.
func (s *State) resume() {
	s.Run, s.Reason = continuo.RunRunning, ""
	for _, node := range s.nodes {
		if node.state == NodeRunning || node.state == NodeFailed {
			node.state, node.retry, node.refused, node.cuts = NodeRunning, true, 0, 0
			node.mend()
		}
	}
}

// decode reads the values of fields as an event has them.
func (s *State) decode(fields []Field, raw []byte) (map[string]any, error) {
	values, err := decodeObject(raw)
	if err != nil {
		return nil, err
	}
	read, _ := takeFields(fields, values) // what is missing was optional, or checked before it was recorded
	return read, nil
}

// values are what an expression of a node can speak of, outputs being its own.
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
