// Package charged records what requests to models use that belong to no turn: summaries, extractions, embeddings. Turns
// record theirs in the commit of the answer.
package charged

import (
	"context"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// Model returns a model whose requests are charged to the payer of their context; see continuo.WithPayer.
func Model(log *continuo.Log, inner model.Model) model.Model { return charged{inner, log} }

type charged struct {
	model.Model
	log *continuo.Log
}

// Stream is part of model.Model.
func (c charged) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var used *continuo.Usage
		failed, shown := false, false
		defer func() { c.charge(ctx, used, failed && !shown) }()
		for delta, err := range c.Model.Stream(ctx, body) {
			if delta.Usage != nil {
				used = delta.Usage
			}
			failed, shown = failed || err != nil, shown || delta.Text != "" || len(delta.Wire) > 0
			if !yield(delta, err) {
				return
			}
		}
	}
}

// charge records a request. A failure does not disturb what the request was for.
func (c charged) charge(ctx context.Context, used *continuo.Usage, free bool) {
	payer, ok := continuo.PayerOf(ctx)
	if !ok {
		return
	}
	info := c.Info()
	if used != nil {
		priced := c.log.PriceUsage(info.Provider, info.Name, *used)
		used = &priced
	}
	one := continuo.NewSpending(time.Now(), info.Provider, info.Name, used, free)
	one.ProjectID, one.UserID, one.KeyID = payer.ProjectID, payer.UserID, payer.KeyID
	_ = c.log.Charge(context.WithoutCancel(ctx), one)
}
