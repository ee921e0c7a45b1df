package storetest

import (
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// testRemadeRuns gives a store changes of runs that differ from its entries, and has it build the index again
// from the entries.
func testRemadeRuns(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 0)
	create(t, store, "b", 0)
	appendRunEvents(t, store, "b", 1, runEvent{"other", continuo.RunBegan})
	wrong := runEventBatch("a", 1, runEvent{"r1", continuo.RunBegan}, runEvent{"r2", continuo.RunBegan}, runEvent{"r1", continuo.RunEventWaiting}, runEvent{"r2", continuo.RunEventFinished})
	wrong.Runs = []continuo.RunChange{
		{RunID: "r1", WorkflowID: "w", Begins: true, Seq: 3, State: continuo.RunFailed, At: at(9)},
		{RunID: "r3", WorkflowID: "w", Begins: true, Seq: 1, State: continuo.RunRunning, At: at(1)},
	}
	noError(t, store.Append(ctx, wrong))
	for range 2 {
		noError(t, store.RemakeRuns(ctx, "a"))
		expectRuns(t, "rebuilt", store, "a", runOf("a", "r2", 2, 4, continuo.RunFinished), runOf("a", "r1", 1, 3, continuo.RunWaiting))
		expectRuns(t, "of another conversation", store, "b", runOf("b", "other", 1, 1, continuo.RunRunning))
	}
	appendRunEvents(t, store, "a", 5, runEvent{"r1", continuo.RunResumed})
	expectRuns(t, "gone on", store, "a", runOf("a", "r2", 2, 4, continuo.RunFinished), runOf("a", "r1", 1, 5, continuo.RunRunning))
	expectError(t, "what is not there", store.RemakeRuns(ctx, "c"), continuo.ErrNotFound)
}
