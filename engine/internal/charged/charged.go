// Package charged makes requests to models that belong to no turn, or to its preparation: summaries, extractions, embeddings, rankings. Each is admitted within
// the budgets of its payer (see continuo.WithPayer), and charged to it when it has ended. Turns record theirs in the commit of
// the answer.
package charged

import (
	"context"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// Admit reserves what a request is estimated to use until release is called, once: when what it used is stored. It fails where a
// budget of the payer is used up.
type Admit func(ctx context.Context, payer continuo.Payer, tokens, costNano int64) (release func(), err error)

// Tokens estimates the tokens of texts.
func Tokens(texts ...string) int {
	n := 0
	for _, text := range texts {
		n += len(text)
	}
	return continuo.EstimateUsage(nil, n).OutputTokens
}

// Requests makes requests to models.
type Requests struct {
	Log   *continuo.Log
	Admit Admit
}

// AdmitBody admits a request to a model by the size of its body.
func (r Requests) AdmitBody(ctx context.Context, payer continuo.Payer, info model.Info, body []byte) (release func(), err error) {
	used := r.Log.PriceUsage(info.Provider, info.Name, continuo.EstimateUsage(body, 0))
	return r.Admit(ctx, payer, int64(used.InputTokens), used.Cost.Nano)
}

// Model returns a model whose requests are admitted and charged. A request that is refused fails with the error of Admit.
func (r Requests) Model(inner model.Model) model.Model { return admitted{r.Admitted(inner), r} }

// Admitted returns a model whose requests are charged only, for callers that admit them.
func (r Requests) Admitted(inner model.Model) model.Model { return charged{inner, r.Log} }

type admitted struct {
	model.Model
	requests Requests
}

// Stream is part of model.Model.
func (a admitted) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		payer, _ := continuo.PayerOf(ctx)
		release, err := a.requests.AdmitBody(ctx, payer, a.Info(), body)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		defer release()
		a.Model.Stream(ctx, body)(yield)
	}
}

type charged struct {
	model.Model
	log *continuo.Log
}

// Stream is part of model.Model.
func (c charged) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var used *continuo.Usage
		failed, shown, generated := false, false, 0
		defer func() {
			if (used == nil || *used == continuo.Usage{}) && (generated > 0 || !failed) && c.Info().Protocol != model.ProtocolPrompt {
				estimated := continuo.EstimateUsage(body, generated)
				used = &estimated
			}
			c.charge(ctx, used, failed && !shown)
		}()
		for delta, err := range c.Model.Stream(ctx, body) {
			if delta.Usage != nil {
				used = delta.Usage
			}
			failed, shown = failed || err != nil, shown || delta.Visible() || len(delta.Wire) > 0
			generated += len(delta.Text) + len(delta.Reasoning)
			if delta.ToolCall != nil {
				generated += len(delta.ToolCall.Name) + len(delta.ToolCall.Arguments)
			}
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

// Begin admits a request of so many estimated tokens. End charges it, once: the tokens that its server has counted, or else the estimated
// ones. A request that failed is not charged. Without a payer, nothing is admitted and charged.
func (r Requests) Begin(ctx context.Context, provider, name string, estimated int) (end func(tokens int, failure error), err error) {
	payer, ok := continuo.PayerOf(ctx)
	if !ok {
		return func(int, error) {}, nil
	}
	estimated = max(estimated, 1)
	release, err := r.Admit(ctx, payer, int64(estimated), r.Log.PriceUsage(provider, name, continuo.Usage{InputTokens: estimated}).Cost.Nano)
	if err != nil {
		return nil, err
	}
	return func(tokens int, failure error) {
		defer release()
		if failure != nil {
			return
		}
		if tokens <= 0 {
			tokens = estimated
		}
		used := r.Log.PriceUsage(provider, name, continuo.Usage{InputTokens: tokens})
		one := continuo.NewSpending(time.Now(), provider, name, &used, false)
		one.ProjectID, one.UserID, one.KeyID = payer.ProjectID, payer.UserID, payer.KeyID
		_ = r.Log.Charge(context.WithoutCancel(ctx), one) // a failure does not disturb what the request was for
	}, nil
}
