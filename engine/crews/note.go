package crews

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/engine/summary"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// noteChars bounds notes, summaries and catch-ups of crews, in characters.
const noteChars = 2000

// summarizeFor appends the summary that a role's view needs before the role is asked: notes, a summary, or a catch-up
// on entries that do not fit. It returns false where the log has grown meanwhile: the caller reads it again. Limit
// bounds the time of the model. Where no summary can be made the role is asked without it.
func (cs *Crews) summarizeFor(ctx context.Context, c *crewCycle, role *crew.Role, chosen catalog.ResolvedTurn, limit time.Duration) (current bool, err error) {
	conversation, err := cs.log.Conversation(ctx, c.Run.ConversationID)
	if err != nil {
		return false, err
	}
	runner, err := cs.roleRunner(c.State, role, chosen, chosen.Upstream.Model, expected(c.State, role, chosen.Upstream.Model))
	if err != nil {
		return false, err
	}
	missing, most, err := cs.missingSummary(ctx, conversation, runner)
	if err != nil || missing == nil {
		return err == nil, err
	}
	entry, err := cs.makeSummary(ctx, conversation, c.State.Crew, role, *missing, most, limit)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		cs.options.Logger.WarnContext(ctx, "crew_notes_failed", "conversation_id", conversation.ID, "role", role.Name, "error", err.Error())
		return true, nil
	}
	return c.Append(ctx, c.State.Noted(entry))
}

// missingSummary returns the summary that a role's next request needs, and how long it may be; nil for none. The summary
// replaces the entries that a plan leaves out when it shows a summary of that length.
func (cs *Crews) missingSummary(ctx context.Context, conversation continuo.Conversation, runner *turn.Runner) (*window.RoleLack, summary.Size, error) {
	source := turn.Source{Context: ctx, Log: cs.log, Conversation: conversation}
	plan, _, err := runner.Plan(ctx, conversation, source, conversation.LastSeq)
	var overflow *continuo.OverflowError
	if errors.As(err, &overflow) { // the turn reports it
		return nil, summary.Size{}, nil
	}
	if err != nil || plan.Role.Lacks == nil {
		return nil, summary.Size{}, err
	}
	missing := *plan.Role.Lacks
	most := summary.SizeFor(plan.Limits, runner.Model.Info().Name)
	most.Chars = min(most.Chars, noteChars)
	probe := continuo.Entry{
		Seq: conversation.LastSeq + 1, Role: continuo.System, Hidden: true, Content: continuo.Text(most.Filler()),
		Summary: &continuo.Summary{From: missing.From, Through: conversation.LastSeq, By: metrics.Extractive},
	}
	view, ok := runner.View.(crewview.View)
	if !ok {
		return nil, summary.Size{}, fmt.Errorf("plan for a role: %w: its runner has another view", continuo.ErrInvalid)
	}
	probe.PartType, probe.Summary.Role = summaryPart(view.Role.Kind, view.Role.Name)
	if view.Role.Kind == crewview.Memory {
		view.Role.Notes = probe.Seq
		for range summary.MaxDecisions {
			probe.Summary.Decisions = append(probe.Summary.Decisions, strings.Repeat("x", summary.MaxDecisionChars))
		}
	}
	with := *runner
	with.View = view
	if plan, _, err = with.Plan(ctx, conversation, turn.Ahead{Source: source, More: []continuo.Entry{probe}}, probe.Seq); err != nil {
		return nil, summary.Size{}, err
	}
	if plan.Window.Summary == probe.Seq {
		missing.Through = max(missing.Through, min(plan.Window.Start-1, conversation.LastSeq))
		if missing.Messages > 0 {
			missing.Messages = plan.Role.Summarized
		}
	}
	return &missing, most, nil
}

// summaryPart is the PartType of the entry that replaces left out messages in a kind of view, and the role that it
// belongs to.
func summaryPart(kind crewview.Kind, role string) (part, reader string) {
	switch kind {
	case crewview.Memory:
		return continuo.PartNotes, role
	case crewview.Summary:
		return continuo.PartSummary, ""
	}
	return continuo.PartCatchUp, role
}

// emptyCatchUp is the text of a catch-up on messages without text.
const emptyCatchUp = "They have no text to summarize."

// makeSummary makes the summary, notes or catch-up that a role's view needs. Where the model fails or is late the
// built-in summarizer makes it.
func (cs *Crews) makeSummary(ctx context.Context, conversation continuo.Conversation, c *crew.Crew, role *crew.Role, missing window.RoleLack, most summary.Size, limit time.Duration) (continuo.Entry, error) {
	part, reader := summaryPart(role.View.Kind, role.Name)
	of := reader
	if part == continuo.PartCatchUp {
		of = "" // it is made like a summary
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	entry, err := cs.summaries.Make(within, conversation, missing.From, missing.Through, missing.Known, of, c.Summarizer, most.Chars)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		cs.options.Logger.WarnContext(ctx, "summary_fell_back", "conversation_id", conversation.ID, "role", role.Name, "model", c.Summarizer, "error", "the role's turn needs the remaining time")
		entry, err = cs.summaries.Make(ctx, conversation, missing.From, missing.Through, missing.Known, of, "", most.Chars)
	}
	if errors.Is(err, continuo.ErrNotFound) {
		entry = continuo.Entry{
			Role: continuo.System, Hidden: true, Content: continuo.Text(emptyCatchUp), Summary: &continuo.Summary{By: metrics.Extractive},
		}
		err = nil
	}
	if err != nil {
		return continuo.Entry{}, err
	}
	entry.PartType, entry.Summary.Role = part, reader
	entry.Summary.From, entry.Summary.Through, entry.Summary.Messages = missing.From, missing.Through, missing.Messages
	entry.Content = continuo.Text(most.Cut(entry.Content.String()))
	return entry, nil
}
