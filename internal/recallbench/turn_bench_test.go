package recallbench

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/token"
)

const benchEntries = 10_000

// BenchmarkTurn says what recall adds to a turn in a conversation of 10 000 entries: the medians of
// the time and of this process's processor time.
//
//   - messages: some 400 next messages of users in the data's conversations, each with its answer, one after another, after a
//     start; then some 400 more. All that a turn does for a recall.
//   - questions: the look-up of 60 annotated questions of BEAM in its messages (19 MB), and the same once more.
func BenchmarkTurn(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) (maintenance.Store, error){
		"sqlite": func(b *testing.B) (maintenance.Store, error) {
			return sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "log.db"), sqlite.Options{Synchronous: sqlite.Normal})
		},
		"postgres": func(b *testing.B) (maintenance.Store, error) {
			return postgres.Open(b.Context(), pgtest.Shared(b).Database(b), postgres.Options{})
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.Run("messages", func(b *testing.B) { benchMessages(b, open) })
			b.Run("questions", func(b *testing.B) { benchQuestions(b, open) })
		})
	}
}

// turnBench is a conversation in a store.
type turnBench struct {
	*testing.B
	log          *continuo.Log
	store        maintenance.Store
	conversation continuo.Conversation
}

func newTurnBench(b *testing.B, open func(b *testing.B) (maintenance.Store, error), entries []continuo.Entry) *turnBench {
	store, err := open(b)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	t := &turnBench{B: b, store: store, log: continuo.NewLog(store, continuo.LogOptions{Counter: token.O200k()})}
	if t.conversation, err = t.log.Import(b.Context(), continuo.Conversation{}, slices.Clone(entries)); err != nil {
		b.Fatal(err)
	}
	t.index()
	return t
}

func (t *turnBench) index() {
	if _, err := (index.Indexer{Log: t.log, Store: t.store}).Run(t.Context(), index.Scope{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// took is the time and the processor time of each of some turns.
type took struct{ wall, cpu []time.Duration }

// time adds a turn.
func (t *turnBench) time(all *took, turn func()) {
	used, began := processorTime(t.B), time.Now()
	turn()
	all.wall, all.cpu = append(all.wall, time.Since(began)), append(all.cpu, processorTime(t.B)-used)
}

// report reports the medians.
func (t *turnBench) report(name string, all took) {
	for unit, values := range map[string][]time.Duration{"p50-ms": all.wall, "cpu-p50-ms": all.cpu} {
		slices.Sort(values)
		t.ReportMetric(float64(values[len(values)/2].Microseconds())/1000, name+unit)
	}
	t.ReportMetric(0, "ns/op")
}

func benchMessages(b *testing.B, open func(b *testing.B) (maintenance.Store, error)) {
	before, after := talk(b)
	t := newTurnBench(b, open, before)
	e, err := newEngine(t.log, t.store, engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(b.Context())
	chosen, err := e.Catalog.Resolve(catalog.TurnSpec{Mode: continuo.ModeChat})
	if err != nil {
		b.Fatal(err)
	}
	runner := e.Catalog.Runner(chosen)
	var all took
	recalled := 0
	for b.Loop() {
		for i := range after {
			if i == len(after)/2 {
				t.report("first-", all)
				all = took{}
			}
			if after[i].Role == continuo.User {
				t.time(&all, func() {
					found, err := e.Recalls.Ahead(b.Context(), runner, t.conversation, after[i].Content)
					if err != nil {
						b.Fatal(err)
					}
					if len(found) > 1 {
						recalled++
					}
				})
			}
			if _, err := t.log.Append(b.Context(), t.conversation.ID, []continuo.Entry{after[i]}, continuo.AppendOptions{}); err != nil {
				b.Fatal(err)
			}
			if t.conversation, err = t.log.Conversation(b.Context(), t.conversation.ID); err != nil {
				b.Fatal(err)
			}
			t.index()
		}
		b.Logf("%d messages recall something", recalled)
		t.report("later-", all)
	}
}

// talk returns 10 000 messages of users and models from all kinds of conversations, and those that follow in each kind, first
// some of each kind, then some more.
func talk(b *testing.B) (before, after []continuo.Entry) {
	var later []continuo.Entry
	files := []string{"coding-agents.jsonl.gz", "tau-airline.jsonl.gz", "multilingual.jsonl.gz", "multi-agent.jsonl.gz", "aider-history.jsonl.gz", "irc.jsonl.gz", "locomo.jsonl.gz", "beam.jsonl.gz"}
	const following = 100 // messages of each
	for k, file := range files {
		var entries []continuo.Entry
		for _, c := range dataFile(b, file) {
			for i := range c.Messages {
				m := &c.Messages[i]
				if (m.Role == continuo.User || m.Role == continuo.Assistant) && m.Text() != "" {
					entries = append(entries, continuo.Entry{Role: m.Role, Content: continuo.Text(m.Text()), Name: m.Name})
				}
			}
		}
		n := min(len(entries)-2*following, (benchEntries-len(before))/(len(files)-k))
		before, after, later = append(before, entries[:n]...), append(after, entries[n:n+following]...), append(later, entries[n+following:n+2*following]...)
	}
	return before, append(after, later...)
}

func benchQuestions(b *testing.B, open func(b *testing.B) (maintenance.Store, error)) {
	var entries []continuo.Entry
	var questions []string
	for _, c := range dataFile(b, "beam.jsonl.gz") {
		for i := range c.Messages {
			m := &c.Messages[i]
			entries = append(entries, continuo.Entry{Role: m.Role, Content: continuo.Text(m.Text()), Name: m.Name})
		}
		for _, q := range c.Questions {
			questions = append(questions, q.Question)
		}
	}
	for len(entries) < benchEntries {
		entries = append(entries, entries[:min(len(entries), benchEntries-len(entries))]...)
	}
	t := newTurnBench(b, open, entries)
	finder := lookup.Finder{Log: t.log, Store: t.store, Common: &lookup.CommonTerms{}, Lists: &lookup.TermLists{}, Entries: &lookup.Entries{}, Analyzer: &recall.Analyzer{}}
	for b.Loop() {
		for _, name := range []string{"first-", "again-"} {
			var all took
			for _, question := range questions[:60] {
				t.time(&all, func() {
					if _, err := finder.Find(b.Context(), lookup.Request{
						Text: question, Conversation: t.conversation, ForUser: true, Candidates: 100, LeastWeight: 5 << 16,
						May: func(seq int64) bool { return seq <= t.conversation.LastSeq-80 },
					}); err != nil {
						b.Fatal(err)
					}
				})
			}
			t.report(name, all)
		}
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
