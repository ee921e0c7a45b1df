package index

import (
	"context"
	"errors"
	"fmt"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// Candidate is an entry that may match a query, or the title of a conversation.
type Candidate struct {
	// Place is where it was found; Order is 0 where the log was read. Seq 0 is a title.
	Place        continuo.Place
	Conversation continuo.Conversation // that is searched, or of a project, that it was found in
	Entry        continuo.Entry        // zero for a title
}

// Texts are what to match with the query.
func (c *Candidate) Texts() []string {
	if c.Place.Seq == 0 {
		return []string{c.Conversation.Title}
	}
	return textsOf(&c.Entry)
}

// placesAtOnce is how many places are asked for at once.
const placesAtOnce = 100

// Candidates yields the entries from to to of a conversation that may match, the newest first, through a fork's
// lineage: those that the index finds, and all of those that it does not have. It reads no other entries.
func Candidates(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, query fulltext.Query, from, to int64) iter.Seq2[Candidate, error] {
	return inConversation(ctx, log, conversation, query, from, to, continuo.Place{})
}

// inConversation is Candidates after a place.
func inConversation(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, query fulltext.Query, from, to int64, after continuo.Place) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		parts, err := partsOf(ctx, log, conversation, from, to)
		if err != nil {
			yield(Candidate{}, err)
			return
		}
		s := source{ctx: ctx, log: log, conversation: conversation, terms: termsOf(query)}
		for _, p := range parts {
			if after.Seq > 0 && !p.continues(after) && after.Seq <= p.to {
				p.to, p.whole = after.Seq-1, false
			}
			if p.from <= p.to && !s.part(p, after, yield) {
				return
			}
		}
	}
}

// inProject yields candidates of all conversations of a project.
func inProject(ctx context.Context, log *continuo.Log, projectID string, query fulltext.Query, after continuo.Place) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		known := map[string]continuo.Conversation{}
		s := source{ctx: ctx, log: log, terms: termsOf(query)}
		for place, err := range s.places(continuo.PlaceQuery{ProjectID: projectID, Terms: s.terms, Limit: placesAtOnce, Before: after}) {
			if err != nil {
				yield(Candidate{}, err)
				return
			}
			conversation, ok := known[place.ConversationID]
			if !ok {
				conversation, err = log.Conversation(ctx, place.ConversationID)
				if err != nil && !errors.Is(err, continuo.ErrNotFound) {
					yield(Candidate{}, err)
					return
				}
				known[place.ConversationID] = conversation
			}
			if conversation.ProjectID != projectID || !conversation.ArchivedAt.IsZero() {
				continue
			}
			s.conversation = conversation
			if !s.give(place, yield) {
				return
			}
		}
	}
}

// source reads candidates.
type source struct {
	ctx          context.Context
	log          *continuo.Log
	conversation continuo.Conversation
	terms        []continuo.IndexTerm
}

func termsOf(query fulltext.Query) []continuo.IndexTerm {
	var terms []continuo.IndexTerm
	for _, term := range query.Terms() {
		terms = append(terms, continuo.IndexTerm(term))
	}
	return terms
}

// part yields the candidates of a part; false when nobody wants more.
func (s *source) part(p part, after continuo.Place, yield func(Candidate, error) bool) bool {
	if !p.indexed {
		for entry, err := range s.log.Read(s.ctx, s.conversation, continuo.Range{From: p.from, To: p.to, Backward: true}) {
			place := continuo.Place{ConversationID: p.id, Seq: entry.Seq}
			if !yield(Candidate{Place: place, Conversation: s.conversation, Entry: entry}, err) || err != nil {
				return false
			}
		}
		return true
	}
	for place, err := range s.places(p.query(s.terms, after)) {
		switch {
		case err != nil:
			yield(Candidate{}, err)
			return false
		case place.Seq > p.to: // it came after the conversation was looked at
		case !s.give(place, yield):
			return false
		}
	}
	return true
}

// places pages through what a query finds.
func (s *source) places(query continuo.PlaceQuery) iter.Seq2[continuo.Place, error] {
	return func(yield func(continuo.Place, error) bool) {
		for {
			page, err := s.log.Index().Places(s.ctx, query)
			if err != nil {
				yield(continuo.Place{}, fmt.Errorf("search: %w", err))
				return
			}
			for _, place := range page {
				if !yield(place, nil) {
					return
				}
				query.Before = place
			}
			if len(page) < query.Limit {
				return
			}
		}
	}
}

// give reads what stands at a place; false when nobody wants more.
func (s *source) give(place continuo.Place, yield func(Candidate, error) bool) bool {
	c := Candidate{Place: place, Conversation: s.conversation}
	if place.Seq == 0 {
		return yield(c, nil)
	}
	for entry, err := range s.log.Read(s.ctx, s.conversation, continuo.Range{From: place.Seq, To: place.Seq}) {
		if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrArchived) {
			return true // it went away after it was found
		}
		c.Entry = entry
		return yield(c, err) && err == nil
	}
	return true
}

// LargeOutputs yields the seqs of entries from to to of which only a preview is searched, the newest first, as far
// as the index has them.
func LargeOutputs(ctx context.Context, log *continuo.Log, conversation continuo.Conversation, from, to int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		parts, err := partsOf(ctx, log, conversation, from, to)
		if err != nil {
			yield(0, err)
			return
		}
		s := source{ctx: ctx, log: log, terms: []continuo.IndexTerm{{Text: largeOutput}}}
		for _, p := range parts {
			if !p.indexed {
				continue
			}
			for place, err := range s.places(p.query(s.terms, continuo.Place{})) {
				if err == nil && place.Seq > p.to {
					continue
				}
				if !yield(place.Seq, err) || err != nil {
					return
				}
			}
		}
	}
}
