package main

import (
	"context"
	"log/slog"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine/ledger"
)

// webhookData is the turn of a message to a webhook, which is sent those of all projects.
type webhookData struct {
	ProjectID string `json:"project_id"`
	api.FinishedTurn
}

// webhookRetry is how long the server waits before it goes on after a failure of the store.
const webhookRetry = 5 * time.Second

// sendWebhook sends the turns that end to the webhook of the settings until ctx is done: one server on the store at a time.
func (w *services) sendWebhook(ctx context.Context, logger *slog.Logger) {
	settings := w.settings.Webhook
	if settings.URL == "" || settings.Secret == "" {
		return
	}
	hook := ledger.Webhook{
		URL: settings.URL, Secret: settings.Secret, Logger: logger, Sent: w.metrics.WebhookSent,
		Body: func(t continuo.FinishedTurn) any { return webhookData{t.ProjectID, api.FinishedTurnOf(t)} },
	}
	if settings.Turns != "all" {
		hook.States = []continuo.TurnState{continuo.TurnState(settings.Turns)}
	}
	_ = w.engine.RunExclusive(ctx, hook.LeaseName(), nil, func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := w.engine.Ledger.Send(ctx, hook); err != nil && ctx.Err() == nil {
				logger.ErrorContext(ctx, "webhook_stopped", "error", err.Error())
			}
			select {
			case <-ctx.Done():
			case <-time.After(webhookRetry):
			}
		}
		return ctx.Err()
	})
}
