package storetest

import (
	"fmt"
	"math"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// listRuns reads all pages and returns ids.
func listRuns(t *testing.T, store maintenance.Store, query continuo.RunQuery) (ids []string) {
	t.Helper()
	for {
		page, err := store.Runs(t.Context(), query)
		noError(t, err)
		if len(page) > query.Limit || len(ids) > 99 {
			t.Fatalf("a page of %d has %d runs, all until there have %d", query.Limit, len(page), len(ids))
		}
		for _, run := range page {
			ids = append(ids, run.ID)
			query.Before = continuo.RunCursor{StartedAt: run.StartedAt, ID: run.ID}
		}
		if len(page) < query.Limit {
			return ids
		}
	}
}

func testRunList(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	other := conversation("other")
	other.ProjectID = "q"
	noError(t, store.Create(ctx, other, nil))
	appendRunEvents(t, store, "other", 1, runEvent{"r_other", continuo.RunBegan})
	for _, id := range []string{"a", "b", "c"} { // those of one seq began at the same time
		create(t, store, id, 0)
		appendRunEvents(t, store, id, 1, runEvent{id + "1", continuo.RunBegan}, runEvent{id + "2", continuo.RunBegan}, runEvent{id + "1", continuo.RunEventWaiting}, runEvent{id + "3", continuo.RunBegan})
	}
	for what, test := range map[string]struct {
		query continuo.RunQuery
		want  []string
	}{
		"all":                        {continuo.RunQuery{}, []string{"c3", "b3", "a3", "c2", "b2", "a2", "c1", "b1", "a1"}},
		"of a conversation":          {continuo.RunQuery{ConversationID: "b"}, []string{"b3", "b2", "b1"}},
		"of a workflow":              {continuo.RunQuery{WorkflowID: "workflow of b2"}, []string{"b2"}},
		"of a state":                 {continuo.RunQuery{State: continuo.RunWaiting}, []string{"c1", "b1", "a1"}},
		"of all three":               {continuo.RunQuery{ConversationID: "b", WorkflowID: "workflow of b1", State: continuo.RunWaiting}, []string{"b1"}},
		"of a state that none has":   {continuo.RunQuery{ConversationID: "b", State: continuo.RunFinished}, nil},
		"of an unknown conversation": {continuo.RunQuery{ConversationID: "none"}, nil},
		"of another project's":       {continuo.RunQuery{ConversationID: "other"}, nil},
	} {
		for limit := 1; limit <= len(test.want)+1; limit++ {
			test.query.ProjectID, test.query.Limit = "p", limit
			same(t, fmt.Sprintf("%s, in pages of %d", what, limit), listRuns(t, store, test.query), test.want)
		}
	}
	testRunsOfCrews(t, store)
	testRunsByPosition(t, store)
	expectError(t, "a limit of 0", second(store.Runs(ctx, continuo.RunQuery{ProjectID: "p"})), continuo.ErrInvalid)
}

func testRunningRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	elsewhere := conversation("c")
	elsewhere.ProjectID = "q"
	noError(t, store.Create(ctx, elsewhere, nil))
	create(t, store, "a", 0)
	create(t, store, "b", 0)
	appendRunEvents(t, store, "a", 1, runEvent{"a1", continuo.RunBegan}, runEvent{"a2", continuo.RunBegan}, runEvent{"a3", continuo.RunBegan}, runEvent{"a1", continuo.RunNodeBegan}, runEvent{"a3", continuo.RunEventWaiting})
	appendRunEvents(t, store, "b", 1, runEvent{"b1", continuo.RunBegan}, runEvent{"b2", continuo.RunBegan}, runEvent{"b2", continuo.RunEventFinished})
	appendRunEvents(t, store, "c", 1, runEvent{"c1", continuo.RunBegan}, runEvent{"c1", continuo.RunNodeBegan}, runEvent{"c1", continuo.RunNodeBegan})
	expect := func(before time.Time, limit int, want ...string) {
		t.Helper()
		running, err := store.RunningRuns(ctx, before, limit)
		noError(t, err)
		var got []string
		for _, run := range running {
			got = append(got, run.ID)
			byID, err := store.Run(ctx, run.ProjectID, run.ID)
			noError(t, err)
			same(t, run.ID, run, byID)
		}
		same(t, fmt.Sprintf("the first %d before %s", limit, before), got, want)
	}
	expect(at(100), 9, "b1", "a2", "c1", "a1")
	expect(at(100), 2, "b1", "a2")
	expect(at(3), 9, "b1", "a2") // later runs are not included
	expect(at(1), 9)
	appendRunEvents(t, store, "a", 6, runEvent{"a3", continuo.RunResumed}, runEvent{"a2", continuo.RunEventFailed})
	noError(t, store.Delete(ctx, "b"))
	expect(at(100), 9, "c1", "a1", "a3")
	testRunsOfCrews(t, store)
	testRunsByPosition(t, store)
	expectError(t, "a limit of 0", second(store.RunningRuns(ctx, at(9), 0)), continuo.ErrInvalid)
}

// testRunsOfCrews lists the runs of crews, and other runs separately.
func testRunsOfCrews(t *testing.T, store maintenance.Store) {
	create(t, store, "crewed", 0)
	made := eventEntries("crewed", 1, runEvent{"w", continuo.RunBegan}, runEvent{"x", continuo.RunBegan}, runEvent{"y", continuo.RunBegan})
	made[1].WorkflowID, made[2].WorkflowID = continuo.CrewWorkflow("a"), "crewless"
	noError(t, store.Append(t.Context(), continuo.Batch{ConversationID: "crewed", Entries: made, Runs: continuo.RunChanges(made)}))
	for of, want := range map[continuo.RunsOf][]string{"": {"y", "x", "w"}, continuo.OfWorkflows: {"y", "w"}, continuo.OfCrews: {"x"}} {
		query := continuo.RunQuery{ProjectID: "p", ConversationID: "crewed", Of: of, Limit: 2}
		same(t, "runs of "+string(of), listRuns(t, store, query), want)
	}
}

// testRunsByPosition has later runs with an earlier start time, by another machine's clock.
func testRunsByPosition(t *testing.T, store maintenance.Store) {
	create(t, store, "skewed", 0)
	made := eventEntries("skewed", 1, runEvent{"late", continuo.RunBegan}, runEvent{"early", continuo.RunBegan}, runEvent{"earliest", continuo.RunBegan})
	for i := range made {
		made[i].CreatedAt = at(100 - i)
	}
	noError(t, store.Append(t.Context(), continuo.Batch{ConversationID: "skewed", Entries: made, Runs: continuo.RunChanges(made)}))
	for through, want := range map[int64][]string{math.MaxInt64: {"earliest", "early"}, 2: {"early", "late"}, 1: {"late"}} {
		found, err := store.Runs(t.Context(), continuo.RunQuery{ProjectID: "p", ConversationID: "skewed", BegunBy: through, Limit: 2})
		noError(t, err)
		var ids []string
		for _, run := range found {
			ids = append(ids, run.ID)
		}
		same(t, fmt.Sprintf("runs that began by entry %d", through), ids, want)
	}
}
