package continuo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// reads notes how large the pages are that a store gives.
type reads struct {
	continuo.Store
	pages []page
}

type page struct{ entries, bytes int }

func (r *reads) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	found, err := r.Store.Entries(ctx, id, query)
	if err == nil {
		bytes := 0
		for i := range found {
			bytes += len(found[i].Content.String())
		}
		r.pages = append(r.pages, page{len(found), bytes})
	}
	return found, err
}

// account is the memory of a request.
type account struct{ most, taken, peak int64 }

var errNoMemory = errors.New("no memory")

func (a *account) Take(bytes int64) error {
	if a.most > 0 && a.taken+bytes > a.most {
		return errNoMemory
	}
	a.taken += bytes
	a.peak = max(a.peak, a.taken)
	return nil
}

const mib = 1 << 20

// newReads makes a log with entries of so many KiB, of which those from the fifth on are a fork's own.
func newReads(t *testing.T, kib ...int) (*continuo.Log, continuo.Conversation, *reads) {
	t.Helper()
	store := &reads{Store: storetest.NewMemory()}
	log := continuo.NewLog(store, continuo.LogOptions{})
	conversation, err := log.Create(t.Context(), continuo.Conversation{})
	for i, size := range kib {
		if err == nil && i == 4 {
			conversation, err = log.Fork(t.Context(), conversation.ID, 0, continuo.Conversation{})
		}
		if err == nil {
			_, err = log.Append(t.Context(), conversation.ID, []continuo.Entry{user(strings.Repeat("a", size<<10))}, continuo.AppendOptions{})
		}
	}
	if err == nil {
		conversation, err = log.Conversation(t.Context(), conversation.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	store.pages = nil
	return log, conversation, store
}

var kib = []int{1, 2000, 300, 300, 600, 600, 5000, 3000, 1, 1, 1}

// TestPagesAreBoundedByBytes reads small and large entries of a fork both ways.
func TestPagesAreBoundedByBytes(t *testing.T) {
	log, conversation, store := newReads(t, kib...)
	for _, backward := range []bool{false, true} {
		store.pages = nil
		var got []int
		for entry, err := range log.Read(t.Context(), conversation, continuo.Range{Backward: backward}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, len(entry.Content.String())>>10)
		}
		want := slices.Clone(kib)
		if backward {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("backward %v: %v, want %v", backward, got, want)
		}
		for _, page := range store.pages {
			if page.bytes > mib && page.entries > 1 {
				t.Errorf("backward %v: a page of %d entries has %d bytes", backward, page.entries, page.bytes)
			}
		}
		if len(store.pages) > 9 {
			t.Errorf("backward %v: %d pages: %v", backward, len(store.pages), store.pages)
		}
	}
	entry, err := log.LatestUser(t.Context(), conversation, 8)
	if err != nil || len(entry.Content.String()) != 3000<<10 {
		t.Errorf("the newest user entry up to 8: seq %d, %v", entry.Seq, err)
	}
}

// TestAKeyBringsBackLargeEntries: what an append with a key gave comes back whole, page by page.
func TestAKeyBringsBackLargeEntries(t *testing.T) {
	log, conversation, _ := newReads(t)
	entries := []continuo.Entry{user(strings.Repeat("a", 600<<10)), user(strings.Repeat("b", 600<<10)), user(strings.Repeat("c", 2*mib)), user("d")}
	for _, what := range []string{"appended", "again"} {
		stored, err := log.Append(t.Context(), conversation.ID, entries, continuo.AppendOptions{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range entries {
			if len(stored) != len(entries) || stored[i].Seq != int64(i+1) || stored[i].Content.String() != entries[i].Content.String() {
				t.Fatalf("%s: %d entries", what, len(stored))
			}
		}
	}
}

// TestReadersTakeMemory: one that passes over entries takes a page at a time, one that keeps them takes all, and both give it
// back: the former itself, the latter with what holds it.
func TestReadersTakeMemory(t *testing.T) {
	log, conversation, _ := newReads(t, kib...)
	const all, largest = 11806 << 10, 5000 << 10
	near := func(what string, got, want int64) {
		t.Helper()
		if got < want || got > want+mib+mib/16 {
			t.Errorf("%s: %d bytes, want about %d", what, got, want)
		}
	}
	read := func(ctx context.Context, r continuo.Range, entries int) error {
		for _, err := range log.Read(ctx, conversation, r) {
			if err != nil {
				return err
			}
			if entries--; entries == 0 {
				break
			}
		}
		return nil
	}
	for _, backward := range []bool{false, true} {
		for _, stop := range []int{0, 1, 7} {
			t.Run(fmt.Sprintf("backward %v, stopped after %d", backward, stop), func(t *testing.T) {
				memory := &account{}
				if err := read(continuo.WithMemory(t.Context(), memory), continuo.Range{Backward: backward}, stop); err != nil {
					t.Fatal(err)
				}
				if stop == 0 {
					near("the most", memory.peak, largest)
				}
				if memory.taken != 0 {
					t.Errorf("%d bytes are left", memory.taken)
				}
			})
		}
		memory := &account{}
		ctx, release := continuo.HoldMemory(continuo.WithMemory(t.Context(), memory))
		if err := read(ctx, continuo.Range{Backward: backward, Keeps: true}, 0); err != nil {
			t.Fatal(err)
		}
		near("kept", memory.taken, all)
		if release(); memory.taken != 0 {
			t.Errorf("%d bytes are left after the release", memory.taken)
		}
		memory = &account{most: 4 * mib}
		if err := read(continuo.WithMemory(t.Context(), memory), continuo.Range{Backward: backward}, 0); !errors.Is(err, errNoMemory) {
			t.Errorf("an entry larger than the memory: %v", err)
		}
		if memory.taken != 0 {
			t.Errorf("%d bytes are left after the refusal", memory.taken)
		}
		memory = &account{most: 1}
		ctx = continuo.WithMemory(continuo.WithMemory(t.Context(), memory), nil)
		if err := read(ctx, continuo.Range{Backward: backward}, 0); err != nil {
			t.Errorf("work without the request's memory: %v", err)
		}
	}
}

// TestSizesAreThoseOfTheEntries also of a fork, and of nothing.
func TestSizesAreThoseOfTheEntries(t *testing.T) {
	log, conversation, store := newReads(t, kib...)
	for _, span := range [][2]int64{{1, 11}, {4, 5}, {5, 5}, {6, 99}, {7, 6}, {20, 30}} {
		var want continuo.Size
		if span[0] <= conversation.LastSeq && span[0] <= span[1] {
			for entry, err := range log.Read(t.Context(), conversation, continuo.Range{From: span[0], To: span[1]}) {
				if err != nil {
					t.Fatal(err)
				}
				want = want.Add(continuo.Size{Messages: 1, Chars: entry.Chars, Tokens: entry.Tokens})
			}
		}
		store.pages = nil
		got, err := log.Sizes(t.Context(), conversation, span[0], span[1])
		if err != nil || got != want || len(store.pages) > 0 {
			t.Errorf("%v: %v, %v, want %v; %d pages were read", span, got, err, want, len(store.pages))
		}
	}
}
