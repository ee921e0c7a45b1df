package recallbench

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/evidence"
	"github.com/continuo-log/continuo/store/sqlite"
)

// BenchmarkRole says how long the request of a role with 8 000 tokens takes to plan, with recall and without, in a conversation of
// 10 000 entries of LoCoMo: the medians over 60 questions, asked for the first time and again.
func BenchmarkRole(b *testing.B) {
	long := &evidence.Conversation{ID: "long"}
	for conversations := dataFile(b, "locomo.jsonl.gz"); len(long.Messages) < benchEntries; {
		for _, c := range conversations {
			long.Messages = append(long.Messages, c.Messages...)
			long.Questions = append(long.Questions, c.Questions[:6]...)
		}
	}
	long.Messages, long.Questions = long.Messages[:benchEntries], long.Questions[:60]
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	log := continuo.NewLog(store, continuo.LogOptions{})
	_, asked, err := load(b.Context(), log, long, false)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := (index.Indexer{Log: log, Store: store}).Run(b.Context(), index.Scope{}, time.Time{}); err != nil {
		b.Fatal(err)
	}
	settings := map[bool]Setting{false: {View: "role:full", Tokens: 8_000}, true: {View: "role:full", Tokens: 8_000, Off: true}}
	roles := map[bool]crewOf{}
	for off, setting := range settings {
		if roles[off], err = newCrew([]Setting{setting}, off); err != nil {
			b.Fatal(err)
		}
	}
	engines, err := enginesOf(log, store, roles, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, off := range []bool{true, false} {
		b.Cleanup(func() { engines[off].Close(b.Context()) })
		if asked, err = roles[off].shown(b.Context(), engines[off], log, asked); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		for _, name := range []string{"first", "again"} {
			for off, setting := range settings {
				var took []time.Duration
				for _, q := range long.Questions {
					begun := time.Now()
					request := engine.ContextRequest{View: contexts.RoleViewPrefix + roleName(&setting), Crew: crewID(off), Query: q.Question}
					if _, err := engines[off].Contexts.Build(b.Context(), asked, request); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"-"+crewID(off)+"-p50-ms")
			}
		}
	}
}
