package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// summaries makes the summaries that views and roles need.
type summaries struct {
	log     *continuo.Log
	catalog *Catalog
	metrics *Metrics
	options summaryOptions
}

// summaryOptions configures summaries.
type summaryOptions struct {
	Summarizer string // the model that makes them; "": the built-in one, which picks sentences
	Logger     *slog.Logger
	LogText    bool
}

func newSummaries(log *continuo.Log, catalog *Catalog, metrics *Metrics, options summaryOptions) *summaries {
	return &summaries{log: log, catalog: catalog, metrics: metrics, options: options}
}

// The bounds of a summary's size, in characters: it is a tenth of the view's limits, within these bounds.
const (
	leastSummary = 400
	mostSummary  = 4000
)

// summarizeFirst appends the summary for a turn's first request, if its view shows summaries: when the window moves
// with the turn's input, or has moved past entries that no summary covers. The turn has the conversation's lease, so
// that no other process does so at the same time. A turn never fails because of a missing summary.
func (s *summaries) summarizeFirst(journal *turn.Journal, runner *turn.Runner, input turn.Input) {
	if !showsSummaries(runner) {
		return
	}
	ctx, logger := journal.Context(), s.options.Logger.With("conversation_id", journal.Turn().ConversationID, "turn_id", journal.Turn().ID)
	defer func() {
		if cause := recover(); cause != nil {
			logger.ErrorContext(ctx, "summary_failed", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	if err := s.summarizeAhead(ctx, journal.Turn().ConversationID, runner, input); err != nil && ctx.Err() == nil {
		logger.WarnContext(ctx, "summary_failed", "error", err.Error())
	}
}

// showsSummaries reports whether a runner's view shows summaries.
func showsSummaries(runner *turn.Runner) bool {
	view, ok := runner.View.(window.View)
	return ok && view.Strategy == window.Summarize
}

// summarizeAhead plans the next request and appends the summary that it needs.
func (s *summaries) summarizeAhead(ctx context.Context, conversationID string, runner *turn.Runner, input turn.Input) error {
	conversation, err := s.log.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	lacks, err := s.lacking(ctx, conversation, runner, input)
	if err != nil || lacks == nil {
		return err
	}
	if group, err := s.log.OpenGroup(ctx, conversation); err != nil || len(group.Open) > 0 {
		return err // the group will be closed when the next turn plans
	}
	before, err := s.changes(ctx, conversation)
	if err != nil {
		return err
	}
	g, err := s.readSummaryInput(ctx, conversation, 1, lacks.through, "", lacks.known)
	if err != nil || g.covered || len(g.entries) == 0 {
		return err
	}
	entry, err := s.summaryOf(ctx, conversation, g, s.options.Summarizer, lacks.most.chars)
	if err != nil {
		return err
	}
	if after, err := s.changes(ctx, conversation); err != nil || !slices.EqualFunc(before, after, time.Time.Equal) {
		return err // the summary may repeat an entry that was redacted meanwhile
	}
	entry.Content = continuo.Text(lacks.most.cut(entry.Content.String()))
	return s.keepSummary(ctx, conversationID, entry)
}

// changes returns the times of the last changes of a conversation and of its ancestors.
func (s *summaries) changes(ctx context.Context, conversation continuo.Conversation) ([]time.Time, error) {
	var times []time.Time
	ids := []string{conversation.ID}
	for _, segment := range conversation.Lineage {
		ids = append(ids, segment.ConversationID)
	}
	for _, id := range ids {
		found, err := s.log.Conversation(ctx, id)
		if err != nil && id == conversation.ID {
			return nil, err
		}
		times = append(times, found.UpdatedAt) // a deleted ancestor does not change
	}
	return times, nil
}

// maxSummaryKeys bounds how often a range is summarized again because its summary was redacted.
const maxSummaryKeys = 16

// keepSummary appends a summary, once for its range; after a redacted one another is appended.
func (s *summaries) keepSummary(ctx context.Context, conversationID string, entry continuo.Entry) error {
	key := fmt.Sprintf("summary/%d-%d", entry.Summary.From, entry.Summary.Through)
	for range maxSummaryKeys {
		stored, err := s.log.Append(ctx, conversationID, []continuo.Entry{entry}, continuo.AppendOptions{Key: key, Identity: key})
		if err != nil || stored[0].Redacted == nil {
			return err
		}
		key = fmt.Sprintf("summary/%d-%d/%d", entry.Summary.From, entry.Summary.Through, stored[0].Seq)
	}
	return nil
}

// lack is a summary that a turn's first request needs and the log does not have.
type lack struct {
	through int64 // the last seq that it is to cover
	known   int64 // the seq of the summary that is shown without it; 0 for none
	most    summarySize
}

// lacking returns the summary that a turn's first request needs; nil for none.
func (s *summaries) lacking(ctx context.Context, conversation continuo.Conversation, runner *turn.Runner, input turn.Input) (*lack, error) {
	plan, err := planAhead(ctx, s.log, conversation, runner, input)
	var overflow *continuo.OverflowError
	if errors.As(err, &overflow) { // the turn reports it
		return nil, nil
	}
	if err != nil || plan.Totals.Dropped == 0 {
		return nil, err
	}
	most, known := sizeOfSummary(plan.Limits, runner.Model.Info().Name), plan.Window.Summary
	if plan.Moved {
		tried := continuo.Entry{
			Role: continuo.System, Hidden: true, PartType: continuo.PartSummary, Content: continuo.Text(most.filler()),
			Summary: &continuo.Summary{From: 1, Through: max(conversation.LastSeq, 1), By: extractive},
		}
		if plan, err = planAhead(ctx, s.log, conversation, runner, input, tried); err != nil || plan.Window.Summary == 0 {
			return nil, err // the limits leave no room for a summary
		}
	}
	through := min(plan.Window.Start-1, conversation.LastSeq)
	if through < 1 {
		return nil, nil
	}
	return &lack{through: through, known: known, most: most}, nil
}

// summarySize is the maximum size of a summary.
type summarySize struct {
	chars   int
	tokens  int // 0 for any number
	counter continuo.Counter
}

func sizeOfSummary(limits continuo.Size, modelName string) summarySize {
	size := summarySize{chars: mostSummary}
	size.counter, _ = token.ForModel(modelName)
	const tokenChars = 4 // of English
	for _, limit := range []int{limits.Chars, limits.Tokens * tokenChars} {
		if limit > 0 {
			size.chars = max(min(size.chars, limit/10), leastSummary)
		}
	}
	if limits.Tokens > 0 {
		size.tokens = size.counter.Count(size.filler())
	}
	return size
}

// filler is a text of the maximum size, to plan with a summary before it is made: a real one is no larger.
func (s summarySize) filler() string {
	const word = "and "
	return strings.TrimSpace(strings.Repeat(word, s.chars/len(word)))
}

// cut shortens a text to the size.
func (s summarySize) cut(text string) string {
	chars := s.chars
	for text = shorten(text, chars); s.tokens > 0 && chars > 1; text = shorten(text, chars) {
		tokens := s.counter.Count(text)
		if tokens <= s.tokens {
			break
		}
		chars = min(chars-1, chars*s.tokens/tokens)
		chars = max(chars, 1)
	}
	return strings.TrimSpace(text)
}

// planAhead plans a turn's first request before its input and other entries are appended.
func planAhead(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, runner *turn.Runner, input turn.Input, more ...continuo.Entry) (*window.Plan, error) {
	switch {
	case input.Cue != nil:
		more = append(more, *input.Cue)
	case !input.Resume:
		more = append(more, continuo.Entry{Role: continuo.User, Content: input.Message})
	}
	for i := range more {
		more[i].Seq = conversation.LastSeq + 1 + int64(i)
	}
	source := ahead{Source: turn.Source{Context: ctx, Log: log, Conversation: conversation}, more: more}
	plan, _, err := runner.Plan(ctx, conversation, source, conversation.LastSeq+int64(len(more)))
	return plan, err
}

// ahead is a conversation with additional entries after its end that are not appended yet.
type ahead struct {
	turn.Source
	more []continuo.Entry
}

// Backward is part of [window.Source].
func (a ahead) Backward(seq int64) iter.Seq2[continuo.Entry, error] {
	return func(yield func(continuo.Entry, error) bool) {
		for _, entry := range slices.Backward(a.more) {
			if entry.Seq <= seq && !yield(entry, nil) {
				return
			}
		}
		for entry, err := range a.Source.Backward(min(seq, a.Conversation.LastSeq)) {
			if !yield(entry, err) {
				return
			}
		}
	}
}

// Forward is part of [window.Source].
func (a ahead) Forward(seq int64) iter.Seq2[continuo.Entry, error] {
	return func(yield func(continuo.Entry, error) bool) {
		last := a.Conversation.LastSeq
		if seq <= last {
			for entry, err := range a.Source.Forward(seq) {
				if !yield(entry, err) {
					return
				}
				if err != nil || entry.Seq == last {
					break // entries that others have appended since do not precede the additional ones
				}
			}
		}
		for _, entry := range a.more {
			if entry.Seq >= seq && !yield(entry, nil) {
				return
			}
		}
	}
}

// LatestUser is part of [window.Source].
func (a ahead) LatestUser(seq int64) (continuo.Entry, error) {
	for _, entry := range slices.Backward(a.more) {
		if entry.Seq <= seq && entry.Role == continuo.User {
			return entry, nil
		}
	}
	return a.Source.LatestUser(min(seq, a.Conversation.LastSeq))
}
