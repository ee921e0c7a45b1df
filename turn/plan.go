package turn

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Plan returns the plan of a request to the runner's model for a source at seq at, and the request's envelope with the
// tools that it offers. The source may be a log with further entries that are not appended yet. The plan's messages
// have placeholders for attachments; see [Attach].
func (r *Runner) Plan(ctx context.Context, conversation continuo.Conversation, source window.Source, at int64) (*window.Plan, continuo.Envelope, error) {
	if err := r.check(); err != nil {
		return nil, continuo.Envelope{}, err
	}
	return r.toolOffer(ctx).plan(ctx, conversation, source, at, r.View, r.envelope(r.own(), r.Speaker.Dialect()), r.Model.Info())
}

// Request builds the request that Plan plans, and the record of it that a round has, without an envelope. The source is the
// runner's log; entries of it may be replaced.
func (r *Runner) Request(ctx context.Context, conversation continuo.Conversation, source window.Source, at int64) (*Request, *continuo.Round, error) {
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	dialect := r.Speaker.Dialect()
	built, err := r.requestTo(ctx, r.own(), dialect, r.toolOffer(ctx), conversation, source, at, r.envelope(r.own(), dialect))
	if err != nil {
		return nil, nil, err
	}
	return built, recordOf(built, r.Model.Info(), ""), nil
}

// Size estimates the size of a request to the runner's model for a conversation: the system messages, the tools, and what
// the view shows. Of a conversation without an id it is that of the system messages and the tools.
func (r *Runner) Size(ctx context.Context, conversation continuo.Conversation) (continuo.Size, error) {
	if conversation.ID == "" || conversation.LastSeq == 0 {
		fewest := r.toolOffer(ctx).tools(conversation, false)
		in, err := windowInput(0, with(r.envelope(r.own(), r.Speaker.Dialect()), fewest, r.ClientTools), r.Model.Info())
		return in.Prompt, err
	}
	plan, _, err := r.Plan(ctx, conversation, Source{Context: ctx, Log: r.Log, Conversation: conversation}, conversation.LastSeq)
	if err != nil {
		return continuo.Size{}, err
	}
	return plan.Totals.PromptSize.Add(continuo.Size{Messages: plan.Totals.Messages, Chars: plan.Totals.Chars, Tokens: plan.Totals.Tokens}), nil
}
