package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/internal/config"
)

// webhookData is the turn of a message to a webhook, which may be sent those of several projects.
type webhookData struct {
	ProjectID string `json:"project_id"`
	api.FinishedTurn
}

// webhookRetry is how long the server waits before it goes on after a failure of the store.
const webhookRetry = 5 * time.Second

// sendWebhooks sends the turns that end to each webhook of the settings until ctx is done. Each has a goroutine, a lease and a
// position of its own: none waits for another one, and replicas share them.
func (w *services) sendWebhooks(ctx context.Context, logger *slog.Logger) {
	var sending sync.WaitGroup
	for _, name := range w.settings.WebhookNames() {
		if settings := w.settings.Webhooks[name]; settings.Secret != "" {
			sending.Go(func() { w.sendWebhook(ctx, settings, logger) })
		} else {
			logger.ErrorContext(ctx, "webhook_without_secret", "webhook", name)
		}
	}
	sending.Wait()
}

func (w *services) sendWebhook(ctx context.Context, settings config.WebhookConfig, logger *slog.Logger) {
	name := settings.Name
	hook := ledger.Webhook{
		Name: name, URL: settings.URL, Secret: settings.Secret, Projects: settings.Projects, Logger: logger,
		Sent:   func(ok bool) { w.metrics.WebhookSent(name, ok) },
		Lost:   func() { w.metrics.WebhookLost(name) },
		Behind: func(behind time.Duration) { w.metrics.WebhookBehind(name, behind) },
		Body:   func(t continuo.FinishedTurn) any { return webhookData{t.ProjectID, api.FinishedTurnOf(t)} },
	}
	if settings.Turns != "all" {
		hook.States = []continuo.TurnState{continuo.TurnState(settings.Turns)}
	}
	_ = w.engine.RunExclusive(ctx, ledger.WebhookPosition(name), nil, func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := w.engine.Ledger.Send(ctx, hook); err != nil && ctx.Err() == nil {
				logger.ErrorContext(ctx, "webhook_stopped", "webhook", name, "error", err.Error())
			}
			select {
			case <-ctx.Done():
			case <-time.After(webhookRetry):
			}
		}
		return ctx.Err()
	})
}
