package workflow

import (
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// Step is what is to be done next in a run.
type Step struct {
	Kind StepKind
	// Node, Visit and Attempt say of which turn: the one that is to begin, or the one that has begun.
	Node           *Node
	Visit, Attempt int
	// Refused says why the visit's last answer was not enough; "" when there was none or it broke off.
	Refused string
	// Resumes says that an attempt before this one broke off, and that this one goes on with it.
	Resumes bool
	// Retry says of an attempt that has begun that somebody resumed the run since: where it failed it is tried again.
	Retry bool
}

// StepKind says what a Step does.
type StepKind string

// The kinds of steps.
const (
	// StepNone: nothing is to be done, because the run is over, failed, was stopped or waits for a person.
	StepNone StepKind = ""
	// StepBegin: the attempt is to begin.
	StepBegin StepKind = "begin"
	// StepAttend: the attempt has begun, and what came of it stands in no event. Its turn tells: it runs, and is
	// to be waited for, or it broke off.
	StepAttend StepKind = "attend"
	// StepRecord: what follows of the log needs no turn; see [State.Record].
	StepRecord StepKind = "record"
)

// Next says what is to be done. Of nodes that could begin it names the first of the file.
func (s *State) Next() Step {
	if s.Run != continuo.RunRunning {
		return Step{}
	}
	for i := range s.Workflow.Nodes {
		node, progress := &s.Workflow.Nodes[i], s.nodes[s.Workflow.Nodes[i].ID]
		if progress.state != NodeRunning {
			continue
		}
		step := Step{Kind: StepAttend, Node: node, Visit: progress.visit, Attempt: progress.attempt, Retry: progress.retry}
		switch {
		case progress.open && progress.broken >= maxBroken:
			return Step{Kind: StepRecord}
		case progress.open:
			return step
		case progress.refused >= node.MaxAttempts:
			return Step{Kind: StepRecord}
		}
		step.Kind, step.Retry, step.Refused = StepBegin, false, progress.reason
		step.Attempt++
		return step
	}
	if len(s.asks()) > 0 {
		return Step{Kind: StepRecord}
	}
	for i := range s.Workflow.Nodes {
		if node := &s.Workflow.Nodes[i]; s.ready(node.ID) {
			return Step{Kind: StepBegin, Node: node, Visit: s.nodes[node.ID].visit + 1, Attempt: 1}
		}
	}
	return Step{Kind: StepRecord}
}

// maxBroken bounds how many attempts of a visit in a row may break off and be taken up again by themselves.
const maxBroken = 50

// Broken is how many attempts of a node's visit broke off in a row.
func (s *State) Broken(node string) int { return s.nodes[node].broken }

// After is the step behind an attempt that broke off: the attempt that goes on with it.
func (step Step) After() Step {
	return Step{Kind: StepBegin, Node: step.Node, Visit: step.Visit, Attempt: step.Attempt + 1, Resumes: true}
}

// asks returns the approval nodes that are ready.
func (s *State) asks() []*Node {
	var asks []*Node
	for i := range s.Workflow.Nodes {
		if node := &s.Workflow.Nodes[i]; node.Approval != nil && s.ready(node.ID) {
			asks = append(asks, node)
		}
	}
	return asks
}

// Waiting returns the nodes that wait for a person, in the order of the file.
func (s *State) Waiting() []*Node {
	var waiting []*Node
	for i := range s.Workflow.Nodes {
		if node := &s.Workflow.Nodes[i]; s.nodes[node.ID].state == NodeWaiting {
			waiting = append(waiting, node)
		}
	}
	return waiting
}

// Visit is the newest visit of a node, 0 before the first.
func (s *State) Visit(node string) int { return s.nodes[node].visit }

// Record makes the entries that follow of the log without a turn: questions to people, the end of the run, or
// that it waits. They are to be appended together; there are none where Next says something else.
func (s *State) Record() []continuo.Entry {
	var entries []continuo.Entry
	ahead := s.clone()
	for ahead.Next().Kind == StepRecord {
		made := ahead.record()
		entries = append(entries, made)
		if err := ahead.Apply(&made); err != nil {
			return []continuo.Entry{s.BreakOff(err.Error())}
		}
	}
	return entries
}

// record makes the next entry of Record.
func (s *State) record() continuo.Entry {
	for i := range s.Workflow.Nodes {
		node := &s.Workflow.Nodes[i]
		if progress := s.nodes[node.ID]; progress.state == NodeRunning && progress.open {
			return s.BreakOff(fmt.Sprintf("the step %s broke off %d times in a row", node.ID, progress.broken))
		} else if progress.state == NodeRunning {
			reason := fmt.Sprintf("the step %s gave no whole answer in %d attempts: %s", node.ID, progress.refused, progress.reason)
			return s.BreakOff(reason)
		}
	}
	if asks := s.asks(); len(asks) > 0 {
		node := asks[0]
		event := continuo.RunEvent{Kind: continuo.RunNodeAsked, Visit: s.nodes[node.ID].visit + 1}
		return s.event(node.ID, event, fmt.Sprintf("The step %s asks: %s", node.ID, node.Approval.Question))
	}
	if len(s.Waiting()) > 0 {
		return s.event("", continuo.RunEvent{Kind: continuo.RunHeld}, "The run waits for a person's decision.")
	}
	outputs, err := s.runOutputs()
	if err != nil {
		return s.BreakOff(err.Error())
	}
	return s.event("", continuo.RunEvent{Kind: continuo.RunEnded, Outputs: outputs}, "The run has finished: "+string(outputs))
}

// Conclude makes the entries that follow of a step's answer: that it has finished and what comes next, or why the
// answer is not enough. The state knows of the attempt. Said is everything that the step said in the visit, the
// answer last.
func (s *State) Conclude(step Step, said []string) []continuo.Entry {
	outputs, problem := step.Node.readAnswer(said)
	if problem == "" {
		problem = s.check(step, outputs)
	}
	var next []string
	fatal := ""
	if problem == "" {
		next, problem, fatal = s.follows(step.Node, outputs, step.Visit)
	}
	var first continuo.Entry
	if problem = problem + fatal; problem != "" {
		first = s.event(step.Node.ID, continuo.RunEvent{Kind: continuo.RunNodeRefused, Visit: step.Visit, Attempt: step.Attempt, Reason: problem},
			fmt.Sprintf("The answer of the step %s is refused: %s", step.Node.ID, problem))
	} else {
		first = s.finished(step.Node, step.Visit, outputs, next)
	}
	ahead := s.clone()
	if ahead.Apply(&first) != nil {
		return []continuo.Entry{first}
	}
	if fatal != "" {
		return []continuo.Entry{first, s.BreakOff(fatal)}
	}
	return append([]continuo.Entry{first}, ahead.Record()...)
}

// Decide makes the entries that follow of a person's decision in a node that waits.
func (s *State) Decide(node *Node, approved bool, comment string) []continuo.Entry {
	outputs := map[string]any{approvedOutput: approved, commentOutput: comment}
	visit := s.nodes[node.ID].visit
	next, problem, fatal := s.follows(node, outputs, visit)
	decided := s.finished(node, visit, outputs, next)
	decided.Role, decided.Hidden, decided.PartType = continuo.User, false, ""
	decided.Content = continuo.Text(decisionText(node, approved, comment))
	if problem += fatal; problem != "" { // what the person said stands in the log, and they are asked again
		decided.RunEvent = nil
		return []continuo.Entry{decided, s.BreakOff(problem)}
	}
	entries := []continuo.Entry{decided}
	if s.Run == continuo.RunWaiting {
		entries = append(entries, s.Resume())
	}
	ahead := s.clone()
	for i := range entries {
		if ahead.Apply(&entries[i]) != nil {
			return entries
		}
	}
	return append(entries, ahead.Record()...)
}

// Resume makes the entry that lets a run go on.
func (s *State) Resume() continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunResumed}, "The run goes on.")
}

