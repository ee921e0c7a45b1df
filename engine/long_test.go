package engine_test

import (
	"context"
	"fmt"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/store/storetest"
)

// rowCounter counts the entries that are read from a store.
type rowCounter struct {
	maintenance.Store
	rows int
}

func (c *rowCounter) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	found, err := c.Store.Entries(ctx, id, query)
	c.rows += len(found)
	return found, err
}

// What a page needs of a conversation of 100 000 entries is read from few of them: its newest entries, its rounds, its row in
// the list, and what a model would be shown.
func TestLongConversationIsReadInParts(t *testing.T) {
	const length = 100_000
	store := &rowCounter{Store: storetest.NewMemory()}
	log := continuo.NewLog(store, continuo.LogOptions{CacheBytes: -1})
	entries := make([]continuo.Entry, length)
	for i := range entries {
		entries[i] = continuo.Entry{Role: continuo.User, Content: continuo.Text(fmt.Sprintf("message %d", i))}
		if i%2 == 1 {
			entries[i].Role, entries[i].TurnID = continuo.Assistant, "t"
			entries[i].Round = &continuo.Round{View: "chat", Model: "m", Usage: &continuo.Usage{InputTokens: 10}}
		}
	}
	ctx := t.Context()
	conversation, err := log.Import(ctx, continuo.Conversation{ProjectID: continuo.DefaultProject}, entries)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(log, engine.Options{Models: map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, Default: "demo"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name string
		most int
		read func() error
	}{
		{"the newest page", 128, func() error {
			count := 0
			for _, err := range log.Read(ctx, conversation, continuo.Range{Backward: true, Expect: 100}) {
				if count++; err != nil || count == 100 {
					return err
				}
			}
			return nil
		}},
		{"a page in the middle", 128, func() error {
			for _, err := range log.Read(ctx, conversation, continuo.Range{From: length / 2, To: length/2 + 99, Expect: 100}) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"rounds", 256, func() error {
			found, _, err := e.Conversations.Rounds(ctx, conversation, conversations.RoundQuery{Limit: 50})
			if len(found) != 50 {
				t.Errorf("%d rounds", len(found))
			}
			return err
		}},
		{"the row of the list", 8, func() error {
			rows, err := e.Conversations.Rows(ctx, []continuo.Conversation{conversation})
			if err == nil && (rows[0].Usage.Requests != length/2 || rows[0].Last.Seq != length) {
				t.Errorf("the row is %+v", rows[0])
			}
			return err
		}},
		{"the plan", 2000, func() error {
			_, err := e.Contexts.Build(ctx, conversation, engine.ContextRequest{})
			return err
		}},
	} {
		store.rows = 0
		if err := part.read(); err != nil {
			t.Fatalf("%s: %v", part.name, err)
		}
		t.Logf("%s: %d rows", part.name, store.rows)
		if store.rows > part.most {
			t.Errorf("%s: %d rows were read, want at most %d", part.name, store.rows, part.most)
		}
	}
}
