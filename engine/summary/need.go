package summary

import (
	"context"
	"errors"

	"github.com/continuo-log/continuo/engine/metrics"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// missingSummary is a summary that the next move will need and the log does not have.
type missingSummary struct {
	conversation continuo.Conversation
	through      int64 // the last seq that it is to cover
	known        int64 // the seq of the summary that would be shown without it; 0 for none
	most         Size
}

// findMissing returns the summary that the next move of a conversation's window needs; nil where the move is not near, where
// the log has a summary for it, and where calls are open, since the turn that closes them looks again.
func (s *Summaries) findMissing(ctx context.Context, conversation continuo.Conversation, runner *turn.Runner, before int64) (*missingSummary, error) {
	now, err := s.plan(ctx, conversation, runner)
	if err != nil || now == nil {
		return nil, err
	}
	grown, err := s.grown(ctx, conversation, before)
	if err != nil {
		return nil, err
	}
	far := headroom(now.Limits, grown)
	tokenizer := tokenizerOf(runner)
	ahead, err := s.plan(ctx, conversation, runner, growth(far, tokenizer)...)
	if err != nil || ahead == nil || !ahead.Moved || ahead.Totals.Dropped == 0 {
		return nil, err
	}
	if ahead.Window.Summary > now.Window.Summary {
		soon := continuo.Size{Messages: far.Messages / 2, Chars: far.Chars / 2, Tokens: far.Tokens / 2}
		next, err := s.plan(ctx, conversation, runner, growth(soon, tokenizer)...)
		if err != nil || next == nil || !next.Moved || next.Totals.Dropped == 0 {
			return nil, err // the newer summary covers what a move leaves out soon
		}
	}
	if group, err := s.log.OpenGroup(ctx, conversation); err != nil || len(group.Open) > 0 {
		return nil, err
	}
	most, known := SizeFor(now.Limits, runner.Model.Info().Name), ahead.Window.Summary
	tried := continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: continuo.PartSummary, Content: continuo.Text(most.Filler()),
		Summary: &continuo.Summary{From: 1, Through: max(conversation.LastSeq, 1), By: metrics.Extractive},
	}
	ahead, err = s.plan(ctx, conversation, runner, append([]continuo.Entry{tried}, growth(far, tokenizer)...)...)
	if err != nil || ahead == nil || ahead.Window.Summary == 0 {
		return nil, err // the limits leave no room for a summary
	}
	through := min(ahead.Window.Start-1, conversation.LastSeq)
	if through < 1 {
		return nil, nil
	}
	return &missingSummary{conversation: conversation, through: through, known: known, most: most}, nil
}

// plan plans a request with further entries at the end of a conversation; nil where it exceeds the model's window.
func (s *Summaries) plan(ctx context.Context, conversation continuo.Conversation, runner *turn.Runner, more ...continuo.Entry) (*window.Plan, error) {
	for i := range more {
		more[i].Seq = conversation.LastSeq + 1 + int64(i)
	}
	source := turn.Ahead{Source: turn.Source{Context: ctx, Log: s.log, Conversation: conversation}, More: more}
	plan, _, err := runner.Plan(ctx, conversation, source, conversation.LastSeq+int64(len(more)))
	var overflow *continuo.OverflowError
	if errors.As(err, &overflow) { // the next turn reports it
		return nil, nil
	}
	return plan, err
}

// grown is how much a conversation has grown since a seq.
func (s *Summaries) grown(ctx context.Context, conversation continuo.Conversation, before int64) (size continuo.Size, err error) {
	for entry, err := range s.log.ReadShared(ctx, conversation, continuo.Range{From: before + 1, To: conversation.LastSeq}) {
		if err != nil {
			return size, err
		}
		if !entry.Hidden {
			size = size.Add(continuo.Size{Messages: 1, Chars: entry.Chars, Tokens: entry.Tokens})
		}
	}
	return size, nil
}

// The bounds of headroom, as divisors of a limit.
const (
	leastHeadroom = 4
	mostHeadroom  = 2
)

// headroom is by how much a conversation may grow before the window moves, if the move is to be near: twice its last growth,
// but at least a quarter and at most half of each limit.
func headroom(limits, grown continuo.Size) continuo.Size {
	within := func(limit, grown int) int {
		return min(max(2*grown, limit/leastHeadroom), limit/mostHeadroom)
	}
	return continuo.Size{
		Messages: within(limits.Messages, grown.Messages), Chars: within(limits.Chars, grown.Chars), Tokens: within(limits.Tokens, grown.Tokens),
	}
}

// maxGrowth bounds the messages of growth: where more fit, other limits decide.
const maxGrowth = 1000

// growth makes messages of a size, to plan with before they are there: a user's and a model's in turns, and a short one of the
// user at the end.
func growth(size continuo.Size, tokenizer string) []continuo.Entry {
	messages := min(max(size.Messages, 2)|1, maxGrowth|1)
	entries := make([]continuo.Entry, messages)
	for i := range entries {
		entries[i] = continuo.Entry{Role: continuo.User, Content: continuo.Text("."), Tokenizer: tokenizer, Chars: 1, Tokens: 1}
		if i%2 == 1 {
			entries[i].Role = continuo.Assistant
		}
		if i < messages-1 {
			entries[i].Chars, entries[i].Tokens = size.Chars/(messages-1), size.Tokens/(messages-1)
		}
	}
	return entries
}

// tokenizerOf names the tokenizer in which a runner's requests are measured.
func tokenizerOf(runner *turn.Runner) string {
	counter, _ := token.ForModel(runner.Model.Info().Name)
	return counter.Name()
}
