package main

import (
	"context"
	"time"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model/embedding"
	"github.com/continuo-log/continuo/model/rerank"
)

// recall checks the servers of embeddings and of the reranker, and with online whether they answer. Recall works without them.
func (d *diagnosis) recall(ctx context.Context, settings config.RecallConfig, env []string, online bool) {
	ask := func(name, model, url, variable string, ask func(ctx context.Context, key, note string) error) {
		if url == "" {
			return
		}
		key := envValue(env, variable)
		if variable != "" && key == "" {
			d.add("recall", warning, "%s: %s at %s; the key in %s is not set", name, model, url, variable)
		} else {
			d.add("recall", good, "%s: %s at %s", name, model, url)
		}
		if !online {
			return
		}
		begin := time.Now()
		if err := ask(ctx, key, keyNote(variable, key)); err != nil {
			d.add("online", bad, "%s: %s", name, err)
			return
		}
		d.add("online", good, "%s: %s answers in %s", name, url, time.Since(begin).Round(time.Millisecond))
	}
	e := settings.Embeddings
	ask("recall.embeddings", e.Model, e.BaseURL, e.APIKeyEnv, func(ctx context.Context, key, note string) error {
		made := embedding.New(embedding.Options{BaseURL: e.BaseURL, Model: e.Model, Key: key, KeyNote: note, Dimensions: e.Dimensions, Timeout: askTimeout})
		_, _, err := made.Embed(ctx, []string{"Is anybody there?"})
		return err
	})
	r := settings.Reranker
	ask("recall.reranker", r.Model, r.BaseURL, r.APIKeyEnv, func(ctx context.Context, key, note string) error {
		made := rerank.New(rerank.Options{BaseURL: r.BaseURL, Model: r.Model, Key: key, KeyNote: note, Timeout: askTimeout})
		_, _, err := made.Rerank(ctx, "Is anybody there?", []string{"Somebody is there.", "Tea is green."})
		return err
	})
}
