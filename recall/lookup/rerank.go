package lookup

import (
	"context"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/reorder"
)

// Rerank reorders the first items that may be shown, and returns the name of the ranking: recall.Version, with the reranker's
// model, or with the note that it failed. Then, and without a reranker, the order stays.
func (f Finder) Rerank(ctx context.Context, query string, items []Item, may func(*Item) bool) (ranker string) {
	if f.Reranker == nil {
		return recall.Version
	}
	var at []int
	var texts []string
	for i := range items {
		if len(at) < reorder.MaxTexts && may(&items[i]) {
			at = append(at, i)
			texts = append(texts, strings.Join(fulltext.TextsOf(items[i].Entry), "\n"))
		}
	}
	order := f.Reranker.Merge(ctx, query, texts)
	if order.By == "" {
		return recall.Version
	}
	before := slices.Clone(items)
	for i, place := range order.Places {
		before[at[i]].Reranked = place
	}
	for i, index := range order.Merged {
		items[at[i]] = before[at[index]]
	}
	return recall.Version + ", " + order.By
}
