package start

import (
	"context"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// checkWhole refuses, with a *continuo.TruncatedError, a request that must show its conversation whole and whose view
// would not.
func (ts *Turns) checkWhole(ctx context.Context, request ClientRequest, conversation continuo.Conversation, runner *turn.Runner) error {
	if !request.Whole || request.Forward != nil {
		return nil
	}
	more := slices.Clone(request.Entries)
	for i := range more {
		more[i].Seq = conversation.LastSeq + 1 + int64(i)
	}
	at := conversation.LastSeq + int64(len(more))
	source := turn.Ahead{Source: turn.Source{Context: ctx, Log: ts.log, Conversation: conversation}, More: more}
	plan, _, err := runner.Plan(ctx, conversation, source, at)
	if err != nil || !plan.Partial() {
		return err
	}
	info, totals := runner.Model.Info(), &plan.Totals
	return &continuo.TruncatedError{
		View: plan.View, Model: info.Name, ModelWindow: info.ContextWindow, Entries: at, Left: totals.Dropped + totals.Summarized,
		Shortened: totals.Previewed + totals.Truncated, Shown: continuo.Size{Messages: totals.Messages, Chars: totals.Chars, Tokens: totals.Tokens}.Add(totals.PromptSize),
	}
}

// withThreshold returns a view whose window moves where the messages have more tokens than a client's threshold; 0 for none.
// The model's own window moves it earlier.
func withThreshold(view window.View, threshold, modelWindow int) window.View {
	if threshold == 0 || modelWindow > 0 && threshold >= modelWindow-view.Reserve {
		return view
	}
	if view.FollowWindow || view.Limits.Tokens == 0 || threshold < view.Limits.Tokens {
		view.Limits.Tokens, view.FollowWindow = threshold, false
	}
	return view
}
