package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// A step that is carried out beside others has a branch: a fork of the run's conversation, in which its turns are. All
// events of the run stand in the run's own conversation, so that they have one order: node_began names the branch before
// the attempt's turn begins there, and what came of it, with the answer, follows in one commit when the turn has ended.

// branchOff makes the branches of the steps that begin beside others, and records that they have begun, all in one
// commit, so that none of them sees another. It reports whether there were some.
func (e *Engine) branchOff(ctx context.Context, t *tracker, steps []workflow.Step) (bool, error) {
	var events []continuo.Entry
	for _, step := range steps {
		if !step.Beside {
			continue
		}
		if _, err := e.chooseFor(step.Node); err != nil {
			return true, err
		}
		branch, err := e.branchOf(ctx, t, step)
		if err != nil {
			return true, err
		}
		event, _ := t.state.Beside(step, branch)
		events = append(events, event)
	}
	if len(events) == 0 {
		return false, nil
	}
	return true, e.recordRun(ctx, t, events)
}

// branchOf finds or makes the branch of a node's visit.
func (e *Engine) branchOf(ctx context.Context, t *tracker, step workflow.Step) (string, error) {
	if step.Continues {
		return step.From, nil
	}
	key := fmt.Sprintf("branch/%s/%s/%d", t.run.ID, step.Node.ID, step.Visit)
	from, at := t.run.ConversationID, t.next-1
	if step.From != "" {
		from, at = step.From, 0
	}
	made, err := e.Log.Fork(ctx, from, at, continuo.Conversation{Key: key, Kind: continuo.KindBranch})
	if errors.Is(err, continuo.ErrExists) { // somebody was here before
		made, err = e.Log.Find(ctx, continuo.Scope{ProjectID: t.run.ProjectID}, key)
	}
	if err != nil {
		return "", fmt.Errorf("a branch for the step %s: %w", step.Node.ID, err)
	}
	return made.ID, nil
}

// stepBeside records that another attempt of a step begins in its branch, and carries it out.
func (e *Engine) stepBeside(ctx context.Context, t *tracker, step workflow.Step) error {
	event, _ := t.state.Beside(step, step.Branch)
	if err := e.recordRun(ctx, t, []continuo.Entry{event}); err != nil {
		return err
	}
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	step.Kind = workflow.StepAttend
	return e.attendBeside(ctx, t, step)
}

// attendBeside begins the turn of an attempt that is recorded, or waits for it, and records what came of it.
func (e *Engine) attendBeside(ctx context.Context, t *tracker, step workflow.Step) error {
	id := branchTurnID(t.run, step)
	found, err := e.Log.Turns().Turn(ctx, step.Branch, id)
	if err == nil && found.State == continuo.TurnRunning {
		found, err = e.keeper.RecoverIfAbandoned(ctx, found)
	}
	switch {
	case errors.Is(err, continuo.ErrNotFound), err == nil && found.State == continuo.TurnVoid:
		return e.carryOutBeside(ctx, t, step, id)
	case err != nil:
		return err
	case found.State == continuo.TurnRunning:
		return e.awaitTurn(ctx, step.Branch, id)
	}
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	now := t.state.Of(step.Node.ID)
	if !sameAttempt(now, step) {
		return nil
	}
	step = now
	if err := t.hearBranch(ctx, step); err != nil {
		return err
	}
	switch {
	case found.State == continuo.TurnFinished:
		return e.recordRun(ctx, t, t.concludeBeside(step))
	case step.Retry:
		return e.stepBeside(ctx, t, step.After())
	case found.Reason == continuo.ReasonCancelled:
		return e.recordRun(ctx, t, []continuo.Entry{t.state.Halt(fmt.Sprintf("the step %s was stopped", step.Node.ID))})
	}
	return e.goOnAfter(ctx, t, step, t.failureOf(step, found.Reason))
}

// concludeBeside makes what follows of an answer in a branch. The answer itself goes before it into the run's
// conversation, once it is taken; one that is refused stays in the branch, where it is asked for again.
func (t *tracker) concludeBeside(step workflow.Step) []continuo.Entry {
	said := append(append([]string{}, t.pieces[step.Node.ID]...), t.answers[step.Node.ID])
	follows := t.state.Conclude(step, said, t.cuts[step.Node.ID])
	if follows[0].RunEvent.Kind != continuo.RunNodeFinished {
		return follows
	}
	return append(t.state.Joined(step, said), follows...)
}

// hearBranch reads what a step said in its branch.
func (t *tracker) hearBranch(ctx context.Context, step workflow.Step) error {
	branch, err := t.engine.Log.Conversation(ctx, step.Branch)
	if err != nil {
		return err
	}
	node := step.Node.ID
	t.pieces[node], t.answers[node], t.cuts[node] = nil, "", false
	delete(t.failures, node)
	for entry, err := range t.engine.Log.Read(ctx, branch, continuo.Range{From: branch.ForkSeq + 1}) {
		switch {
		case err != nil:
			return err
		case entry.RunID != t.run.ID || entry.NodeID != node:
		case entry.PartType == continuo.PartStep:
			t.pieces[node], t.cuts[node] = nil, false
		case entry.PartType == continuo.PartResume && t.cuts[node]: // it goes on with an answer that was cut
			t.pieces[node], t.cuts[node] = append(t.pieces[node], t.answers[node]), false
		case entry.Role == continuo.Assistant:
			t.hear(&entry)
		}
	}
	return nil
}

// carryOutBeside carries out an attempt in its branch.
func (e *Engine) carryOutBeside(ctx context.Context, t *tracker, step workflow.Step, id string) error {
	chosen, err := e.chooseFor(step.Node)
	if err != nil {
		return err
	}
	wanted := stepTurn(t.run, step, chosen)
	wanted.ID, wanted.ConversationID = id, step.Branch
	begin := func(ctx context.Context, _ continuo.Conversation) (*turn.Runner, turn.Input, error) {
		if err := t.catchUp(ctx); err != nil {
			return nil, turn.Input{}, err
		}
		if !sameAttempt(t.state.Of(step.Node.ID), step) {
			return nil, turn.Input{}, errMoved
		}
		asks := t.state.Asked(step)
		texts, err := t.state.Texts(asks)
		if err != nil {
			return nil, turn.Input{}, err
		}
		chosen.system = append(chosen.system, texts...)
		chosen.policy = chosen.policy.Merge(step.Node.Tools)
		_, cue := t.state.Beside(asks, step.Branch)
		return e.stepRunner(chosen), turn.Input{Mode: chosen.mode, AgentID: chosen.agent, Cue: &cue, AskAgain: asks.Resumes}, nil
	}
	return e.carryOutTurn(ctx, t.run, wanted, begin)
}

// branchTurnID is the id of an attempt's turn in its branch.
func branchTurnID(run continuo.Run, step workflow.Step) string {
	main := run
	main.ConversationID = step.Branch
	return stepTurnID(main, step)
}

// clone is a tracker that another goroutine may use.
func (t *tracker) clone() *tracker {
	c := *t
	c.state, c.pieces, c.answers, c.failures = t.state.Clone(), maps.Clone(t.pieces), maps.Clone(t.answers), maps.Clone(t.failures)
	c.cuts = maps.Clone(t.cuts)
	return &c
}
