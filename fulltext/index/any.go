package index

import (
	"context"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// AnyResult lists, for each of some terms, the newest entries that have it.
type AnyResult struct {
	Lists [][]Hit
	// Unindexed are the ranges of seqs of the conversation that the index does not have, the newest first.
	Unindexed []continuo.Range
}

// Any finds the entries from to to of a conversation that have any of some terms, through a fork's lineage: at most limit
// for each term. Entries that are not indexed are not found; their ranges are in the result.
func (s Searcher) Any(ctx context.Context, conversation continuo.Conversation, terms []Term, from, to int64, limit int) (AnyResult, error) {
	return s.inParts(ctx, conversation, terms, len(terms), from, to, limit, func(ctx context.Context, query HitQuery) ([][]Hit, error) {
		return s.Store.AnyHits(ctx, query)
	})
}

// All finds the entries that have all of some terms, in one list, as Any finds those that have one.
func (s Searcher) All(ctx context.Context, conversation continuo.Conversation, terms []Term, from, to int64, limit int) (AnyResult, error) {
	return s.inParts(ctx, conversation, terms, 1, from, to, limit, func(ctx context.Context, query HitQuery) ([][]Hit, error) {
		hits, err := s.Store.Hits(ctx, query)
		return [][]Hit{hits}, err
	})
}

// inParts joins the lists that a look-up finds in the parts of a conversation.
func (s Searcher) inParts(
	ctx context.Context, conversation continuo.Conversation, terms []Term, lists int, from, to int64, limit int,
	lookUp func(context.Context, HitQuery) ([][]Hit, error),
) (AnyResult, error) {
	result := AnyResult{Lists: make([][]Hit, lists)}
	parts, err := s.parts(ctx, conversation, from, to)
	if err != nil {
		return result, err
	}
	for _, p := range parts {
		if !p.indexed {
			result.Unindexed = append(result.Unindexed, continuo.Range{From: p.from, To: p.to})
			continue
		}
		if len(terms) == 0 {
			continue
		}
		query := p.query(terms, Hit{})
		query.Limit = limit
		found, err := lookUp(ctx, query)
		if err != nil {
			return result, fmt.Errorf("search: %w", err)
		}
		for i, hits := range found {
			result.Lists[i] = slices.Grow(result.Lists[i], min(len(hits), limit-len(result.Lists[i])))
			for _, hit := range hits {
				if hit.Seq >= p.from && hit.Seq <= p.to && len(result.Lists[i]) < limit {
					result.Lists[i] = append(result.Lists[i], hit)
				}
			}
		}
	}
	return result, nil
}

// IsSearchResult reports whether an entry is the result of a search, which repeats other entries.
func IsSearchResult(entry *continuo.Entry) bool {
	return entry.Role == continuo.Tool && IsSearchCall(entry.ToolName)
}
