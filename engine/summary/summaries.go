package summary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/metrics"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// Summaries makes the summaries that views and roles need.
type Summaries struct {
	log     *continuo.Log
	catalog *catalog.Catalog
	metrics *metrics.Metrics
	options Options
}

// Options configures summaries.
type Options struct {
	Summarizer string // the model that makes them; "": the built-in one, which picks sentences
	Logger     *slog.Logger
	LogText    bool
}

func New(log *continuo.Log, catalog *catalog.Catalog, metrics *metrics.Metrics, options Options) *Summaries {
	return &Summaries{log: log, catalog: catalog, metrics: metrics, options: options}
}

// The bounds of a summary's size, in characters: it is a tenth of the view's limits, within these bounds.
const (
	leastSummary = 400
	mostSummary  = 4000
)

// BeforeTurn appends the summary for a turn's first request, if its view shows summaries: when the window moves
// with the turn's input, or has moved past entries that no summary covers. The turn has the conversation's lease, so
// that no other process does so at the same time. A turn never fails because of a missing summary.
func (s *Summaries) BeforeTurn(journal *turn.Journal, runner *turn.Runner, input turn.Input) {
	if !ShowsSummaries(runner) {
		return
	}
	payer := continuo.Payer{ProjectID: input.Conversation.ProjectID, UserID: input.Conversation.UserID, KeyID: journal.Turn().KeyID}
	ctx, logger := continuo.WithPayer(journal.Context(), payer), s.options.Logger.With("conversation_id", journal.Turn().ConversationID, "turn_id", journal.Turn().ID)
	defer func() {
		if cause := recover(); cause != nil {
			logger.ErrorContext(ctx, "summary_failed", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	if err := s.Ahead(ctx, journal.Turn().ConversationID, runner, input); err != nil && ctx.Err() == nil {
		logger.WarnContext(ctx, "summary_failed", "error", err.Error())
	}
}

// ShowsSummaries reports whether a runner's view shows summaries.
func ShowsSummaries(runner *turn.Runner) bool {
	view, ok := runner.View.(window.View)
	return ok && view.Strategy == window.Summarize
}

// Ahead plans the next request and appends the summary that it needs.
func (s *Summaries) Ahead(ctx context.Context, conversationID string, runner *turn.Runner, input turn.Input) error {
	conversation, err := s.log.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	missing, err := s.findMissingSummary(ctx, conversation, runner, input)
	if err != nil || missing == nil {
		return err
	}
	if group, err := s.log.OpenGroup(ctx, conversation); err != nil || len(group.Open) > 0 {
		return err // the group will be closed when the next turn plans
	}
	before, err := s.changes(ctx, conversation)
	if err != nil {
		return err
	}
	g, err := s.readSummaryInput(ctx, conversation, 1, missing.through, "", missing.known)
	if err != nil || g.covered || len(g.entries) == 0 {
		return err
	}
	entry, err := s.summaryOf(ctx, conversation, g, s.options.Summarizer, missing.most.Chars)
	if err != nil {
		return err
	}
	if after, err := s.changes(ctx, conversation); err != nil || !slices.EqualFunc(before, after, time.Time.Equal) {
		return err // the summary may repeat an entry that was redacted meanwhile
	}
	entry.Content = continuo.Text(missing.most.Cut(entry.Content.String()))
	return s.keepSummary(ctx, conversationID, entry)
}

// changes returns the times of the last changes of a conversation and of its ancestors.
func (s *Summaries) changes(ctx context.Context, conversation continuo.Conversation) ([]time.Time, error) {
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
func (s *Summaries) keepSummary(ctx context.Context, conversationID string, entry continuo.Entry) error {
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

// missingSummary is a summary that a turn's first request needs and the log does not have.
type missingSummary struct {
	through int64 // the last seq that it is to cover
	known   int64 // the seq of the summary that is shown without it; 0 for none
	most    Size
}

// findMissingSummary returns the summary that a turn's first request needs; nil for none.
func (s *Summaries) findMissingSummary(ctx context.Context, conversation continuo.Conversation, runner *turn.Runner, input turn.Input) (*missingSummary, error) {
	plan, err := planAhead(ctx, s.log, conversation, runner, input)
	var overflow *continuo.OverflowError
	if errors.As(err, &overflow) { // the turn reports it
		return nil, nil
	}
	if err != nil || plan.Totals.Dropped == 0 {
		return nil, err
	}
	most, known := SizeFor(plan.Limits, runner.Model.Info().Name), plan.Window.Summary
	if plan.Moved {
		tried := continuo.Entry{
			Role: continuo.System, Hidden: true, PartType: continuo.PartSummary, Content: continuo.Text(most.Filler()),
			Summary: &continuo.Summary{From: 1, Through: max(conversation.LastSeq, 1), By: metrics.Extractive},
		}
		if plan, err = planAhead(ctx, s.log, conversation, runner, input, tried); err != nil || plan.Window.Summary == 0 {
			return nil, err // the limits leave no room for a summary
		}
	}
	through := min(plan.Window.Start-1, conversation.LastSeq)
	if through < 1 {
		return nil, nil
	}
	return &missingSummary{through: through, known: known, most: most}, nil
}

// Size is the maximum size of a summary.
type Size struct {
	Chars   int
	Tokens  int // 0 for any number
	Counter continuo.Counter
}

func SizeFor(limits continuo.Size, modelName string) Size {
	size := Size{Chars: mostSummary}
	size.Counter, _ = token.ForModel(modelName)
	const tokenChars = 4 // of English
	for _, limit := range []int{limits.Chars, limits.Tokens * tokenChars} {
		if limit > 0 {
			size.Chars = max(min(size.Chars, limit/10), leastSummary)
		}
	}
	if limits.Tokens > 0 {
		size.Tokens = size.Counter.Count(size.Filler())
	}
	return size
}

// Filler is a text of the maximum size, to plan with a summary before it is made: a real one is no larger.
func (s Size) Filler() string {
	const word = "and "
	return strings.TrimSpace(strings.Repeat(word, s.Chars/len(word)))
}

// Cut shortens a text to the size.
func (s Size) Cut(text string) string {
	chars := s.Chars
	for text = brief.Shorten(text, chars); s.Tokens > 0 && chars > 1; text = brief.Shorten(text, chars) {
		tokens := s.Counter.Count(text)
		if tokens <= s.Tokens {
			break
		}
		chars = min(chars-1, chars*s.Tokens/tokens)
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
	source := turn.Ahead{Source: turn.Source{Context: ctx, Log: log, Conversation: conversation}, More: more}
	plan, _, err := runner.Plan(ctx, conversation, source, conversation.LastSeq+int64(len(more)))
	return plan, err
}
