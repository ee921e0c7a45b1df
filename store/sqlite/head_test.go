package sqlite

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

// TestRowsThatAppendsLeaveAsTheyAre appends to conversations whose rows are then out of date, at times that go on
// within a second, to the next, and back; between them it changes and indexes conversations. Lists are in the exact
// order all the time, and what is not indexed is found.
func TestRowsThatAppendsLeaveAsTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	store := openAt(t, path, Options{})
	defer func() { store.Close() }()
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var all []string
	want := map[string]continuo.Conversation{}
	behind := map[string]bool{}
	for i := range 6 {
		id := fmt.Sprintf("conv_%d", i)
		newConversation(t, store, id, 0)
		c, err := store.Conversation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		all, want[id], behind[id] = append(all, id), c, true
	}
	for step := range 400 {
		now = now.Add(time.Duration(random.IntN(5)-1) * 170 * time.Millisecond)
		id := all[random.IntN(len(all))]
		c := want[id]
		switch random.IntN(8) {
		case 0:
			title := fmt.Sprint("title ", random.IntN(2))
			if _, err := store.Update(t.Context(), id, continuo.ConversationChange{Title: &title, UpdatedAt: now}); err != nil {
				t.Fatal(err)
			}
			behind[id] = behind[id] || title != c.Title
			c.Title, c.UpdatedAt = title, now
		case 1:
			indexAll(t, store, c)
			behind[id] = false
		case 2:
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			store = openAt(t, path, Options{})
		default:
			entries := someEntries(id, c.LastSeq+1, c.LastSeq+1+random.Int64N(2), "text")
			for i := range entries {
				entries[i].CreatedAt = now.Add(time.Duration(i))
			}
			if err := store.Append(t.Context(), continuo.Batch{ConversationID: id, After: c.LastSeq, Entries: entries}); err != nil {
				t.Fatal(err)
			}
			newest := entries[len(entries)-1]
			c.LastSeq, c.UpdatedAt, behind[id] = newest.Seq, newest.CreatedAt, true
		}
		want[id] = c
		checkHeads(t, store, want, behind)
		if t.Failed() {
			t.Fatalf("after step %d", step)
		}
	}
}

func indexAll(t *testing.T, store *Store, c continuo.Conversation) {
	t.Helper()
	found, err := store.Unindexed(t.Context(), index.UnindexedQuery{ConversationID: c.ID, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range found {
		if u.Conversation.LastSeq != c.LastSeq {
			t.Errorf("what is not indexed ends at %d, want %d", u.Conversation.LastSeq, c.LastSeq)
		}
		batch := index.Batch{ConversationID: c.ID, After: u.Indexed, Through: c.LastSeq, Title: &c.Title}
		if err := store.Index(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// checkHeads compares the conversations, their list in pages of two, and the list of what is not indexed.
func checkHeads(t *testing.T, store *Store, want map[string]continuo.Conversation, behind map[string]bool) {
	t.Helper()
	order := []string{}
	for id, c := range want {
		order = append(order, id)
		have, err := store.Conversation(t.Context(), id)
		if err != nil || have.LastSeq != c.LastSeq || !have.UpdatedAt.Equal(c.UpdatedAt) || have.Title != c.Title {
			t.Errorf("conversation %s ends at %d, changed at %s (%v), want %d and %s", id, have.LastSeq, have.UpdatedAt, err, c.LastSeq, c.UpdatedAt)
		}
	}
	slices.SortFunc(order, func(a, b string) int { return cmp.Or(want[b].UpdatedAt.Compare(want[a].UpdatedAt), cmp.Compare(b, a)) })
	var listed []string
	for query := (continuo.ConversationQuery{ProjectID: want[order[0]].ProjectID, Limit: 2}); ; {
		page, err := store.Conversations(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page {
			listed = append(listed, c.ID)
			query.Before = continuo.ConversationCursor{UpdatedAt: c.UpdatedAt, ID: c.ID}
		}
		if len(page) < 2 {
			break
		}
	}
	if !slices.Equal(listed, order) {
		t.Errorf("the list is %v, want %v", listed, order)
	}
	unindexed, err := store.Unindexed(t.Context(), index.UnindexedQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, u := range unindexed {
		have[u.Conversation.ID] = true
	}
	for id := range want {
		if have[id] != behind[id] {
			t.Errorf("conversation %s is in the list of what is not indexed: %t, want %t", id, have[id], behind[id])
		}
	}
}
