package summary

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// job is the work that the end of a turn begins.
type job struct {
	runner *turn.Runner
	payer  continuo.Payer
	before int64 // the conversation's newest seq before the turn
}

const (
	// maxWorking bounds the summaries that a process makes at once.
	maxWorking = 8
	// appendPatience bounds how long a summary waits until the calls of a running turn have their results.
	appendPatience = 10 * time.Minute
	// appendPoll is how often it looks where the store reports no changes.
	appendPoll = time.Second
)

// AfterTurn makes in the background the summary that the next move of the conversation's window will show, if the view of the
// turn that has ended shows summaries and the move is near. The conversation is as it was before the turn. Engine.Close waits
// for the work. What a process leaves undone is done after the next turn, whichever process runs it.
func (s *Summaries) AfterTurn(conversation continuo.Conversation, ended continuo.Turn, runner *turn.Runner) {
	work := job{
		runner: runner, before: conversation.LastSeq,
		payer: continuo.Payer{ProjectID: conversation.ProjectID, UserID: conversation.UserID, KeyID: ended.KeyID},
	}
	id := conversation.ID
	if !showsSummaries(runner) || !s.pending.Begin(id, work) {
		return
	}
	s.life.Go(func(ctx context.Context) {
		for again := true; again; work, again = s.pending.Next(id) {
			s.work(continuo.WithPayer(ctx, work.payer), id, work)
		}
	})
}

// showsSummaries reports whether a runner's view shows summaries.
func showsSummaries(runner *turn.Runner) bool {
	view, ok := runner.View.(window.View)
	return ok && view.Strategy == window.Summarize
}

// work makes the summary of one conversation, and logs what goes wrong.
func (s *Summaries) work(ctx context.Context, id string, work job) {
	logger := s.options.Logger.With("conversation_id", id)
	defer func() {
		if cause := recover(); cause != nil {
			logger.ErrorContext(ctx, "summary_failed", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	if err := s.Ahead(ctx, id, work.runner, work.before); err != nil && ctx.Err() == nil {
		logger.WarnContext(ctx, "summary_failed", "error", err.Error())
	}
}

// Ahead appends the summary that the next move of a conversation's window will show, if the move is near and the log has none
// for it. It is near where the window moves before the conversation has grown by a quarter of the view's limits, or by twice
// as much as it has grown since the seq before. Of all processes with the store one makes the summary, and the others wait.
func (s *Summaries) Ahead(ctx context.Context, id string, runner *turn.Runner, before int64) error {
	if need, err := s.missing(ctx, id, runner, before); err != nil || need == nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	onTaken := func(string) { context.AfterFunc(s.life.Draining, cancel) }
	return s.keeper.RunExclusive(ctx, "summary/"+id, onTaken, func(ctx context.Context) error {
		need, err := s.missing(ctx, id, runner, before) // another process may have made it
		if err != nil || need == nil {
			return err
		}
		select {
		case s.working <- struct{}{}:
			defer func() { <-s.working }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return s.fill(ctx, need)
	})
}

// missing reads a conversation and finds the summary that it needs; nil for none.
func (s *Summaries) missing(ctx context.Context, id string, runner *turn.Runner, before int64) (*missingSummary, error) {
	conversation, err := s.log.Conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.findMissing(ctx, conversation, runner, before)
}

// fill makes a missing summary and appends it.
func (s *Summaries) fill(ctx context.Context, need *missingSummary) error {
	conversation := need.conversation
	before, err := s.revisions(ctx, conversation)
	if err != nil {
		return err
	}
	g, err := s.readSummaryInput(ctx, conversation, 1, need.through, "", need.known)
	if err != nil || g.covered || len(g.entries) == 0 {
		return err
	}
	entry, err := s.summaryOf(ctx, conversation, g, s.options.Summarizer, need.most.Chars)
	if err != nil {
		return err
	}
	entry.Content = continuo.Text(need.most.Cut(entry.Content.String()))
	if after, err := s.revisions(ctx, conversation); err != nil || !slices.Equal(before, after) {
		return err // the summary may repeat an entry that was redacted meanwhile
	}
	seq, err := s.keep(ctx, conversation.ID, entry)
	if err != nil || seq == 0 {
		return err
	}
	return s.settle(context.WithoutCancel(ctx), conversation.ID, seq, before)
}

// revisions returns the revisions of a conversation and of its ancestors, which change when entries are redacted.
func (s *Summaries) revisions(ctx context.Context, conversation continuo.Conversation) ([]int64, error) {
	var revisions []int64
	ids := []string{conversation.ID}
	for _, segment := range conversation.Lineage {
		ids = append(ids, segment.ConversationID)
	}
	for _, id := range ids {
		found, err := s.log.Conversation(ctx, id)
		if err != nil && (id == conversation.ID || !errors.Is(err, continuo.ErrNotFound)) {
			return nil, err
		}
		revisions = append(revisions, found.Revision) // a deleted ancestor does not change
	}
	return revisions, nil
}

// settle redacts a summary that was appended, if an entry was redacted after it was read. A redaction that ends later finds
// the summary itself; see continuo.Log.Redact.
func (s *Summaries) settle(ctx context.Context, id string, seq int64, before []int64) error {
	conversation, err := s.log.Conversation(ctx, id)
	if err != nil {
		return err
	}
	after, err := s.revisions(ctx, conversation)
	if err != nil || slices.Equal(before, after) {
		return err
	}
	_, err = s.log.Redact(ctx, conversation, seq, seq, "an entry was redacted while it was summarized")
	return err
}

// maxSummaryKeys bounds how often a range is summarized again because its summary was redacted.
const maxSummaryKeys = 16

// keep appends a summary, once for its range, and returns its seq; after a redacted one another is appended.
func (s *Summaries) keep(ctx context.Context, id string, entry continuo.Entry) (int64, error) {
	key := fmt.Sprintf("summary/%d-%d", entry.Summary.From, entry.Summary.Through)
	for range maxSummaryKeys {
		stored, err := s.append(ctx, id, entry, key)
		if err != nil {
			return 0, err
		}
		if stored.Redacted == nil {
			return stored.Seq, nil
		}
		key = fmt.Sprintf("summary/%d-%d/%d", entry.Summary.From, entry.Summary.Through, stored.Seq)
	}
	return 0, nil
}

// append appends an entry. While calls of a running turn have no results nothing can come between: it waits.
func (s *Summaries) append(ctx context.Context, id string, entry continuo.Entry, key string) (continuo.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, appendPatience)
	defer cancel()
	defer context.AfterFunc(s.life.Draining, cancel)()
	listener := s.log.Listen(id)
	defer listener.Close()
	for {
		changed := listener.Changed()
		stored, err := s.log.Append(context.WithoutCancel(ctx), id, []continuo.Entry{entry}, continuo.AppendOptions{Key: key, Identity: key})
		var rule *continuo.RuleError
		switch {
		case err == nil:
			return stored[0], nil
		case !errors.As(err, &rule) || rule.Rule != continuo.RuleUnanswered:
			return continuo.Entry{}, err
		case !listener.Wait(ctx, changed, appendPoll):
			return continuo.Entry{}, fmt.Errorf("wait for the results of calls: %w", context.Cause(ctx))
		}
	}
}
