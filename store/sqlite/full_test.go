package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// fill appends to a conversation until the disk is full, and returns the last seq that was acknowledged.
func fill(t *testing.T, store *Store, id string, last int64) int64 {
	t.Helper()
	for ; last < 10_000; last++ {
		err := store.Append(t.Context(), continuo.Batch{ConversationID: id, After: last, Entries: someEntries(id, last+1, last+1, strings.Repeat("x", 3000))})
		if errors.Is(err, continuo.ErrFull) {
			return last
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the disk does not get full")
	return 0
}

// expectLast checks that a conversation has all entries up to last and no more.
func expectLast(t *testing.T, store *Store, id string, last int64) {
	t.Helper()
	c, err := store.Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := store.Entries(t.Context(), id, continuo.EntryQuery{From: 1, To: 1 << 40, Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if c.LastSeq != last || int64(len(entries)) != last {
		t.Errorf("conversation %s has LastSeq %d and %d entries, want %d", id, c.LastSeq, len(entries), last)
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	store := openAt(t, path, Options{maxPages: 100})
	newConversation(t, store, "spare", 40)
	newConversation(t, store, "a", 0)
	last := fill(t, store, "a", 0)
	expectLast(t, store, "a", last)
	expectLast(t, store, "spare", 40)

	// What is freed can be used by the same store.
	if err := store.Delete(t.Context(), "spare"); err != nil {
		t.Fatal(err)
	}
	if more := fill(t, store, "a", last); more == last {
		t.Error("space was freed, but nothing more can be appended")
	} else {
		last = more
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = openAt(t, path, Options{})
	expectLast(t, store, "a", last)
	if err := store.Append(t.Context(), continuo.Batch{ConversationID: "a", After: last, Entries: someEntries("a", last+1, last+1, "x")}); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestAFullDiskFailsOnlyWhatDoesNotFit has large and small changes share commits.
func TestAFullDiskFailsOnlyWhatDoesNotFit(t *testing.T) {
	store := openAt(t, filepath.Join(t.TempDir(), "a.db"), Options{maxPages: 200})
	defer store.Close()
	for i := range 12 {
		newConversation(t, store, fmt.Sprint("c", i), 0)
	}
	var writers sync.WaitGroup
	for i := range 12 {
		writers.Go(func() {
			id := fmt.Sprint("c", i)
			text, want := "small", error(nil)
			if i%2 == 0 {
				text, want = strings.Repeat("large", 1<<18), continuo.ErrFull
			}
			for range 2 {
				err := store.Append(context.Background(), continuo.Batch{ConversationID: id, Entries: someEntries(id, 1, 1, text)})
				if !errors.Is(err, want) {
					t.Errorf("%s: got %v, want %v", id, err, want)
				}
				if err == nil {
					return
				}
			}
		})
	}
	writers.Wait()
	for i := range 12 {
		expectLast(t, store, fmt.Sprint("c", i), int64(i%2))
	}
}
