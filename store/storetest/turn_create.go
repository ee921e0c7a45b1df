package storetest

import (
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// createWith makes a batch that creates a conversation with entries, and begins a turn in it.
func createWith(c continuo.Conversation, turnID string, count int64) continuo.Batch {
	batch := beginWith(c.ID, turnID, 0, count, 1)
	batch.Create = &c
	return batch
}

func testBeginCreates(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for count, id := range []string{"empty", "one", "two"} {
		c := conversation(id)
		c.Key, c.UserID, c.Kind, c.Metadata = "key of "+id, "user", continuo.KindSide, []byte(`{"side":"title"}`)
		batch := createWith(c, "t1", int64(count))
		batch.Begin.Mode, batch.Begin.Agent = continuo.ModeAgent, "writer"
		batch.Blobs = []continuo.Blob{{Hash: "hash of " + id, Data: []byte("data of " + id)}, {Hash: "shared", Data: []byte{}}}
		for n := range count {
			batch.Prefixes = append(batch.Prefixes, continuo.Prefix{ConversationID: id, Seq: int64(n + 1), Hash: continuo.PrefixHash{byte(n), byte(count)}})
		}
		noError(t, store.Append(ctx, batch))
		want := c
		want.LastSeq, want.ActiveMode, want.ActiveAgent = int64(count), continuo.ModeAgent, "writer"
		if count > 0 {
			want.UpdatedAt = batch.Entries[count-1].CreatedAt
		}
		for _, s := range []continuo.Store{store, open(t, opener)} {
			found, err := s.ConversationByKey(ctx, c.ProjectID, c.Key)
			noError(t, err)
			same(t, "the conversation", found, want)
			data, err := s.Blob(ctx, "hash of "+id)
			noError(t, err)
			same(t, "its blob", string(data), "data of "+id)
		}
		same(t, "the turn", findTurn(t, store, id, "t1"), batch.Begin.Begun)
		expectEvents(t, "its events", store, batch.Begin.Begun, 1)
		sameEntries(t, "the entries", readAll(t, store, id), entries(id, 1, int64(count)))
		for _, p := range batch.Prefixes {
			found, _, err := store.Prefixes(ctx, continuo.PrefixQuery{ProjectID: c.ProjectID, Hashes: []continuo.PrefixHash{p.Hash}, Limit: 1})
			noError(t, err)
			same(t, "its prefix", found, []continuo.Prefix{p})
		}
		end := updateOf(batch.Begin.Begun, 2)
		end.State = continuo.TurnFinished
		noError(t, store.Append(ctx, continuo.Batch{
			ConversationID: id, After: int64(count), Entries: entries(id, int64(count)+1, int64(count)+1), Turns: []continuo.TurnUpdate{end},
			Blobs: []continuo.Blob{{Hash: "of the answer to " + id, Data: []byte("more")}},
		}))
		_, err := store.Blob(ctx, "of the answer to "+id)
		noError(t, err)
	}
}

func testBeginCreatesRefused(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	taken := conversation("taken")
	taken.Key = "key"
	noError(t, store.Create(ctx, taken, nil))
	sameKey, withoutTurn, withEntries, other, after, fork := conversation("a"), conversation("a"), conversation("a"), conversation("a"), conversation("a"), conversation("a")
	sameKey.Key = taken.Key
	withEntries.LastSeq = 1
	fork.Lineage = []continuo.Segment{{ConversationID: "taken", Through: 0}}
	batches := map[string]continuo.Batch{
		"with a key that is taken":   createWith(sameKey, "t1", 1),
		"with an id that is taken":   createWith(conversation("taken"), "t1", 1),
		"without a turn":             createWith(withoutTurn, "t1", 1),
		"that has entries":           createWith(withEntries, "t1", 1),
		"of another id":              createWith(other, "t1", 1),
		"after other entries":        createWith(after, "t1", 1),
		"that begins with another's": createWith(fork, "t1", 1),
	}
	want := map[string]error{"with a key that is taken": continuo.ErrExists, "with an id that is taken": continuo.ErrExists}
	for what, batch := range batches {
		batch.Blobs = []continuo.Blob{{Hash: "h", Data: []byte("d")}}
		switch what {
		case "without a turn":
			batch.Begin = nil
		case "of another id":
			batch.Create.ID = "b"
		case "after other entries":
			batch.After, batch.Entries = 1, entries("a", 2, 2)
		}
		if want[what] == nil {
			want[what] = continuo.ErrInvalid
		}
		expectError(t, what, store.Append(ctx, batch), want[what])
		expectError(t, what+": the blob", second(store.Blob(ctx, "h")), continuo.ErrNotFound)
		for _, id := range []string{"a", "b"} {
			expectError(t, what+": the conversation", second(store.Conversation(ctx, id)), continuo.ErrNotFound)
		}
		expectError(t, what+": the turn", second(store.Turn(ctx, batch.ConversationID, "t1")), continuo.ErrNotFound)
		sameEntries(t, what+": entries of the other", readAll(t, store, "taken"), nil)
	}
}

// testBeginCreatesOnce has many callers create conversations with one key: one succeeds.
func testBeginCreatesOnce(t *testing.T, opener Opener) {
	store, beside := open(t, opener), open(t, opener)
	for round := range 4 {
		var created, other sync.Map
		var callers sync.WaitGroup
		for i := range 8 {
			c := conversation("c" + string(rune('a'+round)) + string(rune('a'+i)))
			c.Key = "key" + string(rune('a'+round))
			s := []continuo.Store{store, beside}[i%2]
			callers.Go(func() {
				if err := s.Append(t.Context(), createWith(c, "t1", 1)); err == nil {
					created.Store(c.ID, true)
				} else {
					other.Store(c.ID, err)
				}
			})
		}
		callers.Wait()
		count := 0
		created.Range(func(any, any) bool { count++; return true })
		same(t, "conversations that were created", count, 1)
		other.Range(func(id, err any) bool {
			expectError(t, id.(string), err.(error), continuo.ErrExists)
			return true
		})
	}
}

func testUpdateWithBlobs(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 1)
	turn := begin(t, store, "a", "t1")
	blobs := func(hash string) []continuo.Blob { return []continuo.Blob{{Hash: hash, Data: []byte("data")}} }
	withEvents, alone, switching := updateOf(turn, 1), updateOf(turn), updateOf(turn, 2)
	withEvents.Blobs, alone.Blobs, switching.Blobs, switching.Mode = blobs("h1"), blobs("h2"), blobs("h3"), continuo.ModeAgent
	updateTurn(t, store, withEvents)
	updateTurn(t, store, alone)
	updateTurn(t, store, switching)
	for _, hash := range []string{"h1", "h2", "h3"} {
		data, err := store.Blob(ctx, hash)
		noError(t, err)
		same(t, hash, string(data), "data")
	}
	lost := updateOf(turn, 3)
	lost.Fence, lost.Blobs, lost.Lease = turn.Fence+1, blobs("h4"), time.Hour
	expectError(t, "without the lease", second(store.UpdateTurn(ctx, lost)), continuo.ErrLeaseLost)
	expectError(t, "its blob", second(store.Blob(ctx, "h4")), continuo.ErrNotFound)
}
