package workflow

import (
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Step is a step of a run that is due.
type Step struct {
	Kind StepKind
	// Node, Visit and Attempt identify the turn that is to begin, or that has begun.
	Node           *Node
	Visit, Attempt int
	// Refused says why the visit's last answer was refused; "" when there was none or it broke off.
	Refused string
	// Kept are the valid outputs of refused answers, Missing those that the next answer must contain. If none is
	// missing, the answer must repeat those that are to change. Both are in the order of the file.
	Kept, Missing []string
	// Cut says that the visit's last answer reached the model's token limit, and that this attempt continues it.
	Cut bool
	// Resumes says that an earlier attempt broke off, and that this one continues it.
	Resumes bool
	// Retry says that the run was resumed after the attempt had begun: if the attempt failed it is tried again.
	Retry bool
	// Until is when the next attempt begins, for StepWait.
	Until time.Time
	// Branch is the conversation of a node that runs in parallel with others; "" is the run's own.
	Branch string
	// InParallel says that a node begins while others run, so that it needs a branch: From itself if Continues is set,
	// else a fork of From. A From of "" is the run's own conversation.
	InParallel bool
	From       string
	Continues  bool
}

// StepKind is the kind of a Step.
type StepKind string

// The kinds of steps.
const (
	// StepNone: nothing is due, because the run is over, failed, was stopped or waits for a person.
	StepNone StepKind = ""
	// StepBegin: the attempt is to begin.
	StepBegin StepKind = "begin"
	// StepAttend: the attempt has begun, and no event records its result. Its turn has the result: it is running and
	// must be awaited, or it broke off.
	StepAttend StepKind = "attend"
	// StepWait: the attempt broke off for a transient reason, and the next one begins at Until.
	StepWait StepKind = "wait"
	// StepRecord: the entries that follow need no turn; see [State.Record].
	StepRecord StepKind = "record"
)

// Next is the first step that is due; see [State.Steps].
func (s *State) Next() Step {
	if steps := s.Steps(); len(steps) > 0 {
		return steps[0]
	}
	return Step{}
}

// Of is the step of a node that is due; the zero Step for none.
func (s *State) Of(node string) Step {
	for _, step := range s.Steps() {
		if step.Node != nil && step.Node.ID == node {
			return step
		}
	}
	return Step{}
}

// Steps returns the steps that are due, which may run in parallel: a single StepRecord, or a step for each node that
// is running or may begin, in the order of the file. There is none in a run that is not running.
func (s *State) Steps() []Step {
	if s.Run != continuo.RunRunning {
		return nil
	}
	steps := s.inProgress()
	if len(steps) == 0 && s.hasFailed() || slices.ContainsFunc(steps, func(step Step) bool { return step.Kind == StepRecord }) {
		return []Step{{Kind: StepRecord}}
	}
	if !s.hasFailed() {
		if len(s.asks()) > 0 {
			return []Step{{Kind: StepRecord}}
		}
		steps = append(steps, s.startSteps(len(steps) > 0 || len(s.Waiting()) > 0)...)
	}
	if len(steps) == 0 {
		return []Step{{Kind: StepRecord}}
	}
	return steps
}

// inProgress are the steps of the nodes that have begun and not ended.
func (s *State) inProgress() []Step {
	var steps []Step
	for i := range s.Workflow.Nodes {
		node, progress := &s.Workflow.Nodes[i], s.nodes[s.Workflow.Nodes[i].ID]
		if progress.state != NodeRunning {
			continue
		}
		step := Step{Kind: StepAttend, Node: node, Visit: progress.visit, Attempt: progress.attempt, Retry: progress.retry, Branch: progress.branch}
		switch {
		case progress.open && !progress.delayed.IsZero():
			step.Kind, step.Until = StepWait, progress.delayed
		case progress.open:
		case progress.refused >= node.MaxAttempts, progress.cuts >= maxCuts:
			step.Kind = StepRecord
		default:
			step.Kind, step.Retry = StepBegin, false
			step.Attempt++
			step = s.withRefusal(step, progress.cut)
		}
		steps = append(steps, step)
	}
	return steps
}

// startSteps are the steps of the nodes that may begin. Beside is set on those that run in parallel, and on those
// that continue a branch: what a step is shown must not depend on the speed of other steps.
func (s *State) startSteps(others bool) []Step {
	var steps []Step
	for i := range s.Workflow.Nodes {
		if node := &s.Workflow.Nodes[i]; s.ready(node.ID) {
			steps = append(steps, Step{Kind: StepBegin, Node: node, Visit: s.nodes[node.ID].visit + 1, Attempt: 1})
		}
	}
	for i := range steps {
		step := &steps[i]
		step.From, step.Continues = s.continuedBranch(step.Node.ID)
		step.InParallel = others || len(steps) > 1 || step.From != ""
	}
	return steps
}

// continuedBranch is the conversation from which a node's branch continues: the branch of the one node that leads to
// it, "" for the run's own conversation. Continues is false, so that the branch is forked, where another node uses that
// branch.
func (s *State) continuedBranch(id string) (from string, continues bool) {
	before := s.leading(id)
	if len(before) != 1 || s.nodes[before[0]].branch == "" {
		return "", false
	}
	from = s.nodes[before[0]].branch
	for other, node := range s.nodes {
		if node.branch == from && node.state == NodeRunning {
			return from, false
		}
		if leading := s.leading(other); other != id && s.ready(other) && len(leading) == 1 && s.nodes[leading[0]].branch == from {
			return from, false
		}
	}
	return from, true
}

// leading are the nodes with a taken edge to a node; for a node that a loop repeats, the node at the loop's end.
func (s *State) leading(id string) []string {
	if s.nodes[id].due {
		return []string{s.nodes[id].sentBy}
	}
	var leading []string
	for i := range s.Workflow.Edges {
		edge := &s.Workflow.Edges[i]
		if edge.To == id && edge.Max == 0 && slices.Contains(s.nodes[edge.From].next, id) {
			leading = append(leading, edge.From)
		}
	}
	return leading
}

// Branches are the conversations in which parallel steps may have a turn.
func (s *State) Branches() []string {
	var branches []string
	for i := range s.Workflow.Nodes {
		if node := s.nodes[s.Workflow.Nodes[i].ID]; node.branch != "" && (node.state == NodeRunning || node.state == NodeFailed) {
			branches = append(branches, node.branch)
		}
	}
	return branches
}

// WithHistory returns a begun step with the fields that it had when its attempt began: whether it continues one that
// broke off, or why the previous answer was refused.
func (s *State) WithHistory(step Step) Step {
	if s.nodes[step.Node.ID].failedAttempts > 0 {
		step.Resumes = true
		return step
	}
	return s.withRefusal(step, s.nodes[step.Node.ID].afterCut)
}

// withRefusal adds to a step why the previous answer was refused, or that it was cut.
func (s *State) withRefusal(step Step, cut bool) Step {
	progress := s.nodes[step.Node.ID]
	switch {
	case cut:
		step.Resumes, step.Cut = true, true
	case progress.refused > 0:
		step.Refused = progress.reason
		step.Kept, step.Missing = step.Node.split(progress.kept)
	}
	return step
}

// After is the step after an attempt that broke off: the attempt that continues it.
func (step Step) After() Step {
	return Step{Kind: StepBegin, Node: step.Node, Visit: step.Visit, Attempt: step.Attempt + 1, Resumes: true, Branch: step.Branch}
}

// maxCuts bounds how often an answer of a visit that reached the token limit is continued.
const maxCuts = 16

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

// follows decides which edges are taken from a node. A problem is one that another answer may fix; a fatal one is
// that a loop has reached its limit.
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
			if repeats, fatal := s.mayRepeat(i, edge); repeats || fatal != "" {
				return []string{edge.To}, "", fatal
			}
		}
	}
	if len(ahead) == 0 && otherwise != nil {
		if otherwise.Max > 0 {
			repeats, fatal := s.mayRepeat(slices.IndexFunc(s.Workflow.Edges, func(e Edge) bool { return e.From == otherwise.From && e.To == otherwise.To }), otherwise)
			if !repeats {
				return nil, "", fatal
			}
		}
		ahead = []string{otherwise.To}
	}
	return ahead, "", ""
}

// mayRepeat reports whether an edge back can be taken once more; fatal is set where the run cannot continue.
func (s *State) mayRepeat(index int, edge *Edge) (repeats bool, fatal string) {
	switch {
	case s.taken[index] < edge.Max:
		return true, ""
	case edge.Continue:
		return false, ""
	}
	return false, fmt.Sprintf("the loop %s -> %s has come to its limit of %d", edge.From, edge.To, edge.Max)
}

// Clone copies a state.
func (s *State) Clone() *State {
	c := *s
	c.nodes, c.taken = map[string]*progress{}, map[int]int{}
	for id, node := range s.nodes {
		copied := *node
		c.nodes[id] = &copied
	}
	for index, times := range s.taken {
		c.taken[index] = times
	}
	return &c
}
