package trpc

import (
	"context"
	"fmt"
	"slices"
	"time"

	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/session"
	"trpc.group/trpc-go/trpc-agent-go/session/summary"
)

// CreateSessionSummary makes a summary of a session's events that match a filter key, from the summary before and the events
// since, when the summarizer wants one or force is set. It is stored in the session and set in the given value.
func (s *Service) CreateSessionSummary(ctx context.Context, sess *session.Session, filterKey string, force bool) error {
	_, err := s.summarize(ctx, sess, filterKey, force)
	return err
}

// EnqueueSummaryJob makes the summary of a filter key, and that of the whole session, before it returns. Where all events
// match the filter key, both are one.
func (s *Service) EnqueueSummaryJob(ctx context.Context, sess *session.Session, filterKey string, force bool) error {
	ctx = context.WithoutCancel(ctx)
	made, err := s.summarize(ctx, sess, filterKey, force)
	if err != nil || s.summarizer == nil || filterKey == session.SummaryFilterKeyAllContents {
		return err
	}
	for _, e := range sess.GetEvents() {
		if !e.Filter(filterKey) {
			_, err := s.summarize(ctx, sess, session.SummaryFilterKeyAllContents, force)
			return err
		}
	}
	if made == nil {
		return nil
	}
	return s.storeSummary(ctx, sess, session.SummaryFilterKeyAllContents, made.Clone())
}

// summarize makes and stores a summary; nil where none is made.
func (s *Service) summarize(ctx context.Context, sess *session.Session, filterKey string, force bool) (*session.Summary, error) {
	if s.summarizer == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	if sess == nil {
		return nil, session.ErrNilSession
	}
	key := keyOf(sess)
	if err := key.CheckSessionKey(); err != nil {
		return nil, err
	}
	sess.SummariesMu.RLock()
	before := sess.Summaries[filterKey].Clone()
	sess.SummariesMu.RUnlock()
	since := eventsSince(sess.GetEvents(), before.CutoffBoundary(), filterKey)
	if len(since) == 0 && !force {
		return nil, nil //nolint:nilnil // nothing has happened since
	}
	part := session.NewSession(sess.AppName, sess.UserID, sess.ID+":"+filterKey, session.WithSessionCreatedAt(sess.CreatedAt))
	if before != nil && before.Summary != "" {
		part.Events = append(part.Events, event.Event{
			Author: "system", Timestamp: s.log.Now(), Response: &model.Response{Choices: []model.Choice{{Message: model.Message{Content: before.Summary}}}},
		})
	}
	part.Events = append(part.Events, since...)
	if !force && !s.wants(ctx, part) {
		return nil, nil //nolint:nilnil // the summarizer wants none
	}
	text, err := s.summarizer.Summarize(ctx, part)
	if err != nil {
		return nil, fmt.Errorf("trpc: summarize session %s: %w", sess.ID, err)
	}
	if text == "" {
		return nil, nil //nolint:nilnil // there is nothing to say
	}
	boundary := boundaryOf(part, before, since)
	boundary.FilterKey = filterKey
	made := &session.Summary{Summary: text, UpdatedAt: boundary.CutoffTime(), Boundary: boundary}
	return made, s.storeSummary(ctx, sess, filterKey, made)
}

func (s *Service) wants(ctx context.Context, part *session.Session) bool {
	if aware, ok := s.summarizer.(summary.ContextAwareSummarizer); ok {
		return aware.ShouldSummarizeWithContext(ctx, part)
	}
	return s.summarizer.ShouldSummarize(part)
}

// eventsSince returns the events after the last one that a summary covers.
func eventsSince(events []event.Event, covered *session.SummaryBoundary, filterKey string) []event.Event {
	if covered != nil {
		last := slices.IndexFunc(events, func(e event.Event) bool { return covered.LastEventID != "" && e.ID == covered.LastEventID })
		if events = events[last+1:]; last < 0 {
			events = slices.DeleteFunc(events, func(e event.Event) bool { return e.Timestamp.Before(covered.CutoffTime()) })
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool { return !e.Filter(filterKey) })
}

// boundaryOf is what a summary covers: as far as the summarizer says in the state of its session, or all.
func boundaryOf(part *session.Session, before *session.Summary, since []event.Event) *session.SummaryBoundary {
	if said, ok := part.GetState(session.SummaryLastIncludedTimestampStateKey); ok {
		if at, err := time.Parse(time.RFC3339Nano, string(said)); err == nil {
			id, _ := part.GetState(session.SummaryLastIncludedEventIDStateKey)
			return session.NewSummaryBoundaryWithEventID("", at, string(id))
		}
	}
	if len(since) > 0 {
		last := since[len(since)-1]
		return session.NewSummaryBoundaryWithEventID("", last.Timestamp, last.ID)
	}
	if covered := before.CutoffBoundary(); covered != nil {
		return covered
	}
	return session.NewSummaryBoundary("", time.Time{})
}

func (s *Service) storeSummary(ctx context.Context, sess *session.Session, filterKey string, made *session.Summary) error {
	made.Boundary.FilterKey = filterKey
	if err := s.record(ctx, sess, form{Summary: &summaryOf{FilterKey: filterKey, Summary: made}}); err != nil {
		return err
	}
	sess.SummariesMu.Lock()
	defer sess.SummariesMu.Unlock()
	if sess.Summaries == nil {
		sess.Summaries = map[string]*session.Summary{}
	}
	sess.Summaries[filterKey] = made.Clone()
	return nil
}

// GetSessionSummaryText returns the summary of a filter key that a session has, or that of the whole session.
func (s *Service) GetSessionSummaryText(_ context.Context, sess *session.Session, options ...session.SummaryOption) (string, bool) {
	if sess == nil {
		return "", false
	}
	var wanted session.SummaryOptions
	for _, option := range options {
		option(&wanted)
	}
	sess.SummariesMu.RLock()
	defer sess.SummariesMu.RUnlock()
	for _, key := range []string{wanted.FilterKey, session.SummaryFilterKeyAllContents} {
		if made := sess.Summaries[key]; made != nil && made.Summary != "" {
			return made.Summary, true
		}
	}
	return "", false
}
