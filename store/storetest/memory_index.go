package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

// memoryIndex is the index of a conversation.
type memoryIndex struct {
	indexed   int64
	title     *string // that the index has
	documents map[int64]memoryDocument
	embedded  int64
	model     string // that made the vectors
	vectors   map[int64][]byte
}

// memoryDocument has the time at which it was added as its order, or the next free one.
type memoryDocument struct {
	order int64
	terms []string
}

// forget empties the index.
func (c *memoryConversation) forget() {
	c.memoryIndex = memoryIndex{indexed: c.ForkSeq, documents: map[int64]memoryDocument{}, vectors: map[int64][]byte{}}
}

func (m *memory) Unindexed(ctx context.Context, query index.UnindexedQuery) ([]index.Unindexed, error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list what is not indexed: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var found []index.Unindexed
	for _, c := range m.conversations {
		if c.deleted || !c.ArchivedAt.IsZero() || query.ConversationID != "" && c.ID != query.ConversationID || query.ProjectID != "" && c.ProjectID != query.ProjectID {
			continue
		}
		title := c.title != nil && *c.title == c.Title
		if (c.indexed < c.LastSeq || !title) && len(found) < query.Limit {
			found = append(found, index.Unindexed{Conversation: c.Conversation, Indexed: c.indexed, Title: title})
		}
	}
	return found, nil
}

func (m *memory) Index(ctx context.Context, batch index.Batch) error {
	if err := checkMemoryBatch(batch); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c, err := m.live(batch.ConversationID)
	switch {
	case err != nil:
		return err
	case !c.ArchivedAt.IsZero():
		return continuo.ErrArchived
	case c.indexed != batch.After:
		return &continuo.ConflictError{Want: batch.After + 1, Have: c.indexed + 1}
	case batch.Through > c.LastSeq:
		return fmt.Errorf("index conversation %s: %w: it ends at seq %d, before %d", c.ID, continuo.ErrInvalid, c.LastSeq, batch.Through)
	}
	c.indexed = batch.Through
	if batch.Title != nil {
		title := *batch.Title
		c.title = &title
		delete(c.documents, 0)
	}
	for _, d := range batch.Documents {
		if !c.isRedacted(d.Seq) {
			c.documents[d.Seq] = memoryDocument{m.orderFrom(d.Added), slices.Clone(d.Terms)}
		}
	}
	return nil
}

// orderFrom returns the next free order.
func (m *memoryData) orderFrom(added int64) int64 {
	order := max(added, m.nextOrder[added])
	for m.orders[order] {
		order++
	}
	m.orders[order], m.nextOrder[added] = true, order+1
	return order
}

func (c *memoryConversation) isRedacted(seq int64) bool {
	return slices.ContainsFunc(c.entries, func(e memoryEntry) bool { return e.seq == seq && e.redacted })
}

func checkMemoryBatch(batch index.Batch) error {
	wrong := func(what string, args ...any) error {
		return fmt.Errorf("index conversation %s: %w: %s", batch.ConversationID, continuo.ErrInvalid, fmt.Sprintf(what, args...))
	}
	if batch.Through < batch.After {
		return wrong("through %d is before after %d", batch.Through, batch.After)
	}
	if batch.Title != nil {
		if err := checkMemoryTexts("index conversation "+batch.ConversationID, *batch.Title); err != nil {
			return err
		}
	}
	seen := map[int64]bool{}
	for _, d := range batch.Documents {
		isTitle := d.Seq == 0 && batch.Title != nil
		if seen[d.Seq] || !isTitle && (d.Seq <= batch.After || d.Seq > batch.Through) {
			return wrong("a document with seq %d in a batch after %d through %d", d.Seq, batch.After, batch.Through)
		}
		seen[d.Seq] = true
		for _, term := range d.Terms {
			if !isTerm(term) {
				return wrong("%q is no term: it has to be small letters, digits and marks", term)
			}
		}
	}
	return nil
}

// isTerm checks terms by their ASCII part: other characters cannot harm an index.
func isTerm(term string) bool {
	wrong := func(r rune) bool { return r < 0x80 && !('a' <= r && r <= 'z' || '0' <= r && r <= '9') }
	return term != "" && len(term) <= 256 && checkMemoryTexts("", term) == nil && !strings.ContainsFunc(term, wrong)
}

func (m *memory) Hits(ctx context.Context, query index.HitQuery) ([]index.Hit, error) {
	if err := checkMemoryPlaces(query); err != nil {
		return nil, err
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	type hitDocument struct {
		memoryDocument
		index.Hit
	}
	var found []hitDocument
	for _, c := range m.conversations {
		if c.ProjectID != query.ProjectID && query.ConversationID == "" || query.ConversationID != "" && c.ID != query.ConversationID {
			continue
		}
		if !c.isOne(query.UserID, query.Labels) {
			continue
		}
		for seq, d := range c.documents {
			if (query.From == 0 || seq >= query.From) && (query.To == 0 || seq <= query.To) && d.has(query.Terms) {
				found = append(found, hitDocument{d, index.Hit{ConversationID: c.ID, Seq: seq, Order: d.order}})
			}
		}
	}
	slices.SortFunc(found, func(a, b hitDocument) int { return cmp.Compare(b.Order, a.Order) })
	var searchHits []index.Hit
	for _, p := range found {
		if after := query.Before == (index.Hit{}) || p.Order < query.Before.Order; after && len(searchHits) < query.Limit {
			searchHits = append(searchHits, p.Hit)
		}
	}
	return searchHits, nil
}

func (m *memory) AnyHits(ctx context.Context, query index.HitQuery) ([][]index.Hit, error) {
	found := make([][]index.Hit, len(query.Terms))
	for i, term := range query.Terms {
		one := query
		one.Terms, one.Before = []index.Term{term}, index.Hit{}
		hits, err := m.Hits(ctx, one)
		if err != nil {
			return nil, err
		}
		found[i] = hits
	}
	if len(query.Terms) == 0 {
		return nil, checkMemoryPlaces(query)
	}
	return found, nil
}

func (m *memory) Documents(ctx context.Context, conversationID string, from, to int64) (found []index.Document, err error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for _, c := range m.conversations {
		for seq, d := range c.documents {
			if c.ID == conversationID && seq >= max(from, 1) && seq <= to {
				found = append(found, index.Document{Seq: seq, Added: d.order, Terms: slices.Clone(d.terms)})
			}
		}
	}
	slices.SortFunc(found, func(a, b index.Document) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, nil
}

func checkMemoryPlaces(query index.HitQuery) error {
	if query.Limit < 1 || len(query.Terms) == 0 {
		return fmt.Errorf("find places: %w: %d terms and a limit of %d; both must be at least 1", continuo.ErrInvalid, len(query.Terms), query.Limit)
	}
	for _, term := range query.Terms {
		if !isTerm(term.Text) || term.Or != "" && !isTerm(term.Or) {
			return fmt.Errorf("find places: %w: %q is no term: it has to be small letters, digits and marks", continuo.ErrInvalid, term.Text)
		}
	}
	return nil
}

func (d *memoryDocument) has(terms []index.Term) bool {
	for _, want := range terms {
		fits := func(term string) bool {
			return term == want.Text || term == want.Or || want.Prefix && strings.HasPrefix(term, want.Text)
		}
		if !slices.ContainsFunc(d.terms, fits) {
			return false
		}
	}
	return true
}

func (m *memory) ForgetIndex(ctx context.Context, conversationID string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c, err := m.live(conversationID)
	if err != nil {
		return err
	}
	c.forget()
	return nil
}
