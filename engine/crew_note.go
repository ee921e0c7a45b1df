package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/window"
)

const (
	// noteEvery is how many entries stand behind a role's notes, or behind a crew's summary, before new ones are made.
	noteEvery = 20
	// noteChars bounds notes and summaries.
	noteChars = 2000
)

// noteFor records the notes or the summary that a role's view lacks, before the role is asked; errMoved where the log
// has gone on meanwhile. A model has the limit to make them. A role goes on without them where they cannot be made.
func (e *Engine) noteFor(ctx context.Context, t *crewTracker, role *crew.Role, limit time.Duration) error {
	from, through, err := e.lacksNotes(ctx, t, role)
	if err != nil || through < from {
		return err
	}
	conversation, err := e.Log.Conversation(ctx, t.run.ConversationID)
	if err != nil {
		return err
	}
	noted, whose := role.Name, role.View.Kind
	if whose == window.RoleSummary {
		noted = ""
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	entry, err := e.summarized(within, conversation, from, through, noted, t.state.Crew.Summarizer, noteChars)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		e.options.Logger.WarnContext(ctx, "summary_fell_back", "conversation_id", conversation.ID, "role", role.Name, "model", t.state.Crew.Summarizer, "error", "the role's turn needs the rest of its time")
		entry, err = e.summarized(ctx, conversation, from, through, noted, "", noteChars)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, continuo.ErrNotFound):
		return nil // there is nothing to tell of
	case err != nil:
		e.options.Logger.WarnContext(ctx, "crew_not_noted", "conversation_id", conversation.ID, "role", role.Name, "error", err.Error())
		return nil
	}
	return t.record(ctx, []continuo.Entry{t.state.Noted(entry)}, continuo.AppendOptions{})
}

// lacksNotes says for which entries a role's view lacks notes or a summary; through is less than from for none. They
// stand for nothing that a role they are for has not been shown whole.
func (e *Engine) lacksNotes(ctx context.Context, t *crewTracker, role *crew.Role) (from, through int64, err error) {
	since := t.state.Now.Since
	stood := t.state.Now.Role(role.Name)
	known := since
	switch role.View.Kind {
	case window.RoleMemory:
		if known, err = e.notedThrough(ctx, t, stood.Notes, since); err != nil {
			return 0, 0, err
		}
		through = stood.Cursor
	case window.RoleSummary:
		through = math.MaxInt64
		for i := range t.state.Crew.Roles {
			if other := &t.state.Crew.Roles[i]; other.View.Kind == window.RoleSummary {
				through = min(through, t.state.Now.Role(other.Name).Cursor)
			}
		}
		if through -= int64(cmp.Or(role.View.Newest, newestBehindSummary)); through-since < noteEvery {
			return 1, 0, nil // before the log is read for it
		}
		if known, err = e.summarizedThrough(ctx, t, since); err != nil {
			return 0, 0, err
		}
	default:
		return 1, 0, nil
	}
	if through-known < noteEvery {
		return 1, 0, nil
	}
	return since + 1, through, nil
}

// notedThrough is the last seq that a role's notes stand for.
func (e *Engine) notedThrough(ctx context.Context, t *crewTracker, notes, since int64) (int64, error) {
	if notes == 0 {
		return since, nil
	}
	conversation, err := e.Log.Conversation(ctx, t.run.ConversationID)
	if err != nil {
		return 0, err
	}
	for entry, err := range e.Log.Read(ctx, conversation, continuo.Range{From: notes, To: notes}) {
		if err != nil {
			return 0, err
		}
		if entry.Summary != nil {
			return max(since, entry.Summary.Through), nil
		}
	}
	return since, nil
}

// summarizedThrough is the last seq that the newest summary stands for.
func (e *Engine) summarizedThrough(ctx context.Context, t *crewTracker, since int64) (int64, error) {
	conversation, err := e.Log.Conversation(ctx, t.run.ConversationID)
	if err != nil {
		return 0, err
	}
	for entry, err := range e.Log.Read(ctx, conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return 0, err
		}
		if entry.Seq <= since {
			break
		}
		if s := entry.Summary; s != nil && s.Role == "" && entry.Redacted == nil && entry.PartType == continuo.PartSummary {
			return max(since, s.Through), nil
		}
	}
	return since, nil
}
