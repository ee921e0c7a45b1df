package vector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

// Finder finds entries by their vectors.
type Finder struct {
	Store    index.VectorStore
	Embedder Embedder
	// Timeout bounds how long the vector of a query may take. Default 1 s.
	Timeout time.Duration
	// Failed is called with the error of a search that goes on without vectors. Default nil.
	Failed func(ctx context.Context, err error)
}

// The bounds of one search.
const (
	maxCompared = 20_000 // vectors, the newest of each conversation first
	page        = 1_000
	maxNear     = 100 // entries that are found
	nearFrom    = 5 * one / 2
	most        = 4 * one // above nearFrom
	leastMany   = 16      // vectors, for a mean to mean something
)

// Place is the position of an entry.
type Place struct {
	ConversationID string // that it was written to
	Seq            int64
}

// Near says how near entries are to a query: by how many standard deviations, above nearFrom, in units of 1/65536.
type Near map[Place]int64

// compared is a place with its similarity.
type compared struct {
	Place
	similarity int64
}

// Find is Near for searches that go on without vectors when that fails. A nil Finder finds nothing.
func (f *Finder) Find(ctx context.Context, text string, conversations []continuo.Conversation) Near {
	if f == nil || f.Embedder == nil || f.Store == nil {
		return nil
	}
	near, err := f.Near(ctx, text, conversations)
	if err != nil && ctx.Err() == nil && f.Failed != nil {
		f.Failed(ctx, err)
	}
	return near
}

// Of says how near an entry of a conversation is, which may be one that the conversation began with.
func (n Near) Of(conversation *continuo.Conversation, seq int64) int64 {
	return n[PlaceOf(conversation, seq)]
}

// PlaceOf is where an entry of a conversation was written to.
func PlaceOf(conversation *continuo.Conversation, seq int64) Place {
	for _, segment := range conversation.Lineage {
		if seq <= segment.Through {
			return Place{segment.ConversationID, seq}
		}
	}
	return Place{conversation.ID, seq}
}

// Near finds the entries of some conversations that are nearest to a text: of each its own entries up to its LastSeq, and
// those that it began with.
func (f *Finder) Near(ctx context.Context, text string, conversations []continuo.Conversation) (Near, error) {
	limit, cancel := context.WithTimeout(ctx, cmp.Or(f.Timeout, time.Second))
	defer cancel()
	made, _, err := f.Embedder.Embed(limit, []string{head(text)})
	if err != nil {
		return nil, fmt.Errorf("embed a query: %w", err)
	}
	query := quantize(made[0])
	if query == nil {
		return nil, nil
	}
	var all []compared
	read := map[string]int64{} // up to which seq
	for i := range conversations {
		c := &conversations[i]
		own := continuo.Segment{ConversationID: c.ID, Through: c.LastSeq}
		for _, segment := range append(slices.Clone(c.Lineage), own) {
			if all, err = f.compare(ctx, query, segment, read, all); err != nil {
				return nil, err
			}
		}
	}
	return nearest(all), nil
}

// compare compares the entries of a segment that were not compared yet.
func (f *Finder) compare(ctx context.Context, query []byte, segment continuo.Segment, read map[string]int64, all []compared) ([]compared, error) {
	norm, to := normOf(query), segment.Through
	from := read[segment.ConversationID] + 1
	read[segment.ConversationID] = max(to, from-1)
	for len(all) < maxCompared && to >= from {
		vectors, err := f.Store.Vectors(ctx, index.VectorQuery{ConversationID: segment.ConversationID, Model: f.Embedder.Name(), From: from, To: to, Limit: page})
		if err != nil {
			return nil, err
		}
		for _, v := range vectors {
			all = append(all, compared{Place{segment.ConversationID, v.Seq}, similarity(query, v.Values, norm)})
		}
		if len(vectors) < page {
			break
		}
		to = vectors[len(vectors)-1].Seq - 1
	}
	return all, nil
}

// nearest returns those that are far nearer than the others.
func nearest(all []compared) Near {
	if len(all) < leastMany {
		return nil
	}
	var sum, squares int64
	for _, c := range all {
		sum += c.similarity
	}
	mean := sum / int64(len(all))
	for _, c := range all {
		squares += (c.similarity - mean) * (c.similarity - mean) / int64(len(all))
	}
	deviation := root(uint64(squares))
	if deviation == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b compared) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(a.ConversationID, b.ConversationID), cmp.Compare(b.Seq, a.Seq))
	})
	near := Near{}
	for _, c := range all[:min(len(all), maxNear)] {
		if above := (c.similarity-mean)*one/deviation - nearFrom; above > 0 {
			near[c.Place] = min(above, most)
		}
	}
	return near
}
