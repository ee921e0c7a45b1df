package continuo_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// fetching counts the entries that a log fetches from its store.
type fetching struct {
	continuo.Store
	mu    sync.Mutex
	pages []int
}

func (f *fetching) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	found, err := f.Store.Entries(ctx, id, query)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages = append(f.pages, len(found))
	return found, err
}

// longLog returns a log whose store counts, with a conversation of so many messages.
func longLog(t *testing.T, size int, cacheBytes int64) (*continuo.Log, *fetching, continuo.Conversation) {
	t.Helper()
	store := &fetching{Store: storetest.NewMemory()}
	log := continuo.NewLog(store, continuo.LogOptions{CacheBytes: cacheBytes})
	entries := make([]continuo.Entry, size)
	for i := range entries {
		entries[i] = continuo.Entry{Role: []continuo.Role{continuo.User, continuo.Assistant}[i%2], Content: continuo.Text(fmt.Sprint("message ", i+1))}
	}
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, entries)
	if err != nil {
		t.Fatal(err)
	}
	return log, store, conversation
}

func TestPagesAreAsLargeAsExpectedAndThenGrow(t *testing.T) {
	log, store, conversation := longLog(t, 300, -1)
	for name, test := range map[string]struct {
		read  continuo.Range
		take  int
		pages []int
	}{
		"one":                {continuo.Range{Backward: true}, 1, []int{4}},
		"a few more":         {continuo.Range{Backward: true}, 13, []int{4, 8, 16}},
		"all":                {continuo.Range{}, 300, []int{4, 8, 16, 32, 64, 64, 64, 48}},
		"as expected":        {continuo.Range{Backward: true, Expect: 80}, 80, []int{84}},
		"more than that":     {continuo.Range{Expect: 80}, 94, []int{84, 8, 16}},
		"more than there is": {continuo.Range{From: 290, Expect: 80}, 11, []int{11}},
	} {
		t.Run(name, func(t *testing.T) {
			store.pages = nil
			taken := 0
			for _, err := range log.Read(t.Context(), conversation, test.read) {
				if err != nil {
					t.Fatal(err)
				}
				if taken++; taken == test.take {
					break
				}
			}
			if taken != test.take || !slices.Equal(store.pages, test.pages) {
				t.Errorf("took %d entries, want %d, in pages of %d, want %d", taken, test.take, store.pages, test.pages)
			}
		})
	}
}

// What a plan says that it has read is what was fetched for it, but for a few entries.
func TestBuildsFetchLittleMoreThanTheyRead(t *testing.T) {
	log, store, conversation := longLog(t, 300, -1)
	for _, name := range []string{window.Codex, window.Continuity, window.Replay} {
		t.Run(name, func(t *testing.T) {
			view, err := window.DefaultSettings().View(name)
			if err != nil {
				t.Fatal(err)
			}
			store.pages = nil
			plan, err := view.Build(turn.Source{Context: t.Context(), Log: log, Conversation: conversation}, window.Input{At: conversation.LastSeq})
			if err != nil {
				t.Fatal(err)
			}
			fetched := int64(0)
			for _, page := range store.pages {
				fetched += int64(page)
			}
			if read := plan.Totals.RowsRead; fetched < read || fetched > read+16 {
				t.Errorf("the plan read %d entries, but %d were fetched", read, fetched)
			}
		})
	}
}
