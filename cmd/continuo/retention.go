package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/internal/config"
)

// retention applies the settings of the section retention in a server: one of those on the store at a time.
type retention struct {
	w       *services
	trail   *audit.Trail
	rules   []retentionRule
	logger  *slog.Logger
	removed func(action string)
	now     func() time.Time
}

// retentionRule says what happens to conversations of some kinds.
type retentionRule struct {
	kinds  []continuo.Kind
	modes  []continuo.Mode // of their conversations; nil: any
	after  time.Duration
	remove bool // otherwise they are archived
}

// retentionRules are the rules of the settings; removals come first, so that nothing is archived that is about to go.
func retentionRules(settings config.RetentionConfig) (rules []retentionRule) {
	users, work := []continuo.Kind{continuo.KindUser}, []continuo.Kind{continuo.KindTask, continuo.KindAgent}
	for _, rule := range []retentionRule{
		{users, nil, settings.DeleteAfter, true},
		{users, []continuo.Mode{continuo.ModeChat}, settings.ChatDeleteAfter, true},
		{users, []continuo.Mode{continuo.ModeAgent}, settings.AgentDeleteAfter, true},
		{users, []continuo.Mode{continuo.ModeRun}, settings.RunDeleteAfter, true},
		{work, nil, settings.TaskDeleteAfter, true},
		{[]continuo.Kind{continuo.KindSide}, nil, settings.SideDeleteAfter, true},
		{users, nil, settings.ArchiveAfter, false},
	} {
		if rule.after > 0 {
			rules = append(rules, rule)
		}
	}
	return rules
}

// retentionPause is how long the server waits between two applications of the rules.
const retentionPause = time.Hour

// run applies the rules now and every hour, until ctx is done.
func (r *retention) run(ctx context.Context) {
	if len(r.rules) == 0 {
		return
	}
	r.w.hourly(ctx, "retention", func(ctx context.Context) {
		if err := r.apply(ctx); err != nil && ctx.Err() == nil {
			r.logger.ErrorContext(ctx, "retention_failed", "error", err.Error())
		}
	})
}

// hourly does something now and every hour until ctx is done, in one of the servers on the store at a time.
func (w *services) hourly(ctx context.Context, lease string, do func(ctx context.Context)) {
	ticker := time.NewTicker(retentionPause)
	defer ticker.Stop()
	_ = w.engine.RunExclusive(ctx, lease, nil, func(ctx context.Context) error {
		for {
			do(ctx)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
			}
		}
	})
}

// pruneFeed removes from the feed the turns that ended too long ago, except for those that a webhook has still to get.
func (w *services) pruneFeed(ctx context.Context, logger *slog.Logger) {
	keep := w.settings.Retention.Feed
	if keep == 0 {
		return
	}
	var receivers []string
	for _, name := range w.settings.WebhookNames() {
		receivers = append(receivers, ledger.WebhookPosition(name))
	}
	w.hourly(ctx, "feed", func(ctx context.Context) {
		removed, err := w.engine.Ledger.Prune(ctx, time.Now(), keep, receivers)
		w.metrics.FeedPruned(removed)
		if err != nil && ctx.Err() == nil {
			logger.ErrorContext(ctx, "feed_not_pruned", "error", err.Error())
		} else if removed > 0 {
			logger.InfoContext(ctx, "feed_pruned", "turns", removed)
		}
	})
}

// record records in the audit log what was done to a conversation.
func (r *retention) record(ctx context.Context, action string, c continuo.Conversation) {
	err := r.trail.Commit(ctx, audit.Event{
		Caller:    audit.Caller{Origin: audit.OriginServer, ProjectID: c.ProjectID, UserID: c.UserID},
		Operation: "retention." + action, ConversationID: c.ID, Status: http.StatusOK,
	})
	if err != nil {
		r.logger.ErrorContext(ctx, "audit_delayed", "conversation_id", c.ID, "error", err.Error())
	}
}

// apply applies the rules once, in every project.
func (r *retention) apply(ctx context.Context) error {
	projects, err := r.w.projects(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, project := range projects {
		for _, rule := range r.rules {
			failures = append(failures, r.applyIn(ctx, project.ID, rule))
		}
	}
	return errors.Join(failures...)
}

// applyIn applies a rule in a project, and records each conversation that it removes or archives.
func (r *retention) applyIn(ctx context.Context, project string, rule retentionRule) error {
	action := "archived"
	if rule.remove {
		action = "deleted"
	}
	p := pruner{w: r.w, project: project, before: r.now().Add(-rule.after), remove: rule.remove}
	modes := rule.modes
	if len(modes) == 0 {
		modes = []continuo.Mode{""}
	}
	for _, kind := range rule.kinds {
		for _, mode := range modes {
			err := p.each(ctx, continuo.ConversationQuery{Kind: kind, Mode: mode}, func(c continuo.Conversation) error {
				done, err := p.one(ctx, c)
				if done {
					r.removed(action)
					r.record(ctx, action, c)
					r.logger.InfoContext(ctx, "retention_applied", "action", action, "project", project, "conversation_id", c.ID,
						"user_id", c.UserID, "kind", string(c.Kind), "mode", c.ActiveMode, "updated_at", c.UpdatedAt.Format(time.RFC3339), "entries", c.LastSeq)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
