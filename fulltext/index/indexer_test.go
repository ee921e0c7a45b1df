package index_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// run indexes until nothing waits.
func (p *fixture) run(indexer index.Indexer, scope index.Scope) {
	p.Helper()
	indexer.Log, indexer.Store = p.log, p.store
	if done, err := indexer.Run(p.Context(), scope, time.Time{}); !done || err != nil {
		p.Errorf("done %t: %v", done, err)
	}
}

// waiting are the keys of the conversations that the index does not have.
func (p *fixture) waiting() string {
	p.Helper()
	waiting, err := p.store.Unindexed(p.Context(), index.UnindexedQuery{Limit: 1000})
	if err != nil {
		p.Fatal(err)
	}
	var keys []string
	for _, u := range waiting {
		keys = append(keys, u.Conversation.Key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

func TestAScopeIsIndexedAndNoOther(t *testing.T) {
	everywhere(t, func(p *fixture) {
		a := p.begin("a", "one", "two")
		p.begin("b", "three")
		if _, err := p.log.Import(p.Context(), continuo.Conversation{ProjectID: "other", Key: "c"}, userEntries("four")); err != nil {
			p.Fatal(err)
		}
		p.run(index.Indexer{}, index.Scope{ConversationID: a.ID})
		if got := p.waiting(); got != "b c" {
			p.Errorf("%s wait", got)
		}
		p.run(index.Indexer{}, index.Scope{ProjectID: "other"})
		if got := p.waiting(); got != "b" {
			p.Errorf("%s wait", got)
		}
		p.run(index.Indexer{}, index.Scope{})
		if got := p.waiting(); got != "" {
			p.Errorf("%s wait", got)
		}
	})
}

// batches is a store that looks at what is indexed, and may fail.
type batches struct {
	maintenance.Store
	mu   sync.Mutex
	seen []index.Batch
	fail func(index.Batch) error
}

func (b *batches) Index(ctx context.Context, batch index.Batch) error {
	if b.fail != nil {
		if err := b.fail(batch); err != nil {
			return err
		}
	}
	b.mu.Lock()
	b.seen = append(b.seen, batch)
	b.mu.Unlock()
	return b.Store.Index(ctx, batch)
}

func TestBatchesAreBounded(t *testing.T) {
	store := &batches{Store: storetest.NewMemory()}
	p := newFixture(t, store)
	c := p.begin("c", slices.Repeat([]string{"some words", strings.Repeat("more words ", 100)}, 50)...)
	var indexed int64
	p.run(index.Indexer{MaxDocuments: 7, MaxBytes: 1500, Indexed: func(n int64) { indexed += n }, Pause: true}, index.Scope{})
	if indexed != 100 || len(store.seen) < 25 {
		t.Errorf("reported %d entries in %d batches", indexed, len(store.seen))
	}
	for _, batch := range store.seen {
		if n := len(batch.Documents); n == 0 || n > 8 {
			t.Errorf("a batch of %d documents", n)
		}
	}
	p.finds("some", "", p.again(p.begin("empty")))
	if got := len(p.all(index.Request{Query: "some", Conversation: &c})); got != 50 {
		t.Errorf("found %d", got)
	}
}

func TestEntriesAreInTheOrderOfSeqs(t *testing.T) {
	everywhere(t, func(p *fixture) {
		entries := userEntries("needle", "needle", "needle", "needle", "needle", "needle")
		for i, hour := range []int{5, 1, 1, 9, 2, 2} {
			entries[i].CreatedAt = p.now.Add(time.Duration(hour-12) * time.Hour)
		}
		entries[5].CreatedAt = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
		c, err := p.log.Import(p.Context(), continuo.Conversation{Key: "c"}, entries)
		if err != nil {
			p.Fatal(err)
		}
		indexer := index.Indexer{Log: p.log, Store: p.store, MaxDocuments: 2}
		if done, err := indexer.Run(p.Context(), index.Scope{}, time.Unix(0, 1)); done || err != nil { // one batch, so that the next has to look back
			p.Errorf("done %t, %v", done, err)
		}
		c = p.append(c, userEntries("needle")...)
		p.run(index.Indexer{MaxDocuments: 3}, index.Scope{})
		hits, err := p.store.Hits(p.Context(), index.HitQuery{ConversationID: c.ID, Terms: []index.Term{{Text: "needle"}}, Limit: 10})
		if err != nil {
			p.Fatal(err)
		}
		var seqs []int64
		for _, hit := range hits {
			seqs = append(seqs, hit.Seq)
		}
		if !slices.Equal(seqs, []int64{7, 6, 5, 4, 3, 2, 1}) {
			p.Errorf("places of %v", seqs)
		}
	})
}

func TestIndexersMayRace(t *testing.T) {
	everywhere(t, func(p *fixture) {
		var conversations []continuo.Conversation
		for i := range 4 {
			conversations = append(conversations, p.begin(fmt.Sprintf("c%d", i), slices.Repeat([]string{"needle"}, 40)...))
		}
		var running sync.WaitGroup
		for i := range 6 {
			running.Go(func() {
				for range 3 {
					if _, err := (index.Indexer{Log: p.log, Store: p.store, MaxDocuments: 3 + i}).Run(p.Context(), index.Scope{}, time.Time{}); err != nil {
						p.Error(err)
					}
				}
			})
		}
		running.Go(func() {
			for i := range 40 {
				if _, err := p.log.Append(p.Context(), conversations[i%4].ID, userEntries("needle"), continuo.AppendOptions{}); err != nil {
					p.Error(err)
				}
			}
		})
		running.Wait()
		found := map[string]int{}
		for _, item := range p.all(index.Request{Query: "needle", Limit: 200}) {
			found[names([]index.Item{item})]++
		}
		for name, n := range found {
			if n != 1 {
				p.Errorf("%s was found %d times", name, n)
			}
		}
		if len(found) != 200 {
			p.Errorf("found %d, want 200", len(found))
		}
	})
}

func TestWhenTheTimeIsUpARunEndsWithABatch(t *testing.T) {
	everywhere(t, func(p *fixture) {
		p.begin("c", slices.Repeat([]string{"needle"}, 10)...)
		for i := 1; i <= 5; i++ {
			var indexed int64
			indexer := index.Indexer{Log: p.log, Store: p.store, MaxDocuments: 3, Indexed: func(n int64) { indexed += n }}
			done, err := indexer.Run(p.Context(), index.Scope{}, time.Unix(0, 1))
			if want := i == 5; done != want || err != nil || indexed > 3 {
				p.Errorf("run %d: done %t with %d entries: %v", i, done, indexed, err)
			}
		}
	})
}

func TestAConversationThatCannotBeIndexedBlocksNoOther(t *testing.T) {
	wrong := errors.New("something is wrong with it")
	store := &batches{Store: storetest.NewMemory()}
	p := newFixture(t, store)
	var bad []string
	for i := range 90 {
		bad = append(bad, p.begin(fmt.Sprintf("bad%d", i), "needle").ID)
	}
	good := p.begin("good", "needle")
	store.fail = func(batch index.Batch) error {
		if slices.Contains(bad, batch.ConversationID) {
			return wrong
		}
		return nil
	}
	done, err := (index.Indexer{Log: p.log, Store: p.store}).Run(t.Context(), index.Scope{}, time.Time{})
	if done || !errors.Is(err, wrong) || strings.Contains(p.waiting(), "good") {
		t.Errorf("done %t, %v; %s wait", done, err, p.waiting())
	}
	result, err := p.searcher().Search(t.Context(), index.Request{ProjectID: good.ProjectID, Query: "needle", Patience: patience})
	if err != nil || names(result.Items) != "good#1" || !result.Incomplete || result.Waiting != 90 || !errors.Is(result.Problem, wrong) {
		t.Errorf("%+v, %v", result, err)
	}

	// A store that takes nothing is asked once.
	asked := 0
	store.fail = func(index.Batch) error {
		asked++
		return continuo.ErrReadOnly
	}
	result, err = p.searcher().Search(t.Context(), index.Request{ProjectID: good.ProjectID, Query: "needle", Patience: patience})
	if err != nil || asked != 1 || names(result.Items) != "good#1" || !errors.Is(result.Problem, continuo.ErrReadOnly) {
		t.Errorf("asked %d times: %+v, %v", asked, result, err)
	}
}

func TestAnotherIndexerMayAlwaysBeFaster(t *testing.T) {
	store := &batches{Store: storetest.NewMemory()}
	store.fail = func(b index.Batch) error {
		return &continuo.ConflictError{Want: b.After + 1, Have: b.After + 2}
	}
	p := newFixture(t, store)
	p.begin("c", "needle")
	if done, err := (index.Indexer{Log: p.log, Store: p.store}).Run(t.Context(), index.Scope{}, time.Time{}); done || err != nil {
		t.Errorf("done %t, %v", done, err)
	}
}

// TestARunEnds: a conversation that is appended to all the time keeps no caller in a run.
func TestARunEnds(t *testing.T) {
	store := &batches{Store: storetest.NewMemory()}
	p := newFixture(t, store)
	for i := range 70 {
		p.begin(fmt.Sprintf("c%d", i), "needle")
	}
	calls := 0
	store.fail = func(batch index.Batch) error {
		if calls++; calls <= 1000 {
			p.append(continuo.Conversation{ID: batch.ConversationID}, userEntries("needle")...)
		}
		return nil
	}
	if done, err := (index.Indexer{Log: p.log, Store: p.store}).Run(t.Context(), index.Scope{}, time.Time{}); !done || err != nil || calls != 70 {
		t.Errorf("done %t after %d batches: %v", done, calls, err)
	}
	if got := len(strings.Fields(p.waiting())); got != 70 {
		t.Errorf("%d wait", got)
	}
}

func TestLargeOutputsAreKnown(t *testing.T) {
	everywhere(t, func(p *fixture) {
		call := continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("a", "f", "{}")}}
		output := continuo.Entry{Role: continuo.Tool, ToolCallID: "a", Content: continuo.Text("apple\n" + strings.Repeat("x\n", 1000) + "pear\n" + strings.Repeat("y\n", 1000))}
		c, err := p.log.Import(p.Context(), continuo.Conversation{Key: "c"}, []continuo.Entry{userEntries("hello")[0], call, output, userEntries("bye")[0]})
		if err != nil {
			p.Fatal(err)
		}
		p.finds("apple", "c#3")
		p.finds("largeoutput", "")
		p.finds("largeoutput*", "")
		for want, r := range map[string][2]int64{"[3]": {1, 4}, "[]": {1, 2}} {
			seqs := []int64{}
			for seq, err := range p.searcher().LargeOutputs(p.Context(), c, r[0], r[1]) {
				if err != nil {
					p.Fatal(err)
				}
				seqs = append(seqs, seq)
			}
			if fmt.Sprint(seqs) != want {
				p.Errorf("%v, want %s", seqs, want)
			}
		}
	})
}
