package lookup

import (
	"context"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/recall"
)

// Reranker orders texts by how well they answer a query. It must be safe for concurrent use, and bound its time.
type Reranker interface {
	// Rerank returns the indexes of all texts, the best first, and how many tokens its server has counted; 0 where it does not say.
	Rerank(ctx context.Context, query string, texts []string) (order []int, tokens int, err error)
	// Model names the model and its provider as prices and usage do.
	Model() (provider, model string)
}

const (
	// MaxReranked bounds the entries that are reranked.
	MaxReranked = 50
	// wordsFirst is how many entries of the words' order come before each one of the reranker: a wrong reranker takes a quarter
	// of the room, and a right one brings what the words rank low.
	wordsFirst     = 3
	maxRerankChars = 2_000 // of a text
)

// Rerank reorders the first items that may be shown, MaxReranked at most, and returns the name of the ranking: recall.Version,
// with the reranker's model, or with the note that it failed. Then, and without a reranker, the order stays.
func (f Finder) Rerank(ctx context.Context, query string, items []Item, may func(*Item) bool) (ranker string) {
	if f.Reranker == nil {
		return recall.Version
	}
	var at []int
	var texts []string
	for i := range items {
		if len(at) < MaxReranked && may(&items[i]) {
			at = append(at, i)
			texts = append(texts, headOf(strings.Join(fulltext.TextsOf(items[i].Entry), "\n")))
		}
	}
	if len(at) < 2 {
		return recall.Version
	}
	_, name := f.Reranker.Model()
	order, _, err := f.Reranker.Rerank(ctx, query, texts)
	if err != nil || !isOrder(order, len(at)) {
		if f.RerankFailed != nil && ctx.Err() == nil {
			f.RerankFailed(ctx, err)
		}
		return recall.Version + ", not reranked: " + name + " failed"
	}
	before := slices.Clone(items)
	for rank, index := range order {
		before[at[index]].Reranked = rank + 1
	}
	for i, index := range fused(order) {
		items[at[i]] = before[at[index]]
	}
	return recall.Version + ", reranked by " + name
}

// isOrder reports whether an order has each of n indexes once.
func isOrder(order []int, n int) bool {
	sorted := slices.Sorted(slices.Values(order))
	for i, index := range sorted {
		if i != index {
			return false
		}
	}
	return len(order) == n
}

// fused merges the order of the words, which is 0, 1, 2, with another one.
func fused(order []int) []int {
	merged := make([]int, 0, len(order))
	taken := make([]bool, len(order))
	words, other := 0, 0
	take := func(index int) bool {
		if taken[index] {
			return false
		}
		taken[index] = true
		merged = append(merged, index)
		return true
	}
	for len(merged) < len(order) {
		for n := 0; n < wordsFirst && words < len(order); words++ {
			if take(words) {
				n++
			}
		}
		for ; other < len(order); other++ {
			if take(order[other]) {
				break
			}
		}
	}
	return merged
}

// headOf is the beginning of a text, of at most maxRerankChars characters.
func headOf(text string) string {
	left := maxRerankChars
	for i := range text {
		if left == 0 {
			return text[:i]
		}
		left--
	}
	return text
}
