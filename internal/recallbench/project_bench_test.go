package recallbench

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/recall/search"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/jackc/pgx/v5"
)

// BenchmarkProject measures recall and searches in a project with many entries on PostgreSQL: CONTINUO_LONG=1, or
// CONTINUO_ENTRIES with their number. CONTINUO_PROJECT_URL names a database that is filled if it is empty, and kept.
//
// The questions are those of LoCoMo, and the texts are made of the data's words, so that each of them is as frequent as there.
func BenchmarkProject(b *testing.B) {
	size, _ := strconv.ParseInt(os.Getenv("CONTINUO_ENTRIES"), 10, 64)
	if size < 1 && os.Getenv("CONTINUO_LONG") == "" {
		b.Skip("SKIPPED: set CONTINUO_LONG=1 to measure 10 million entries, or CONTINUO_ENTRIES")
	}
	p := newProjectBench(b, cmp.Or(size, 10_000_000))
	for name, query := range map[string]string{"rare": rareWord, "common": "time", "phrase": `"last week"`} {
		b.Run("search/"+name, func(b *testing.B) { p.search(b, []string{query}) })
	}
	b.Run("search/questions", func(b *testing.B) { p.search(b, p.questions) })
	for _, scope := range lookup.Scopes() {
		b.Run("turn/"+string(scope), func(b *testing.B) { p.turns(b, scope) })
	}
}

// projectBench is a project in PostgreSQL.
type projectBench struct {
	log       *continuo.Log
	store     *postgres.Store
	url       string
	asked     continuo.Conversation // a long one
	questions []string
}

const maxQuestions = 30

func newProjectBench(b *testing.B, size int64) *projectBench {
	url := os.Getenv("CONTINUO_PROJECT_URL")
	if url == "" {
		url = pgtest.Shared(b).Database(b)
	}
	store, err := postgres.Open(b.Context(), url, postgres.Options{StatementTimeout: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	p := &projectBench{store: store, url: url, log: continuo.NewLog(store, continuo.LogOptions{})}
	if p.longest(b); p.asked.LastSeq == 0 {
		began := time.Now()
		if err := fillProject(b.Context(), url, newVocabulary(b), size); err != nil {
			b.Fatal(err)
		}
		b.Logf("%d entries filled in %.0f s", size, time.Since(began).Seconds())
		p.longest(b)
	}
	for _, c := range dataFile(b, "locomo.jsonl.gz") {
		for i := 0; i < len(c.Questions) && len(p.questions) < maxQuestions; i += 31 {
			p.questions = append(p.questions, c.Questions[i].Question)
		}
	}
	return p
}

// longest finds the longest of the conversations that have changed last.
func (p *projectBench) longest(b *testing.B) {
	b.Helper()
	found, err := p.log.Conversations(b.Context(), continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Limit: 100})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range found {
		if c.LastSeq > p.asked.LastSeq {
			p.asked = c
		}
	}
}

// each measures every query once in an iteration, and reports the medians, the longest, and the mean processor time of the server.
func (p *projectBench) each(b *testing.B, queries []string, ask func(query string) error) {
	t := turnBench{B: b}
	var all took
	before := p.serverTime(b)
	for b.Loop() {
		for _, query := range queries {
			t.time(&all, func() {
				if err := ask(query); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
	server := time.Duration(0)
	for pid, used := range p.serverTime(b) {
		server += used - before[pid]
	}
	t.report("", all)
	b.ReportMetric(float64(all.wall[len(all.wall)-1].Microseconds())/1000, "max-ms")
	b.ReportMetric(float64(server.Microseconds())/1000/float64(len(all.wall)), "server-cpu-ms")
}

// serverTime is the processor time of each of the server's processes for this database, where they run on this machine's kernel.
func (p *projectBench) serverTime(b *testing.B) map[int]time.Duration {
	all := map[int]time.Duration{}
	err := onServer(b.Context(), p.url, func(conn *pgx.Conn) error {
		rows, _ := conn.Query(b.Context(), "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
		for _, pid := range pids {
			var used time.Duration
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid)); err == nil {
				_, _ = fmt.Sscan(string(text), (*int64)(&used))
			}
			all[pid] = used
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return all
}

func (p *projectBench) search(b *testing.B, queries []string) {
	searcher := search.Searcher{Log: p.log, Store: p.store}
	p.each(b, queries, func(query string) error {
		_, err := searcher.Search(b.Context(), index.Request{ProjectID: continuo.DefaultProject, Query: query, Limit: 20, Patience: -1})
		return err
	})
}

// turns looks up what a turn recalls, of questions whose words were not looked up before.
func (p *projectBench) turns(b *testing.B, scope lookup.Scope) {
	p.each(b, p.questions, func(query string) error {
		finder := lookup.Finder{Log: p.log, Store: p.store, Lists: &lookup.TermLists{}, Entries: &lookup.Entries{}, Analyzer: &recall.Analyzer{}}
		_, err := finder.Find(b.Context(), lookup.Request{Text: query, Conversation: p.asked, Scope: scope, Candidates: 100})
		return err
	})
}
