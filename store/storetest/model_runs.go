package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"pgregory.net/rapid"
)

// Runs in the test of random operations. Events come in any order: also of runs that have not begun, or that
// begin an existing run again.

var modelEvents = []continuo.RunEventKind{
	continuo.RunBegan, continuo.RunBegan, continuo.RunNodeBegan, continuo.RunNodeFinished, continuo.RunEventWaiting,
	continuo.RunEventFinished, continuo.RunEventFailed, continuo.RunResumed, continuo.RunEventCancelled,
}

func (m *model) drawRunEvents(rt *rapid.T, batch *continuo.Batch) {
	for i := range batch.Entries {
		if rapid.IntRange(0, 1).Draw(rt, "is a run event") == 0 {
			e := &batch.Entries[i]
			e.RunID = m.project + "_" + rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(rt, "run")
			e.WorkflowID = rapid.SampledFrom([]string{"w1", "w2"}).Draw(rt, "workflow")
			e.RunEvent = &continuo.RunEvent{Kind: rapid.SampledFrom(modelEvents).Draw(rt, "event")}
		}
	}
	batch.Runs = continuo.RunChanges(batch.Entries)
}

// runs compares the lists of runs, and one run.
func (m *model) runs(rt *rapid.T) {
	ctx := context.Background()
	query := continuo.RunQuery{
		ProjectID: m.project, ConversationID: m.pick(rt).ID, Limit: rapid.IntRange(1, 4).Draw(rt, "limit"),
		WorkflowID: rapid.SampledFrom([]string{"", "", "w1", "w2"}).Draw(rt, "workflow"),
		State:      rapid.SampledFrom([]continuo.RunState{"", "", continuo.RunRunning, continuo.RunFinished}).Draw(rt, "state"),
	}
	for {
		page, err := both(rt, m, "runs of a conversation", func(s maintenance.Store) ([]continuo.Run, error) {
			found, err := s.Runs(ctx, query)
			return append([]continuo.Run{}, found...), err
		})
		if err != nil || len(page) < query.Limit {
			break
		}
		last := page[len(page)-1]
		query.Before = continuo.RunCursor{StartedAt: last.StartedAt, ID: last.ID}
	}
	query.ConversationID, query.Limit, query.Before = "", 1000, continuo.RunCursor{}
	_, _ = both(rt, m, "runs of a project", func(s maintenance.Store) ([]string, error) {
		found, err := s.Runs(ctx, query)
		return m.sorted(found), err
	})
	before := at(rapid.IntRange(0, 20).Draw(rt, "updated before"))
	_, _ = both(rt, m, "running runs", func(s maintenance.Store) ([]string, error) {
		found, err := s.RunningRuns(ctx, before, 1<<20)
		return m.sorted(found), err
	})
	id := m.project + "_" + rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(rt, "run")
	_, _ = both(rt, m, "run", func(s maintenance.Store) (string, error) {
		found, err := s.Run(ctx, m.project, id)
		return found.ID, err // several runs may have the same id here
	})
}

// sorted returns this project's runs, in an order that does not depend on the engine: here several runs with
// one id may have begun at once.
func (m *model) sorted(runs []continuo.Run) []string {
	texts := []string{}
	for _, run := range runs {
		if strings.HasPrefix(run.ID, m.project+"_") {
			texts = append(texts, fmt.Sprintf("%+v", run))
		}
	}
	slices.Sort(texts)
	return texts
}
