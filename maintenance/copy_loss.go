package maintenance

import (
	"context"
	"sync/atomic"
)

// Losses is what a copy would remove from its destination.
type Losses struct {
	Unknown int64 `json:"unknown"` // conversations that the source does not have: they would be removed
	Newer   int64 `json:"newer"`   // conversations that were continued at the destination: the source's would replace them
	// Example is the id of one of them.
	Example string `json:"example,omitempty"`
}

// Any reports whether there is anything to lose.
func (l Losses) Any() bool { return l.Unknown+l.Newer > 0 }

// Losses looks for what Copy would remove from the destination or replace there, and changes nothing. An empty
// destination has no losses, and neither has one with an earlier copy of a source from which nothing was deleted since.
// It compares whether a conversation exists, its length and the time of its last change; it does not notice that a
// conversation was archived at the destination.
func (c *Copier) Losses(ctx context.Context) (Losses, error) {
	var ids []string
	for id, err := range conversationIDs(ctx, c.To) {
		if err != nil {
			return Losses{}, err
		}
		ids = append(ids, id)
	}
	var unknown, newer atomic.Int64
	var example atomic.Pointer[string]
	p := &pass{Copier: c}
	err := p.each(ctx, ids, func(ctx context.Context, id string) error {
		there, err := head(ctx, c.To, id) // first: the source may change in the meantime
		if err != nil || there == nil {
			return err
		}
		here, err := head(ctx, c.From, id)
		switch {
		case err != nil:
			return err
		case here == nil:
			unknown.Add(1)
		case there.LastSeq > here.LastSeq || there.UpdatedAt.After(here.UpdatedAt):
			newer.Add(1)
		default:
			return nil
		}
		example.CompareAndSwap(nil, &id)
		return nil
	})
	found := Losses{Unknown: unknown.Load(), Newer: newer.Load()}
	if id := example.Load(); id != nil {
		found.Example = *id
	}
	return found, err
}

// head reads a conversation's own record, nil if there is none or it is a deleted one that is kept for its forks.
func head(ctx context.Context, store RecordStore, id string) (*ConversationRecord, error) {
	first, err := store.Records(ctx, id, RecordPosition{}, 1)
	if err != nil || len(first) == 0 || first[0].Conversation == nil || first[0].Conversation.Deleted {
		return nil, err
	}
	return first[0].Conversation, nil
}
