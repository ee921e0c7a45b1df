package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

// embeddedBy is how far the vectors of a model are.
func (c *memoryConversation) embeddedBy(model string) int64 {
	if c.model != model {
		return c.ForkSeq
	}
	return c.embedded
}

func (m *memory) Unembedded(ctx context.Context, query index.UnembeddedQuery) ([]index.Unembedded, error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list what has no vectors: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var found []index.Unembedded
	for _, c := range m.conversations {
		if !c.deleted && c.ArchivedAt.IsZero() && c.ID > query.After && c.indexed > c.embeddedBy(query.Model) {
			found = append(found, index.Unembedded{Conversation: c.Conversation, Embedded: c.embeddedBy(query.Model), Indexed: c.indexed})
		}
	}
	slices.SortFunc(found, func(a, b index.Unembedded) int { return cmp.Compare(a.Conversation.ID, b.Conversation.ID) })
	return found[:min(len(found), query.Limit)], nil
}

func (m *memory) Embed(ctx context.Context, batch index.VectorBatch) error {
	if err := batch.Check(); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c, err := m.live(batch.ConversationID)
	if err != nil {
		return err
	}
	if !c.ArchivedAt.IsZero() {
		return continuo.ErrNotFound
	}
	if at := c.embeddedBy(batch.Model); at != batch.After || batch.Through > c.indexed {
		return &continuo.ConflictError{Want: batch.After + 1, Have: at + 1}
	}
	if c.model != batch.Model {
		c.vectors = map[int64][]byte{}
	}
	c.model, c.embedded = batch.Model, batch.Through
	for _, vector := range batch.Vectors {
		if !c.isRedacted(vector.Seq) {
			c.vectors[vector.Seq] = slices.Clone(vector.Values)
		}
	}
	return nil
}

func (m *memory) Vectors(ctx context.Context, query index.VectorQuery) ([]index.Vector, error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list vectors: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	c, err := m.live(query.ConversationID)
	if err != nil || c.model != query.Model {
		return nil, nil
	}
	var found []index.Vector
	for seq, values := range c.vectors {
		if seq >= query.From && seq <= query.To {
			found = append(found, index.Vector{Seq: seq, Values: values})
		}
	}
	slices.SortFunc(found, func(a, b index.Vector) int { return cmp.Compare(b.Seq, a.Seq) })
	return found[:min(len(found), query.Limit)], nil
}
