package workflow

import (
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// Record makes the entries that follow without a turn: failures of steps, questions to people, the end of the run, or
// that it waits. They must be appended together; there are none unless Next is a StepRecord.
func (s *State) Record() []continuo.Entry {
	var entries []continuo.Entry
	ahead := s.Clone()
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
		progress := s.nodes[node.ID]
		if progress.state != NodeRunning || progress.open {
			continue
		}
		if progress.cuts >= maxCuts {
			return s.Fail(node, fmt.Sprintf("the step %s gave no whole answer in %d pieces: %s", node.ID, progress.cuts, progress.reason))
		}
		if progress.refused >= node.MaxAttempts {
			return s.Fail(node, fmt.Sprintf("the step %s gave no whole answer in %d attempts: %s", node.ID, progress.refused, progress.reason))
		}
	}
	if failed := s.failed(); failed != nil {
		return s.BreakOff(failed.reason)
	}
	if asks := s.asks(); len(asks) > 0 {
		node := asks[0]
		event := continuo.RunEvent{Kind: continuo.RunNodeAsked, Visit: s.nodes[node.ID].visit + 1}
		return s.event(node.ID, event, fmt.Sprintf("The step %s asks: %s", node.ID, node.Approval.Question))
	}
	if len(s.Waiting()) > 0 {
		return s.event("", continuo.RunEvent{Kind: continuo.RunEventWaiting}, "The run waits for a person's decision.")
	}
	outputs, err := s.runOutputs()
	if err != nil {
		return s.BreakOff(err.Error())
	}
	return s.event("", continuo.RunEvent{Kind: continuo.RunEventFinished, Outputs: outputs}, "The run has finished: "+string(outputs))
}

// Conclude makes the entries that follow a step's answer: that the step has finished and what comes next, or why the
// answer is refused. The beginning of the attempt must have been applied to the state. Said is all text of the step
// in the visit, the answer last; cut says that the answer ended at the model's token limit.
func (s *State) Conclude(step Step, texts []string, cut bool) []continuo.Entry {
	read := step.Node.readAnswer(texts, s.nodes[step.Node.ID].kept)
	if cut && (read.problem != "" || len(step.Node.Outputs) == 0) {
		return s.concluded(s.cut(step))
	}
	problem := read.problem
	if problem == "" {
		problem = s.check(step, read.outputs)
	}
	var next []string
	fatal := ""
	if problem == "" {
		next, problem, fatal = s.follows(step.Node, read.outputs, step.Visit)
	}
	var first continuo.Entry
	if problem = problem + fatal; problem != "" {
		first = s.refused(step, read, problem)
	} else {
		first = s.finished(step.Node, step.Visit, read.outputs, next)
		first.RunEvent.Repairs = read.repairs
	}
	ahead := s.Clone()
	if ahead.Apply(&first) != nil {
		return []continuo.Entry{first}
	}
	if fatal != "" {
		failed := s.Fail(step.Node, fatal)
		return append([]continuo.Entry{first, failed}, ahead.after(failed)...)
	}
	return append([]continuo.Entry{first}, ahead.Record()...)
}

// concluded returns an event of an answer with the entries that follow it.
func (s *State) concluded(first continuo.Entry) []continuo.Entry {
	ahead := s.Clone()
	if ahead.Apply(&first) != nil {
		return []continuo.Entry{first}
	}
	return append([]continuo.Entry{first}, ahead.Record()...)
}

// refused makes the entry of a refused answer. Its valid outputs are kept.
func (s *State) refused(step Step, read answer, problem string) continuo.Entry {
	event := continuo.RunEvent{Kind: continuo.RunNodeRefused, Visit: step.Visit, Attempt: step.Attempt, Reason: problem, Repairs: read.repairs}
	if len(step.Node.Outputs) > 0 && len(read.outputs) > 0 {
		event.Outputs = canonical(read.outputs)
	}
	return s.event(step.Node.ID, event, fmt.Sprintf("The answer of the step %s is refused: %s", step.Node.ID, problem))
}

// cut makes the entry of an answer that reached the model's token limit.
func (s *State) cut(step Step) continuo.Entry {
	const reason = "it was cut at the model's limit of tokens for one answer (models.NAME.max_output_tokens, or the provider's own)"
	event := continuo.RunEvent{Kind: continuo.RunNodeRefused, Visit: step.Visit, Attempt: step.Attempt, Reason: reason, Cut: true}
	return s.event(step.Node.ID, event, fmt.Sprintf("The answer of the step %s continues in another: %s", step.Node.ID, reason))
}

// Decide makes the entries that follow a person's decision in a node that waits.
func (s *State) Decide(node *Node, approved bool, comment string) []continuo.Entry {
	outputs := map[string]any{approvedOutput: approved, commentOutput: comment}
	visit := s.nodes[node.ID].visit
	next, problem, fatal := s.follows(node, outputs, visit)
	decided := s.finished(node, visit, outputs, next)
	decided.Role, decided.Hidden, decided.PartType = continuo.User, false, ""
	decided.Content = continuo.Text(decisionText(node, approved, comment))
	if problem += fatal; problem != "" { // the decision is in the log, and the person is asked again
		decided.RunEvent = nil
		return []continuo.Entry{decided, s.BreakOff(problem)}
	}
	entries := []continuo.Entry{decided}
	if s.Run == continuo.RunWaiting {
		entries = append(entries, s.Resume())
	}
	ahead := s.Clone()
	for i := range entries {
		if ahead.Apply(&entries[i]) != nil {
			return entries
		}
	}
	return append(entries, ahead.Record()...)
}

// Resume makes the entry that resumes a run.
func (s *State) Resume() continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunResumed}, "The run was resumed.")
}

// Halt makes the entry that stops a run until a person resumes it.
func (s *State) Halt(reason string) continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunEventStopped, Reason: reason}, "The run was stopped: "+reason)
}

// BreakOff makes the entry of a run that cannot continue.
func (s *State) BreakOff(reason string) continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunEventFailed, Reason: reason}, "The run failed: "+reason)
}

// Cancel makes the entry that ends a run permanently.
func (s *State) Cancel() continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunEventCancelled, Reason: "a person cancelled it"}, "The run was cancelled.")
}

// check says why the step's own check does not hold; "" if it does.
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

// finished makes the entry that records that a node has finished.
func (s *State) finished(node *Node, visit int, outputs map[string]any, next []string) continuo.Entry {
	raw := canonical(outputs)
	event := continuo.RunEvent{Kind: continuo.RunNodeFinished, Visit: visit, Outputs: raw, Next: next}
	entry := s.event(node.ID, event, fmt.Sprintf("The step %s has finished: %s", node.ID, raw))
	entry.OutputRef = continuo.StepRef(s.RunID, node.ID)
	return entry
}

// event makes an entry of the run, hidden from models.
func (s *State) event(node string, event continuo.RunEvent, text string) continuo.Entry {
	return continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: "run_event", Content: continuo.Text(text),
		Mode: continuo.ModeRun, RunID: s.RunID, WorkflowID: s.Workflow.ID, NodeID: node, RunEvent: &event,
	}
}

// runOutputs computes the outputs of a run without due steps.
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
