package index

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// part is a range of a conversation, both ends included, and where to search it.
type part struct {
	id       string // of the conversation that the entries were written to
	from, to int64
	whole    bool // the range covers all of its own entries that the reader sees, up to the newest
	indexed  bool // if false, the log is read
}

// parts returns the parts of a conversation that cover the entries from to to, the newest first. It queries
// the store once or twice for each conversation of the lineage.
func (s Searcher) parts(ctx context.Context, conversation continuo.Conversation, from, to int64) ([]part, error) {
	if !conversation.ArchivedAt.IsZero() {
		return nil, fmt.Errorf("conversation %s: %w", conversation.ID, continuo.ErrArchived)
	}
	segments := append(conversation.Lineage[:len(conversation.Lineage):len(conversation.Lineage)], continuo.Segment{ConversationID: conversation.ID, Through: conversation.LastSeq})
	var parts []part
	for i := len(segments) - 1; i >= 0; i-- {
		first := int64(1)
		if i > 0 {
			first = segments[i-1].Through + 1
		}
		own := i == len(segments)-1
		p := part{id: segments[i].ConversationID, from: max(first, from), to: min(segments[i].Through, to)}
		p.whole = own && from <= first && to >= segments[i].Through
		if p.from > p.to {
			continue
		}
		indexed, err := s.indexedThrough(ctx, p.id, p.to, own)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p.split(indexed)...)
	}
	return parts, nil
}

// indexedThrough returns the seq up to which a conversation is indexed: at most to, less when the index lags,
// 0 when it is gone or archived, or when there is no index. An own conversation is known to be neither.
func (s Searcher) indexedThrough(ctx context.Context, id string, to int64, own bool) (int64, error) {
	if s.Store == nil {
		return 0, nil
	}
	if !own {
		conversation, err := s.Log.Conversation(ctx, id)
		if errors.Is(err, continuo.ErrNotFound) || err == nil && !conversation.ArchivedAt.IsZero() {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
	waiting, err := s.Store.Unindexed(ctx, UnindexedQuery{ConversationID: id, Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("search: %w", err)
	}
	if len(waiting) > 0 {
		to = min(to, waiting[0].Indexed)
	}
	return to, nil
}

// split separates the indexed range from the range that is not, which comes first.
func (p part) split(indexed int64) []part {
	read, found := p, p
	read.from, found.to, found.indexed = max(p.from, indexed+1), min(p.to, indexed), true
	var parts []part
	if read.from <= read.to {
		parts = append(parts, read)
	}
	if found.from <= found.to {
		found.whole = p.whole && len(parts) == 0
		parts = append(parts, found)
	}
	return parts
}

// query returns the query of the part's places that follow a place, the newest first.
func (p part) query(terms []Term, after Hit) HitQuery {
	q := HitQuery{ConversationID: p.id, From: p.from, To: p.to, Terms: terms, Limit: candidatePage, Expect: p.to - p.from + 1}
	if p.whole { // open ranges are cheaper for an index
		q.From, q.To = 1, 0
	}
	if p.continues(after) {
		q.Before = after
	}
	return q
}

// continues reports whether a place is one of the index in this part's conversation, so that the index itself
// can continue after it.
func (p part) continues(after Hit) bool {
	return p.indexed && after.Order != 0 && after.ConversationID == p.id
}
