package storetest

import (
	"context"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// Calls is a store that notes what it is asked for, except for what is written beside the work that waits for it: events
// of turns, the index and leases.
type Calls struct {
	maintenance.Store
	mu    sync.Mutex
	calls []string
}

func (c *Calls) note(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
}

// Take returns the calls since the last Take.
func (c *Calls) Take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

func (c *Calls) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	c.note("Conversation")
	return c.Store.Conversation(ctx, id)
}

func (c *Calls) ConversationsByID(ctx context.Context, ids []string) ([]continuo.Conversation, error) {
	c.note("ConversationsByID")
	return c.Store.ConversationsByID(ctx, ids)
}

func (c *Calls) ConversationByKey(ctx context.Context, projectID, key string) (continuo.Conversation, error) {
	c.note("ConversationByKey")
	return c.Store.ConversationByKey(ctx, projectID, key)
}

func (c *Calls) Revision(ctx context.Context, id string) (int64, error) {
	c.note("Revision")
	return c.Store.Revision(ctx, id)
}

func (c *Calls) Update(ctx context.Context, id string, change continuo.ConversationChange) (continuo.Conversation, error) {
	c.note("Update")
	return c.Store.Update(ctx, id, change)
}

func (c *Calls) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	c.note("Entries")
	return c.Store.Entries(ctx, id, query)
}

func (c *Calls) EntriesAt(ctx context.Context, places []continuo.EntryPlace, maxBytes int64) ([]continuo.Entry, error) {
	c.note("EntriesAt")
	return c.Store.EntriesAt(ctx, places, maxBytes)
}

func (c *Calls) Append(ctx context.Context, batch continuo.Batch) error {
	c.note("Append")
	return c.Store.Append(ctx, batch)
}

func (c *Calls) Turn(ctx context.Context, conversationID, turnID string) (continuo.Turn, error) {
	c.note("Turn")
	return c.Store.Turn(ctx, conversationID, turnID)
}

func (c *Calls) Turns(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	c.note("Turns")
	return c.Store.Turns(ctx, query)
}

func (c *Calls) PutBlob(ctx context.Context, hash string, data []byte) error {
	c.note("PutBlob")
	return c.Store.PutBlob(ctx, hash, data)
}

func (c *Calls) Blob(ctx context.Context, hash string) ([]byte, error) {
	c.note("Blob")
	return c.Store.Blob(ctx, hash)
}

func (c *Calls) Create(ctx context.Context, conversation continuo.Conversation, entries []continuo.Entry) error {
	c.note("Create")
	return c.Store.Create(ctx, conversation, entries)
}

func (c *Calls) Prefixes(ctx context.Context, query continuo.PrefixQuery) ([]continuo.Prefix, []continuo.Conversation, error) {
	c.note("Prefixes")
	return c.Store.Prefixes(ctx, query)
}
