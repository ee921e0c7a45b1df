package index

import (
	"context"
	"fmt"

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
	result := AnyResult{Lists: make([][]Hit, len(terms))}
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
		lists, err := s.Store.AnyHits(ctx, query)
		if err != nil {
			return result, fmt.Errorf("search: %w", err)
		}
		for i, hits := range lists {
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
