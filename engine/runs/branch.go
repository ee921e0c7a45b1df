package runs

import (
	"context"
	"errors"
	"fmt"
	"maps"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/workflow"
)

// A step that runs in parallel with others has a branch: a fork of the run's conversation with the step's turns. All
// events of the run are in the run's own conversation, so that they have one order: node_began names the branch
// before the attempt's turn begins there; when the turn has ended, its result, with the answer, is appended in one
// commit.

// Announce creates the branches of the steps that begin in parallel, and returns the entries that record their
// beginning.
func (r *workflowRun) Announce(ctx context.Context, steps []workflow.Step) ([]continuo.Entry, error) {
	var events []continuo.Entry
	for _, step := range steps {
		if !step.InParallel {
			continue
		}
		if _, err := r.runs.chooseFor(step.Node); err != nil {
			return nil, err
		}
		branch, err := r.branchOf(ctx, step)
		if err != nil {
			return nil, err
		}
		event, _ := r.State.BeginInBranch(step, branch)
		events = append(events, event)
	}
	return events, nil
}

// branchOf finds or creates the branch of a node's visit.
func (r *workflowRun) branchOf(ctx context.Context, step workflow.Step) (string, error) {
	if step.Continues {
		return step.From, nil
	}
	log := r.runs.log
	key := fmt.Sprintf("branch/%s/%s/%d", r.Run.ID, step.Node.ID, step.Visit)
	from, at := r.Run.ConversationID, r.Next()-1
	if step.From != "" {
		from, at = step.From, 0
	}
	made, err := log.Fork(ctx, from, at, continuo.Conversation{Key: key, Kind: continuo.KindBranch})
	if errors.Is(err, continuo.ErrExists) { // by another process, or before a kill
		made, err = log.Find(ctx, continuo.Scope{ProjectID: r.Run.ProjectID}, key)
	}
	if err != nil {
		return "", fmt.Errorf("a branch for the step %s: %w", step.Node.ID, err)
	}
	return made.ID, nil
}

// concludeBranch makes the entries that follow an answer in a branch. An accepted answer is copied into the run's
// conversation before them; a refused one remains in the branch, where the step is asked again.
func (r *workflowRun) concludeBranch(step workflow.Step) []continuo.Entry {
	answers := append(append([]string{}, r.pieces[step.Node.ID]...), r.answers[step.Node.ID])
	follows := r.State.Conclude(step, answers, r.cuts[step.Node.ID])
	if follows[0].RunEvent.Kind != continuo.RunNodeFinished {
		return follows
	}
	return append(r.State.Joined(step, answers), follows...)
}

// readBranch reads a step's answers in its branch.
func (r *workflowRun) readBranch(ctx context.Context, step workflow.Step) error {
	branch, err := r.runs.log.Conversation(ctx, step.Branch)
	if err != nil {
		return err
	}
	node := step.Node.ID
	r.pieces[node], r.answers[node], r.cuts[node] = nil, "", false
	delete(r.failures, node)
	for entry, err := range r.runs.log.Read(ctx, branch, continuo.Range{From: branch.ForkSeq + 1}) {
		switch {
		case err != nil:
			return err
		case entry.RunID != r.Run.ID || entry.NodeID != node:
		case entry.PartType == continuo.PartStep:
			r.pieces[node], r.cuts[node] = nil, false
		case entry.PartType == continuo.PartResume && r.cuts[node]: // it continues a truncated answer
			r.pieces[node], r.cuts[node] = append(r.pieces[node], r.answers[node]), false
		case entry.Role == continuo.Assistant:
			r.observeAnswer(&entry)
		}
	}
	return nil
}

// Clone copies the machine for another goroutine.
func (r *workflowRun) Clone() durable.Machine[workflow.Step] {
	c := *r
	c.pieces, c.answers, c.cuts, c.failures = maps.Clone(r.pieces), maps.Clone(r.answers), maps.Clone(r.cuts), maps.Clone(r.failures)
	c.History = r.History.Clone(r.State.Clone(), &c)
	return &c
}
