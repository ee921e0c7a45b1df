package runs

import (
	"cmp"
	"context"
	"fmt"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/engine/internal/brief"

	continuo "github.com/continuo-log/continuo"
)

// ChooseStepAt resolves what the next step of a run uses, by the state of the run at an entry. It equals what the
// step's turn uses, except for the cue, which is appended when the step begins.
func (rs *Runs) ChooseStepAt(ctx context.Context, conversation continuo.Conversation, request contexts.Request, at int64) (catalog.ResolvedTurn, error) {
	r, err := rs.runAt(ctx, conversation, request.RunID, at)
	if err != nil {
		return catalog.ResolvedTurn{}, err
	}
	if r.State.Run == continuo.RunFailed || r.State.Run == continuo.RunStopped {
		resumed := r.State.Resume()
		if err := r.State.Apply(&resumed); err != nil {
			return catalog.ResolvedTurn{}, err
		}
	}
	step := r.State.Next()
	if step.Node == nil {
		return catalog.ResolvedTurn{}, fmt.Errorf("run %s: %w: it is %s there, and no step of it is to be carried out", request.RunID, continuo.ErrInvalid, r.State.Run)
	}
	found, err := rs.catalog.Resolve(catalog.TurnSpec{
		Mode: continuo.ModeRun, Agent: step.Node.Agent, Model: step.Node.Model, ViewName: cmp.Or(request.View, step.Node.View), UsualView: string(continuo.ModeRun),
	})
	if err != nil {
		return catalog.ResolvedTurn{}, fmt.Errorf("the step %s: %w", step.Node.ID, err)
	}
	texts, err := r.State.Texts(step)
	found.System, found.Policy = append(found.System, texts...), found.Policy.Merge(step.Node.Tools)
	return found, err
}

// runAt replays a run of a conversation up to an entry.
func (rs *Runs) runAt(ctx context.Context, conversation continuo.Conversation, runID string, at int64) (*workflowRun, error) {
	run, err := rs.log.Runs().Run(ctx, conversation.ProjectID, runID)
	if _, cycle := continuo.CrewOf(run.WorkflowID); err == nil && (cycle || run.ConversationID != conversation.ID) {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("run %s of the conversation %s: %w", brief.Shorten(runID, 60), conversation.ID, err)
	}
	if at < run.FirstSeq {
		return nil, fmt.Errorf("at %d: %w: the run %s began with entry %d", at, continuo.ErrBadRange, run.ID, run.FirstSeq)
	}
	r := newRun(rs, run)
	return r, r.Read(ctx, at, nil)
}