// Halt makes the entry that stops a run until somebody resumes it.
func (s *State) Halt(reason string) continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunHalted, Reason: reason}, "The run was stopped: "+reason)
}

// BreakOff makes the entry of a run that cannot go on.
func (s *State) BreakOff(reason string) continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunBrokeOff, Reason: reason}, "The run broke off: "+reason)
}

// CallOff makes the entry that ends a run for good.
func (s *State) CallOff() continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunCalledOff, Reason: "a person cancelled it"}, "The run was cancelled.")
}

// check says what of the step's own conditions does not hold.
func (s *State) check(step Step, outputs map[string]any) string {
	if step.Node.Check == nil {
		return ""
	}
	switch holds, err := step.Node.Check.Holds(s.values(step.Node.ID, outputs, step.Visit)); {
	case err != nil:
		return fmt.Sprintf("its check cannot be computed: %s", err)
	case !holds:
		return fmt.Sprintf("its outputs do not pass the check: %s", step.Node.Check.Text)
	}
	return ""
}

// follows decides which edges are taken from a node. A problem is one that another answer may mend; a fatal one
// is that a loop has reached its limit.
func (s *State) follows(node *Node, outputs map[string]any, visit int) (next []string, problem, fatal string) {
	values := s.values(node.ID, outputs, visit)
	var otherwise *Edge
	var ahead []string
	for _, back := range []bool{true, false} {
		for i := range s.Workflow.Edges {
			edge := &s.Workflow.Edges[i]
			if edge.From != node.ID || edge.Max > 0 != back {
				continue
			}
			if edge.Otherwise {
				otherwise = edge
				continue
			}
			holds := true
			if edge.When != nil {
				var err error
				if holds, err = edge.When.Holds(values); err != nil {
					return nil, fmt.Sprintf("the condition of the edge %s -> %s cannot be computed: %s", edge.From, edge.To, err), ""
				}
			}
			if !holds {
				continue
			}
			if !back {
				ahead = append(ahead, edge.To)
				continue
			}
			if goes, fatal := s.mayGoBack(i, edge); goes || fatal != "" {
				return []string{edge.To}, "", fatal
			}
		}
	}
	if len(ahead) == 0 && otherwise != nil {
		if otherwise.Max > 0 {
			goes, fatal := s.mayGoBack(slices.IndexFunc(s.Workflow.Edges, func(e Edge) bool { return e.From == otherwise.From && e.To == otherwise.To }), otherwise)
			if !goes {
				return nil, "", fatal
			}
		}
		ahead = []string{otherwise.To}
	}
	return ahead, "", ""
}

