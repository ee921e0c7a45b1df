package recallbench

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
)

// BenchmarkTurn says what recall adds to a turn: the look-up of 60 questions one after another, as turns look them up, in one
// conversation of 10 000 entries of BEAM (19 MB of text). Reported are the median time, the processor time of this process
// per question, and the same for all questions once more.
func BenchmarkTurn(b *testing.B) {
	var texts []continuo.Entry
	var questions []string
	for _, c := range dataFile(b, "beam.jsonl.gz") {
		for i := range c.Messages {
			m := &c.Messages[i]
			texts = append(texts, continuo.Entry{Role: m.Role, Content: continuo.Text(m.Text()), Name: m.Name})
		}
		for _, q := range c.Questions {
			questions = append(questions, q.Question)
		}
	}
	for len(texts) < 10_000 {
		texts = append(texts, texts[:min(len(texts), 10_000-len(texts))]...)
	}
	for name, open := range map[string]func(b *testing.B) (maintenance.Store, error){
		"sqlite": func(b *testing.B) (maintenance.Store, error) {
			return sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "log.db"), sqlite.Options{Synchronous: sqlite.Normal})
		},
		"postgres": func(b *testing.B) (maintenance.Store, error) {
			return postgres.Open(b.Context(), pgtest.Shared(b).Database(b), postgres.Options{})
		},
	} {
		b.Run(name, func(b *testing.B) {
			store, err := open(b)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			log := continuo.NewLog(store, continuo.LogOptions{})
			c, err := log.Import(b.Context(), continuo.Conversation{}, slices.Clone(texts[:10_000]))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := (index.Indexer{Log: log, Store: store}).Run(b.Context(), index.Scope{}, time.Time{}); err != nil {
				b.Fatal(err)
			}
			finder := lookup.Finder{Log: log, Store: store, Common: &lookup.CommonTerms{}, Lists: &lookup.TermLists{}, Entries: &lookup.Entries{}, Analyzer: &recall.Analyzer{}}
			ask := func() (took []time.Duration, cpu time.Duration) {
				before := processorTime(b)
				for _, question := range questions[:60] {
					began := time.Now()
					if _, err := finder.Find(b.Context(), lookup.Request{
						Text: question, Conversation: c, ForUser: true, Candidates: 300, LeastWeight: 5 << 16, May: func(seq int64) bool { return seq <= c.LastSeq-80 },
					}); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(began))
				}
				return took, processorTime(b) - before
			}
			report := func(name string, took []time.Duration, cpu time.Duration) {
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"-p50-ms")
				b.ReportMetric(float64(cpu.Microseconds())/1000/float64(len(took)), name+"-cpu-ms")
			}
			for b.Loop() {
				took, cpu := ask()
				report("first", took, cpu)
				took, cpu = ask()
				report("again", took, cpu)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// processorTime is what the process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
