package index

import (
	"context"
	"errors"
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

// candidatePage is how many places the first query of the index requests. Each further one requests twice as many as the
// one before, up to maxCandidatePage: a query for the next page looks up its terms again.
const (
	candidatePage    = ranked
	maxCandidatePage = 4 * candidatePage
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
		src := source{Searcher: s, ctx: ctx, conversation: conversation, terms: query.Terms()}
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
		known := map[string]continuo.Conversation{}
		src := source{Searcher: s, ctx: ctx, terms: query.Terms()}
		scope := continuo.Scope{ProjectID: r.ProjectID, UserID: r.UserID}
		all := HitQuery{ProjectID: r.ProjectID, UserID: r.UserID, Labels: r.Labels, Terms: src.terms, Limit: candidatePage, Before: after}
		for run, err := range src.runs(all, math.MaxInt64) {
			if err != nil {
				yield(Candidate{}, err)
				return
			}
			id := run[0].ConversationID
			conversation, ok := known[id]
			if !ok {
				conversation, err = s.Log.Conversation(ctx, id)
				if err != nil && !errors.Is(err, continuo.ErrNotFound) {
					yield(Candidate{}, err)
					return
				}
				known[id] = conversation
			}
			if !scope.Has(conversation) || !conversation.ArchivedAt.IsZero() {
				continue
			}
			src.conversation = conversation
			if !src.yieldRun(run, yield) {
				return
			}
		}
	}
}

// source reads candidates.
type source struct {
	Searcher
	ctx          context.Context
	conversation continuo.Conversation
	terms        []Term
}

// part yields the candidates of a part; false when the consumer has stopped.
func (s *source) part(p part, after Hit, yield func(Candidate, error) bool) bool {
	if !p.indexed {
		for entry, err := range s.Log.Read(s.ctx, s.conversation, continuo.Range{From: p.from, To: p.to, Backward: true}) {
			hit := Hit{ConversationID: p.id, Seq: entry.Seq}
			if !yield(Candidate{Hit: hit, Conversation: s.conversation, Entry: entry}, err) || err != nil {
				return false
			}
		}
		return true
	}
	for run, err := range s.runs(p.query(s.terms, after), p.to) {
		if err != nil {
			yield(Candidate{}, err)
			return false
		}
		if !s.yieldRun(run, yield) {
			return false
		}
	}
	return true
}

// maxRun is how many places are read with one read of the log.
const maxRun = 64

// runs pages through the places of a query, without entries above a seq: they were appended after the
// conversation was read. Adjacent places in one conversation are yielded together.
func (s *source) runs(query HitQuery, to int64) iter.Seq2[[]Hit, error] {
	return func(yield func([]Hit, error) bool) {
		for {
			page, err := s.Store.Hits(s.ctx, query)
			if err != nil {
				yield(nil, fmt.Errorf("search: %w", err))
				return
			}
			full := len(page) == query.Limit
			if full {
				query.Before, query.Limit = page[len(page)-1], min(2*query.Limit, maxCandidatePage)
			}
			page = slices.DeleteFunc(page, func(hit Hit) bool { return hit.Seq > to })
			for first := 0; first < len(page); {
				after := first + 1
				for after < len(page) && after-first < maxRun && joins(page[first:after], page[after]) {
					after++
				}
				if !yield(page[first:after], nil) {
					return
				}
				first = after
			}
			if !full {
				return
			}
		}
	}
}

// joins reports whether a place continues a run: at most as many other entries as wanted ones are in between.
func joins(run []Hit, hit Hit) bool {
	last := run[len(run)-1]
	return hit.ConversationID == last.ConversationID && hit.Seq > 0 && hit.Seq < last.Seq && run[0].Seq-hit.Seq <= 2*int64(len(run))
}

// yieldRun reads the entries of a run; false when the consumer has stopped.
func (s *source) yieldRun(run []Hit, yield func(Candidate, error) bool) bool {
	if run[0].Seq == 0 {
		return yield(Candidate{Hit: run[0], Conversation: s.conversation}, nil)
	}
	stretch := continuo.Range{From: run[len(run)-1].Seq, To: run[0].Seq, Backward: true}
	stretch.Expect = int(stretch.To - stretch.From + 1)
	for entry, err := range s.Log.Read(s.ctx, s.conversation, stretch) {
		switch {
		case errors.Is(err, continuo.ErrNotFound), errors.Is(err, continuo.ErrArchived):
			return true // the conversation was removed after the search
		case err != nil:
			yield(Candidate{}, err)
			return false
		}
		for len(run) > 0 && run[0].Seq > entry.Seq {
			run = run[1:]
		}
		if len(run) == 0 {
			return true
		}
		if run[0].Seq == entry.Seq && !yield(Candidate{Hit: run[0], Conversation: s.conversation, Entry: entry}, nil) {
			return false
		}
	}
	return true
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
			for run, err := range src.runs(p.query(src.terms, Hit{}), p.to) {
				if err != nil {
					yield(0, err)
					return
				}
				for _, hit := range run {
					if !yield(hit.Seq, nil) {
						return
					}
				}
			}
		}
	}
}
