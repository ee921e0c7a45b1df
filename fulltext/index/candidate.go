package index

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// Candidate is an entry that may match a query, or the title of a conversation.
type Candidate struct {
	// Hit is its position in the index; Order is 0 if it was read from the log. Seq 0 is a title.
	Hit          Hit
	Conversation continuo.Conversation // the searched one, or the one in the project that contains it
	Entry        continuo.Entry        // zero for a title
}

// Texts returns the texts to match with the query.
func (c *Candidate) Texts() []string {
	if c.Hit.Seq == 0 {
		return []string{c.Conversation.Title}
	}
	return textsOf(&c.Entry)
}

// candidatePage is how many places the first query of the index requests. Each further one requests nextCandidatePage: it
// looks the terms up again, and a page of a search reads no more.
const (
	candidatePage     = ranked
	nextCandidatePage = examined
)

// Candidates yields the entries from to to of a conversation that may match, the newest first, through a
// fork's lineage: those that the index finds, and all that are not indexed. It reads no other entries.
func (s Searcher) Candidates(ctx context.Context, conversation continuo.Conversation, query fulltext.Query, from, to int64) iter.Seq2[Candidate, error] {
	return s.inConversation(ctx, conversation, query, from, to, Hit{})
}

// inConversation yields Candidates that follow a place.
func (s Searcher) inConversation(ctx context.Context, conversation continuo.Conversation, query fulltext.Query, from, to int64, after Hit) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		parts, err := s.parts(ctx, conversation, from, to)
		if err != nil {
			yield(Candidate{}, err)
			return
		}
		src := source{Searcher: s, ctx: ctx, conversation: &conversation, terms: query.Terms()}
		for _, p := range parts {
			if after.Seq > 0 && !p.continues(after) && after.Seq <= p.to {
				p.to, p.whole = after.Seq-1, false
			}
			if p.from <= p.to && !src.part(p, after, yield) {
				return
			}
		}
	}
}

// inProject yields candidates of the conversations of a project, or of those that the request narrows them to.
func (s Searcher) inProject(ctx context.Context, r *Request, query fulltext.Query, after Hit) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		src := source{Searcher: s, ctx: ctx, terms: query.Terms()}
		src.owners = Owners{Log: s.Log, Scope: continuo.Scope{ProjectID: r.ProjectID, UserID: r.UserID}, Kinds: r.Kinds}
		all := HitQuery{ProjectID: r.ProjectID, UserID: r.UserID, Labels: r.Labels, Terms: src.terms, Limit: candidatePage, Before: after}
		for hits, err := range src.hits(all, math.MaxInt64) {
			if err != nil {
				yield(Candidate{}, err)
				return
			}
			if !src.yieldEntries(hits, yield) {
				return
			}
		}
	}
}

// source reads candidates.
type source struct {
	Searcher
	ctx   context.Context
	terms []Term
	// conversation is the searched one; nil: the owners of the hits.
	conversation *continuo.Conversation
	owners       Owners
}

// part yields the candidates of a part; false when the consumer has stopped.
func (s *source) part(p part, after Hit, yield func(Candidate, error) bool) bool {
	if !p.indexed {
		for entry, err := range s.Log.Read(s.ctx, *s.conversation, continuo.Range{From: p.from, To: p.to, Backward: true}) {
			hit := Hit{ConversationID: p.id, Seq: entry.Seq}
			if !yield(Candidate{Hit: hit, Conversation: *s.conversation, Entry: entry}, err) || err != nil {
				return false
			}
		}
		return true
	}
	for hits, err := range s.hits(p.query(s.terms, after), p.to) {
		if err != nil {
			yield(Candidate{}, err)
			return false
		}
		if !s.yieldEntries(hits, yield) {
			return false
		}
	}
	return true
}

// readAtOnce is how many entries are read first with one query of the log; the next time twice as many, up to
// maxReadAtOnce: a consumer that stops early has caused few reads in vain.
const (
	readAtOnce    = 16
	maxReadAtOnce = 128
)

// hits pages through the hits of a query, without entries above a seq: they were appended after the conversation was read.
func (s *source) hits(query HitQuery, to int64) iter.Seq2[[]Hit, error] {
	return func(yield func([]Hit, error) bool) {
		atOnce := readAtOnce
		for {
			page, err := s.Store.Hits(s.ctx, query)
			if err != nil {
				yield(nil, fmt.Errorf("search: %w", err))
				return
			}
			full := len(page) == query.Limit
			if full {
				query.Before, query.Limit = page[len(page)-1], nextCandidatePage
			}
			page = slices.DeleteFunc(page, func(hit Hit) bool { return hit.Seq > to })
			for len(page) > 0 {
				n := min(len(page), atOnce)
				if !yield(page[:n], nil) {
					return
				}
				page, atOnce = page[n:], min(2*atOnce, maxReadAtOnce)
			}
			if !full {
				return
			}
		}
	}
}

// yieldEntries reads the entries of hits; false when the consumer has stopped.
func (s *source) yieldEntries(hits []Hit, yield func(Candidate, error) bool) bool {
	searched, places, err := s.places(hits)
	var entries []*continuo.Entry
	if err == nil {
		entries, err = s.Log.EntriesAt(s.ctx, places) // none for a title, whose seq is 0
	}
	if err != nil {
		yield(Candidate{}, err)
		return false
	}
	for i, hit := range searched {
		candidate := Candidate{Hit: hit, Conversation: *places[i].Conversation}
		switch {
		case entries[i] != nil:
			candidate.Entry = *entries[i]
		case hit.Seq > 0:
			continue // it was removed after the search
		}
		if !yield(candidate, nil) {
			return false
		}
	}
	return true
}

// places are the places of the hits whose conversations are searched.
func (s *source) places(hits []Hit) (searched []Hit, places []continuo.Place, err error) {
	var owners map[string]*continuo.Conversation
	if s.conversation == nil {
		ids := make([]string, len(hits))
		for i, hit := range hits {
			ids[i] = hit.ConversationID
		}
		if owners, err = s.owners.Find(s.ctx, ids); err != nil {
			return nil, nil, err
		}
	}
	for _, hit := range hits {
		owner := s.conversation
		if owner == nil {
			owner = owners[hit.ConversationID]
		}
		if owner != nil {
			searched, places = append(searched, hit), append(places, continuo.Place{Conversation: owner, Seq: hit.Seq})
		}
	}
	return searched, places, nil
}

// LargeOutputs yields the seqs of entries from to to of which only a preview is searched, the newest first, as far
// as the index has them.
func (s Searcher) LargeOutputs(ctx context.Context, conversation continuo.Conversation, from, to int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		parts, err := s.parts(ctx, conversation, from, to)
		if err != nil {
			yield(0, err)
			return
		}
		src := source{Searcher: s, ctx: ctx, terms: []Term{{Text: largeOutput}}}
		for _, p := range parts {
			if !p.indexed {
				continue
			}
			for hits, err := range src.hits(p.query(src.terms, Hit{}), p.to) {
				if err != nil {
					yield(0, err)
					return
				}
				for _, hit := range hits {
					if !yield(hit.Seq, nil) {
						return
					}
				}
			}
		}
	}
}
