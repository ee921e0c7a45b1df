package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
)

// countingStore notes the calls that a message costs.
type countingStore struct {
	continuo.Store
	mu    sync.Mutex
	calls []string
}

func (c *countingStore) note(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
}

func (c *countingStore) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	c.note("Conversation")
	return c.Store.Conversation(ctx, id)
}

func (c *countingStore) ConversationByKey(ctx context.Context, projectID, key string) (continuo.Conversation, error) {
	c.note("ConversationByKey")
	return c.Store.ConversationByKey(ctx, projectID, key)
}

func (c *countingStore) Update(ctx context.Context, id string, change continuo.ConversationChange) (continuo.Conversation, error) {
	c.note("Update")
	return c.Store.Update(ctx, id, change)
}

func (c *countingStore) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	c.note("Entries")
	return c.Store.Entries(ctx, id, query)
}

func (c *countingStore) Append(ctx context.Context, batch continuo.Batch) error {
	c.note("Append")
	return c.Store.Append(ctx, batch)
}

func (c *countingStore) Turn(ctx context.Context, conversationID, turnID string) (continuo.Turn, error) {
	c.note("Turn")
	return c.Store.Turn(ctx, conversationID, turnID)
}

func (c *countingStore) Turns(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	c.note("Turns")
	return c.Store.Turns(ctx, query)
}

func (c *countingStore) PutBlob(ctx context.Context, hash string, data []byte) error {
	c.note("PutBlob")
	return c.Store.PutBlob(ctx, hash, data)
}

// What a message in an existing session costs: the conversation is found by its key and read once behind the turn's lease;
// of entries the newest are read for open calls and for the request; commits are the lease, the input and the answer.
func TestWhatAMessageCosts(t *testing.T) {
	store := &countingStore{Store: storetest.NewMemory()}
	h := houseOver(t, continuo.NewLog(store, continuo.LogOptions{Counter: token.O200k()}))
	close(h.model.open)
	h.finish(h.begin(request("s1", "hi")))
	store.calls = nil
	h.finish(h.begin(request("s1", "again")))
	want := []string{"ConversationByKey", "Append", "Conversation", "Entries", "Append", "Append"}
	if !slices.Equal(store.calls, want) {
		t.Errorf("a message costs %q, want %q", store.calls, want)
	}
}
