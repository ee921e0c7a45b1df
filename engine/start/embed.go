package start

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/charged"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/model"
)

// EmbeddingRequest is a client's request for embeddings.
type EmbeddingRequest struct {
	Project  string
	Upstream catalog.Upstream
	// Body is sent as it is, Forwarding is what the client's request adds to it. Its member Other is set.
	Body       []byte
	Forwarding *model.Forwarding
}

// Embed sends a request for embeddings to the upstream of a model, and returns the body of the answer. It counts as a
// turn of the project while it runs; no log has it. An answer that failed is a *model.Error.
func (ts *Turns) Embed(ctx context.Context, request EmbeddingRequest) ([]byte, error) {
	if ts.life.IsClosed() {
		return nil, lifecycle.ErrClosing
	}
	if err := ts.life.Room(ctx, request.Project); err != nil {
		return nil, err
	}
	if err := ts.life.Admit(request.Project); err != nil {
		return nil, err
	}
	defer ts.life.Dismiss(request.Project)
	payer, _ := continuo.PayerOf(ctx)
	payer.ProjectID = request.Project
	release, err := ts.admitRequest(ctx, payer, request.Upstream.Model.Info().Provider, request.Upstream.Model.Info().Name, len(request.Body)/4)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := ts.turnContext(ctx, false)
	defer cancel(nil)
	request.Forwarding.Other = model.Embeddings
	var body []byte
	var usage continuo.Usage
	for delta, err := range charged.Model(ts.log, request.Upstream.Model).Stream(model.WithForwarding(ctx, request.Forwarding), request.Body) {
		if err != nil {
			ts.metrics.Embedded(request.Upstream.Model.Info().Provider, false, continuo.Usage{})
			return nil, err
		}
		body = append(body, delta.Wire...)
		if delta.Usage != nil {
			usage = *delta.Usage
		}
	}
	ts.metrics.Embedded(request.Upstream.Model.Info().Provider, true, usage)
	return body, nil
}
