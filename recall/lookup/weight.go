package lookup

import (
	"context"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall"
)

// Of messages with at most probedTerms terms, this many hits of each are read before the others: probed, or one for
// probedShare entries. A single term with more hits weighs less than turns require.
const (
	probed      = 64
	probedShare = 64
	probedTerms = 2
)

// isProbable reports whether some entry may have the least weight, by the first hits of each term: short messages, such as a
// "go on", have too little in common with anything.
func (f Finder) isProbable(ctx context.Context, request Request, terms []index.Term) (bool, error) {
	if request.LeastWeight == 0 || request.Scope != Conversation || f.Store == nil || len(terms) > probedTerms {
		return true, nil
	}
	limit := max(probed, int(request.To/probedShare))
	if limit >= maxHits {
		return true, nil
	}
	found, err := index.Searcher{Log: f.Log, Store: f.Store}.Any(ctx, request.Conversation, terms, 1, request.To, limit)
	return err == nil && request.mostWeight(found.Lists, found.Unindexed, 2*request.To) >= request.LeastWeight, err
}

// isUseful reports whether some entry that may be shown has the least weight.
func (r *Request) isUseful(hits index.AnyResult) bool {
	if r.LeastWeight == 0 || r.Scope != Conversation || len(hits.Lists)-1 > counted {
		return true
	}
	lists, documents := hits.Lists[1:], documentsOf(*r, hits.Lists[1:])
	if slices.ContainsFunc(hits.Unindexed, r.mayAny) && r.mostWeight(lists, hits.Unindexed, documents) >= r.LeastWeight {
		return true
	}
	weights := map[int64]int64{}
	for _, list := range lists {
		rarity := recall.Rarity(int64(len(list)), documents)
		for _, hit := range list {
			if weights[hit.Seq] += rarity; weights[hit.Seq] >= r.LeastWeight && r.May(hit.Seq) {
				return true
			}
		}
	}
	return false
}

// mostWeight is the weight of an entry with all terms, of which at least the listed entries have each one. A term that is
// listed nowhere may be in entries that are not indexed.
func (r *Request) mostWeight(lists [][]index.Hit, unindexed []continuo.Range, documents int64) (sum int64) {
	mayBeNew := slices.ContainsFunc(unindexed, r.mayAny)
	for _, list := range lists {
		if len(list) > 0 || mayBeNew {
			sum += recall.Rarity(int64(max(1, len(list))), documents)
		}
	}
	return sum
}

// mayAny reports whether an entry of a range may be shown.
func (r *Request) mayAny(entries continuo.Range) bool {
	for seq := entries.From; seq <= entries.To; seq++ {
		if r.May(seq) {
			return true
		}
	}
	return false
}
