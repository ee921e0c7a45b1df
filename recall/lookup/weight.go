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
	if request.LeastWeight == 0 || len(request.Extra) > 0 || request.Scope != Conversation || f.Store == nil || len(terms) > probedTerms {
		return true, nil
	}
	limit := max(probed, int(request.To/probedShare))
	if limit >= maxHits {
		return true, nil
	}
	if f.isCommon(&request, terms) {
		return false, nil
	}
	any, err := index.Searcher{Log: f.Log, Store: f.Store}.Any(ctx, request.Conversation, terms, 1, request.To, limit)
	if err != nil {
		return false, err
	}
	f.Common.note(&request, terms, any.Lists, limit)
	counts := make([]int, len(terms))
	for i, list := range any.Lists {
		counts[i] = len(list)
	}
	return mostWeight(request.countsOf(counts, any.Unindexed), 2*request.To) >= request.LeastWeight, nil // choose estimates at most so many entries
}

// IsCommon reports whether it is known without a look-up that a text has too little in common with each entry of the
// conversation for a weight: earlier look-ups found its terms in many.
func (f Finder) IsCommon(conversation continuo.Conversation, text string, leastWeight int64) bool {
	var terms []index.Term
	for _, term := range recall.Terms(text) {
		terms = append(terms, term.Index())
	}
	return len(terms) <= probedTerms && f.isCommon(&Request{Conversation: conversation, To: conversation.LastSeq, LeastWeight: leastWeight}, terms)
}

func (f Finder) isCommon(request *Request, terms []index.Term) bool {
	counts := f.Common.known(request, terms)
	return counts != nil && mostWeight(counts, 2*request.To) < request.LeastWeight
}

// isUseful reports whether some entry that may be shown has the least weight.
func (r *Request) isUseful(hits found) bool {
	if r.LeastWeight == 0 || len(r.Extra) > 0 || r.Scope != Conversation || len(hits.terms)-1 > counted {
		return true
	}
	lists, documents := hits.terms[1:], documentsOf(*r, hits.terms[1:])
	if slices.ContainsFunc(hits.unindexed, r.mayAny) && mostWeight(r.countsOf(lengths(lists), hits.unindexed), documents) >= r.LeastWeight {
		return true
	}
	weights := board{}
	for _, list := range lists {
		rarity := recall.Rarity(int64(list.len()), documents)
		for _, seq := range list.own {
			if weights.add(seq, rarity) >= r.LeastWeight && r.May(seq) {
				return true
			}
		}
	}
	return false
}

// countsOf returns how many entries have each term at least. A term that is listed nowhere may be in entries that are not
// indexed.
func (r *Request) countsOf(listed []int, unindexed []continuo.Range) []int {
	if !slices.ContainsFunc(unindexed, r.mayAny) {
		return listed
	}
	counts := slices.Clone(listed)
	for i := range counts {
		counts[i] = max(1, counts[i])
	}
	return counts
}

func lengths(lists []termHits) []int {
	counts := make([]int, len(lists))
	for i := range lists {
		counts[i] = lists[i].len()
	}
	return counts
}

// mostWeight is the most that an entry with all terms can weigh, by how many entries have each one at least: 0 for none.
func mostWeight(counts []int, documents int64) (sum int64) {
	for _, count := range counts {
		if count > 0 {
			sum += recall.Rarity(int64(count), documents)
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
