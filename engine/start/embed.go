package start

import (
	"context"

	"github.com/continuo-log/continuo/model"
)

// Embed sends a request for embeddings to the upstream of a model, and returns the body of the answer. It sets Other of the
// request's Forwarding. It counts as a turn of the project while it runs; no log has it. An answer that failed is a
// *model.Error.
func (ts *Turns) Embed(ctx context.Context, request PassRequest) ([]byte, error) {
	request.Forwarding.Other = model.Embeddings
	deltas, end, err := ts.unrecorded(ctx, request)
	if err != nil {
		return nil, err
	}
	defer end()
	var body []byte
	for delta, err := range deltas {
		if err != nil {
			ts.metrics.Embedded(request.Upstream.Model.Info().Provider, false)
			return nil, err
		}
		body = append(body, delta.Wire...)
	}
	ts.metrics.Embedded(request.Upstream.Model.Info().Provider, true)
	return body, nil
}