// mayGoBack reports whether an edge back can be taken once more, or why the run cannot go on.
func (s *State) mayGoBack(place int, edge *Edge) (goes bool, fatal string) {
	switch {
	case s.taken[place] < edge.Max:
		return true, ""
	case edge.GoOn:
		return false, ""
	}
	return false, fmt.Sprintf("the loop %s -> %s has come to its limit of %d", edge.From, edge.To, edge.Max)
}

// finished makes the entry that says that a node has finished.
func (s *State) finished(node *Node, visit int, outputs map[string]any, next []string) continuo.Entry {
	raw := canonical(outputs)
	event := continuo.RunEvent{Kind: continuo.RunNodeFinished, Visit: visit, Outputs: raw, Next: next}
	return s.event(node.ID, event, fmt.Sprintf("The step %s has finished: %s", node.ID, raw))
}

// event makes an entry of the run, hidden from models.
func (s *State) event(node string, event continuo.RunEvent, text string) continuo.Entry {
	return continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: "run_event", Content: continuo.Text(text),
		Mode: continuo.ModeRun, RunID: s.RunID, WorkflowID: s.Workflow.ID, NodeID: node, RunEvent: &event,
	}
}

// runOutputs makes the outputs of a run that has nothing left to do.
func (s *State) runOutputs() ([]byte, error) {
	outputs := map[string]any{}
	values := s.values("", nil, 0)
	for _, binding := range s.Workflow.Outputs {
		value, err := binding.Value.Eval(values)
		if err != nil {
			return nil, fmt.Errorf("the run's output %s cannot be made: %w", binding.Name, err)
		}
		outputs[binding.Name] = value
	}
	if len(s.Workflow.Outputs) == 0 {
		for i := range s.Workflow.Nodes {
			id := s.Workflow.Nodes[i].ID
			leaves := slices.ContainsFunc(s.Workflow.Edges, func(e Edge) bool { return e.From == id && e.Max == 0 })
			if node := s.nodes[id]; node.state == NodeFinished && !leaves {
				outputs[id] = node.outputs
			}
		}
	}
	raw, err := canonicalOf(outputs)
	if err != nil {
		return nil, fmt.Errorf("the run's outputs cannot be written as JSON: %w", err)
	}
	return raw, nil
}

// clone copies a state.
func (s *State) clone() *State {
	c := *s
	c.nodes, c.taken = map[string]*progress{}, map[int]int{}
	for id, node := range s.nodes {
		copied := *node
		c.nodes[id] = &copied
	}
	for place, times := range s.taken {
		c.taken[place] = times
	}
	return &c
}
