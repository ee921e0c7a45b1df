package engine

import (
	"context"
	"fmt"

	"github.com/continuo-log/continuo/engine/internal/charged"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/vector"
)

// chargedEmbedder is an embedder whose requests are admitted and charged. A request that is refused fails with vector.ErrLater and the
// reason.
type chargedEmbedder struct {
	vector.Embedder
	requests charged.Requests
}

// Embed is part of vector.Embedder.
func (e chargedEmbedder) Embed(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error) {
	provider, name := e.Model()
	end, err := e.requests.Begin(ctx, provider, name, charged.Tokens(texts...))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", vector.ErrLater, err)
	}
	vectors, tokens, err = e.Embedder.Embed(ctx, texts)
	end(tokens, err)
	return vectors, tokens, err
}

// chargedReranker is a reranker whose requests are admitted and charged. A request that is refused fails with the reason.
type chargedReranker struct {
	reorder.Reranker
	requests charged.Requests
}

// Rerank is part of reorder.Reranker.
func (k chargedReranker) Rerank(ctx context.Context, query string, texts []string) (order []int, tokens int, err error) {
	provider, name := k.Model()
	end, err := k.requests.Begin(ctx, provider, name, len(texts)*charged.Tokens(query)+charged.Tokens(texts...)) // it reads the query with each text
	if err != nil {
		return nil, 0, err
	}
	order, tokens, err = k.Reranker.Rerank(ctx, query, texts)
	end(tokens, err)
	return order, tokens, err
}
