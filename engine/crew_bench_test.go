package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
)

// readCountingStore is a store that counts the entries that are read.
type readCountingStore struct {
	continuo.Store
	entries atomic.Int64
}

func (r *readCountingStore) Entries(ctx context.Context, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	found, err := r.Store.Entries(ctx, id, query)
	r.entries.Add(int64(len(found)))
	return found, err
}

// readsPerPrompt plays a cycle of one round behind so many messages, and says how many entries were read for a prompt.
func readsPerPrompt(b *testing.B, kind string, messages int) float64 {
	b.Helper()
	scripted, store := &scriptedRoles{answer: answerTimes(1)}, &readCountingStore{Store: storetest.NewMemory()}
	view := strings.NewReplacer("system_prompt", "view: {kind: "+kind+", chars: 4000}, system_prompt", "roles:", "max_rounds: 1\nroles:")
	c, err := crew.Parse("test.yaml", []byte(view.Replace(threeRoleCrew)), crew.Known{Any: true})
	if err != nil {
		b.Fatal(err)
	}
	e := newCrewEngineOver(b, continuo.NewLog(store, continuo.LogOptions{}), scripted, crewSource{c.ID: c}, nil)
	appendFlood(b, e, messages)
	store.entries.Store(0)
	status, err := e.Crews.Send(b.Context(), engine.CrewMessage{Session: testSession, Message: continuo.Text("What now?"), Detached: true})
	if err != nil {
		b.Fatal(err)
	}
	awaitEndOfCycle(b, e, status.RunID)
	return float64(store.entries.Load()) / float64(len(scripted.received))
}

// BenchmarkReadsOfAPrompt counts the entries that are read for a role's prompt behind 2 000 and 8 000 messages. The
// ratio is 1 where a prompt reads what it needs, and 4 where it reads the whole conversation.
func BenchmarkReadsOfAPrompt(b *testing.B) {
	for _, kind := range []string{"delta", "full", "window", "summary", "memory"} {
		b.Run(kind, func(b *testing.B) {
			var few, many float64
			for b.Loop() {
				few, many = readsPerPrompt(b, kind, 2000), readsPerPrompt(b, kind, 8000)
			}
			b.ReportMetric(few, "entries-of-2000")
			b.ReportMetric(many, "entries-of-8000")
			b.ReportMetric(many/few, "ratio")
		})
	}
}
