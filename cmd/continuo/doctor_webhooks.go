package main

import (
	"context"
	"net/url"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/internal/config"
)

const (
	// webhookBehind is how old a turn may be that a webhook has not accepted, without a warning.
	webhookBehind = 10 * time.Minute
	// countedTurns bounds how many turns of the feed doctor reads for a webhook.
	countedTurns = 1000
)

// webhooks says who is sent which turns, and who is behind. It opens the store, if there is one and a webhook.
func (d *diagnosis) webhooks(ctx context.Context, settings *config.Config) {
	names := settings.WebhookNames()
	if len(names) == 0 {
		return
	}
	store, _, err := openExisting(ctx, settings.Store)
	if err == nil {
		defer store.Close()
	}
	for _, name := range names {
		hook := settings.Webhooks[name]
		receiver := hook.URL
		if parsed, err := url.Parse(hook.URL); err == nil { // a path may have a credential
			receiver = parsed.Scheme + "://" + parsed.Host
		}
		if hook.Secret == "" {
			d.add("webhooks", warning, "%s: nothing is sent to %s, because its secret is not set", name, receiver)
			continue
		}
		if store == nil {
			d.add("webhooks", good, "%s: %s to %s", name, hook.Describe(), receiver)
			continue
		}
		d.webhook(ctx, store, hook, receiver)
	}
}

func (d *diagnosis) webhook(ctx context.Context, store continuo.LedgerStore, hook config.WebhookConfig, receiver string) {
	position, err := store.FeedPosition(ctx, ledger.WebhookPosition(hook.Name))
	if err != nil { // no server has begun with it
		d.add("webhooks", good, "%s: %s to %s; nothing was sent yet", hook.Name, hook.Describe(), receiver)
		return
	}
	waiting, err := store.FinishedTurns(ctx, continuo.FeedQuery{After: position, Limit: countedTurns})
	if err != nil {
		d.add("webhooks", warning, "%s: %s to %s; %s", hook.Name, hook.Describe(), receiver, err)
		return
	}
	waiting = slices.DeleteFunc(waiting, func(t continuo.FinishedTurn) bool {
		return len(hook.Projects) > 0 && !slices.Contains(hook.Projects, t.ProjectID) || hook.Turns != "all" && hook.Turns != string(t.State)
	})
	how, behind := good, "all are accepted"
	if len(waiting) > 0 {
		age := time.Since(waiting[0].EndedAt)
		behind = quantity(len(waiting), "turn") + " not accepted yet, the oldest ended " + age.Round(time.Second).String() + " ago"
		if age > webhookBehind {
			how = warning
		}
	}
	d.add("webhooks", how, "%s: %s to %s; %s", hook.Name, hook.Describe(), receiver, behind)
}
