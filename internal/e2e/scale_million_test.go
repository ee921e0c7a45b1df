package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
)

// BenchmarkMillion compares a store of 1 000 with one of 1 000 000: entries in one conversation, and conversations
// beside it in the same project. Both are in the same engine, indexed, and each thing is done to one and then
// to the other, in turn. It reports how many times as long the large one takes, from medians; with -v there is
// a table. Without CONTINUO_MILLION=1 the large one has 20 000, for a look in a minute.
func BenchmarkMillion(b *testing.B) {
	large := 20_000
	if os.Getenv("CONTINUO_MILLION") == "1" {
		large = 1_000_000
	}
	for _, engine := range []struct {
		name string
		make func(b *testing.B, size int) *population
	}{{"sqlite", inSQLite}, {"postgres", inPostgres(b)}} {
		b.Run(engine.name, func(b *testing.B) {
			sides := []*population{engine.make(b, 1000), engine.make(b, large)}
			for _, p := range sides {
				p.fill(b)
			}
			comparePopulations(b, sides)
		})
	}
}

// scaleRounds is how often a benchmark's iteration does each thing.
const scaleRounds = 10

// comparePopulations does everything to both sides in turn.
func comparePopulations(b *testing.B, sides []*population) {
	found, counts := figures{}, map[string][]int{}
	for _, o := range operations() {
		for _, p := range sides {
			o.try(b, p) // plans, caches
			counts[o.name] = append(counts[o.name], o.try(b, p))
		}
	}
	b.ResetTimer()
	for b.Loop() {
		for round := range scaleRounds {
			for _, o := range operations() {
				for i := range sides {
					p := sides[(round+i)%len(sides)]
					began := time.Now()
					o.try(b, p)
					found.add(fmt.Sprintf("%s/%d", o.name, p.size), millis(time.Since(began)))
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	small, large := sides[0].size, sides[1].size
	var table strings.Builder
	for _, o := range operations() {
		few, many := found.median(fmt.Sprintf("%s/%d", o.name, small)), found.median(fmt.Sprintf("%s/%d", o.name, large))
		b.ReportMetric(many/few, o.name+"-x")
		fmt.Fprintf(&table, "\n| %s | %d, %d | %.2f | %.2f | %.1f |", o.name, counts[o.name][0], counts[o.name][1], few, many, many/few)
	}
	b.Logf("\n| what | found | ms of %d | ms of %d | ratio |%s", small, large, &table)
}

// population is a store with one long conversation and many short ones.
type population struct {
	size  int
	store maintenance.Store
	log   *continuo.Log
	long  continuo.Conversation
	raw   rawStore // writes the many, faster than the store does
	page  continuo.ConversationCursor
}

func newPopulation(b *testing.B, size int, store maintenance.Store, raw rawStore) *population {
	b.Helper()
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return &population{size: size, store: store, log: continuo.NewLog(store, continuo.LogOptions{}), raw: raw}
}

func inSQLite(b *testing.B, size int) *population {
	b.Helper()
	path := filepath.Join(b.TempDir(), "million.db")
	store, err := sqlite.Open(b.Context(), path, sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		b.Fatal(err)
	}
	return newPopulation(b, size, store, openRawSQLite(b, path))
}

// inPostgres makes populations on one server, as an operator would set it up, but that it does not wait for the
// disk: nothing that is measured writes.
func inPostgres(outer *testing.B) func(b *testing.B, size int) *population {
	var server *pgtest.Server
	return func(b *testing.B, size int) *population {
		b.Helper()
		if server == nil {
			server = pgtest.Start(outer, pgtest.Options{Durable: true, Settings: map[string]string{
				"fsync": "off", "synchronous_commit": "off", "shared_buffers": "1GB", "max_wal_size": "16GB", "maintenance_work_mem": "1GB",
			}})
		}
		url := server.Database(outer)
		store, err := postgres.Open(b.Context(), url, postgres.Options{StatementTimeout: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		return newPopulation(b, size, store, openRawPostgres(b, url))
	}
}

// operation is one thing that a person or a program does, and returns how much it found.
type operation struct {
	name string
	do   func(ctx context.Context, p *population) (int, error)
}

func (o operation) try(b *testing.B, p *population) int {
	b.Helper()
	found, err := o.do(b.Context(), p)
	if err != nil {
		b.Fatalf("%s of %d: %v", o.name, p.size, err)
	}
	return found
}

// pageSize is how many are listed at once.
const pageSize = 20

func operations() []operation {
	all := []operation{
		entriesPage("entries-newest", func(p *population) continuo.EntryQuery { return continuo.EntryQuery{Backward: true} }),
		entriesPage("entries-middle", func(p *population) continuo.EntryQuery { return continuo.EntryQuery{From: p.long.LastSeq / 2} }),
		entriesPage("latest-user", func(p *population) continuo.EntryQuery {
			return continuo.EntryQuery{Backward: true, UsersOnly: true, Limit: 1}
		}),
		{"build-codex", func(ctx context.Context, p *population) (int, error) { return 1, buildTail(ctx, p.log, p.long.ID) }},
		{"open-by-key", func(ctx context.Context, p *population) (int, error) {
			_, err := p.store.ConversationByKey(ctx, continuo.DefaultProject, crowdKey(p.size/2))
			return 1, err
		}},
		{"list-page-1", func(ctx context.Context, p *population) (int, error) {
			return p.list(ctx, continuo.ConversationCursor{})
		}},
		{"list-page-50", func(ctx context.Context, p *population) (int, error) { return p.list(ctx, p.page) }},
	}
	for _, q := range []struct{ name, query string }{
		{"rare", rareWord},
		{"1-of-1000", uncommonWord},
		{"common", word(0)},
		{"two", word(20) + " " + word(40)},
		{"apart", oddWord + " " + evenWord},
		{"chinese", chineseWord},
		{"chinese-rare", rareChinese},
	} {
		all = append(all, search("search-conv-"+q.name, q.query, true), search("search-proj-"+q.name, q.query, false))
	}
	return append(all, search("search-proj-title", rareTitle, false))
}

func entriesPage(name string, query func(*population) continuo.EntryQuery) operation {
	return operation{name, func(ctx context.Context, p *population) (int, error) {
		q := query(p)
		q.From, q.To = max(q.From, 1), p.long.LastSeq
		if q.Limit == 0 {
			q.Limit = pageSize
		}
		found, err := p.store.Entries(ctx, p.long.ID, q)
		return len(found), err
	}}
}

func search(name, query string, inConversation bool) operation {
	return operation{name, func(ctx context.Context, p *population) (int, error) {
		request := index.Request{ProjectID: continuo.DefaultProject, Query: query}
		if inConversation {
			request.Conversation = &p.long
		}
		result, err := index.Searcher{Log: p.log, Store: p.store}.Search(ctx, request)
		if err == nil && (result.Incomplete || result.Problem != nil) {
			err = fmt.Errorf("the index is not whole: %v", result.Problem)
		}
		return len(result.Items), err
	}}
}

func (p *population) list(ctx context.Context, before continuo.ConversationCursor) (int, error) {
	found, err := p.store.Conversations(ctx, continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Limit: pageSize, Before: before})
	return len(found), err
}

// toPage goes to where page 50 begins.
func (p *population) toPage(b *testing.B) {
	b.Helper()
	for range 49 {
		found, err := p.store.Conversations(b.Context(), continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Limit: pageSize, Before: p.page})
		if err != nil || len(found) == 0 {
			b.Fatalf("list: %d, %v", len(found), err)
		}
		last := found[len(found)-1]
		p.page = continuo.ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
	}
}

// check looks whether the store has what was put in, and the index too: what the raw way wrote is found as what
// the store wrote itself.
func (p *population) check(b *testing.B) {
	b.Helper()
	for query, want := range map[string]int{rareWord: planted, rareTitle: planted, rareChinese: planted} {
		result, err := index.Searcher{Log: p.log, Store: p.store}.Search(b.Context(), index.Request{ProjectID: continuo.DefaultProject, Query: query})
		if err != nil || len(result.Items) != want {
			b.Fatalf("%s is found %d times, want %d (%v)", query, len(result.Items), want, err)
		}
	}
	titled, err := p.store.ConversationByKey(b.Context(), continuo.DefaultProject, crowdKey(rareTitleAt))
	if err != nil {
		b.Fatal(err)
	}
	result, err := index.Searcher{Log: p.log, Store: p.store}.Search(b.Context(), index.Request{ProjectID: continuo.DefaultProject, Query: rareTitle, Conversation: &titled})
	if err != nil || len(result.Items) != 1 {
		b.Fatalf("the title of %s is found %d times (%v)", titled.ID, len(result.Items), err)
	}
	for _, i := range []int{0, p.size / 2, p.size - 1} {
		c, err := p.store.ConversationByKey(b.Context(), continuo.DefaultProject, crowdKey(i))
		if err != nil || c.Title != crowdTitle(i, p.size) {
			b.Fatalf("conversation %d is %+v, %v", i, c, err)
		}
	}
	if waiting, err := p.store.Unindexed(b.Context(), index.UnindexedQuery{Limit: 1}); err != nil || len(waiting) > 0 {
		b.Fatalf("not indexed: %+v, %v", waiting, err)
	}
}
