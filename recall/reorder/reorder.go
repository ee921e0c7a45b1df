// Package reorder merges the order in which words rank texts with that of a reranker model. The words' order counts most: a wrong
// reranker takes a quarter of the places, and a right one brings what the words rank low. A reranker that fails, or answers what is no
// order, changes nothing.
package reorder

import (
	"context"
	"slices"
)

// Reranker orders texts by how well they answer a query. It must be safe for concurrent use, and bound its time.
type Reranker interface {
	// Rerank returns the indexes of all texts, the best first, and how many tokens its server has counted; 0 where it does not say.
	Rerank(ctx context.Context, query string, texts []string) (order []int, tokens int, err error)
	// Model names the model and its provider as prices and usage do.
	Model() (provider, model string)
}

// Merger reorders texts.
type Merger struct {
	Reranker Reranker
	// Failed is called where the reranker fails; the error is nil where its answer is no order. Default nil.
	Failed func(ctx context.Context, err error)
}

const (
	// MaxTexts bounds the texts that are reordered.
	MaxTexts = 50
	// wordsFirst is how many texts of the words' order come before each one of the reranker.
	wordsFirst = 3
	maxChars   = 2_000 // of a text
)

// Order is what became of an order.
type Order struct {
	// Merged has the index of each text, in the order that counts; nil where the order stays.
	Merged []int
	// Places has the place of each text by the reranker, from 1; nil where the order stays.
	Places []int
	// By says which model reordered, or that it failed; "" where none was asked.
	By string
}

// Merge reorders texts, MaxTexts at most, which are in the order of the words. A nil Merger asks no reranker, nor are fewer than two texts
// reordered.
func (m *Merger) Merge(ctx context.Context, query string, texts []string) Order {
	if m == nil || m.Reranker == nil || len(texts) < 2 {
		return Order{}
	}
	heads := make([]string, len(texts))
	for i, text := range texts {
		heads[i] = head(text)
	}
	_, name := m.Reranker.Model()
	order, _, err := m.Reranker.Rerank(ctx, query, heads)
	if err != nil || !isOrder(order, len(texts)) {
		if m.Failed != nil && ctx.Err() == nil {
			m.Failed(ctx, err)
		}
		return Order{By: "not reranked: " + name + " failed"}
	}
	places := make([]int, len(order))
	for rank, index := range order {
		places[index] = rank + 1
	}
	return Order{merged(order), places, "reranked by " + name}
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

// merged merges the order of the words, which is 0, 1, 2, with another one.
func merged(order []int) []int {
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

// head is the beginning of a text, of at most maxChars characters.
func head(text string) string {
	left := maxChars
	for i := range text {
		if left == 0 {
			return text[:i]
		}
		left--
	}
	return text
}
