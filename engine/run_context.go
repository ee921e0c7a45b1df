package engine

import (
	"cmp"
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// chooseStepAt resolves what the next step of a run uses, by the state of the run at an entry. It equals what the
// step's turn uses, except for the cue, which is appended when the step begins.
func (rs *Runs) chooseStepAt(ctx context.Context, conversation continuo.Conversation, request ContextRequest, at int64) (resolvedTurn, error) {
	r, err := rs.runAt(ctx, conversation, request.RunID, at)
	if err != nil {
		return resolvedTurn{}, err
	}
	if r.State.Run == continuo.RunFailed || r.State.Run == continuo.RunStopped {
		resumed := r.State.Resume()
		if err := r.State.Apply(&resumed); err != nil {
			return resolvedTurn{}, err
		}
	}
	step := r.State.Next()
	if step.Node == nil {
		return resolvedTurn{}, fmt.Errorf("run %s: %w: it is %s there, and no step of it is to be carried out", request.RunID, continuo.ErrInvalid, r.State.Run)
	}
	found, err := rs.catalog.resolve(turnChoice{
		mode: continuo.ModeRun, agent: step.Node.Agent, model: step.Node.Model, viewName: cmp.Or(request.View, step.Node.View), usualView: string(continuo.ModeRun),
	})
	if err != nil {
		return resolvedTurn{}, fmt.Errorf("the step %s: %w", step.Node.ID, err)
	}
	texts, err := r.State.Texts(step)
	found.system, found.policy = append(found.system, texts...), found.policy.Merge(step.Node.Tools)
	return found, err
}

// runAt replays a run of a conversation up to an entry.
func (rs *Runs) runAt(ctx context.Context, conversation continuo.Conversation, runID string, at int64) (*workflowRun, error) {
	run, err := rs.log.Runs().Run(ctx, conversation.ProjectID, runID)
	if _, cycle := continuo.CrewOf(run.WorkflowID); err == nil && (cycle || run.ConversationID != conversation.ID) {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("run %s of the conversation %s: %w", shorten(runID, 60), conversation.ID, err)
	}
	if at < run.FirstSeq {
		return nil, fmt.Errorf("at %d: %w: the run %s began with entry %d", at, continuo.ErrBadRange, run.ID, run.FirstSeq)
	}
	r := newWorkflowRun(rs, run)
	return r, r.Read(ctx, at, nil)
}
