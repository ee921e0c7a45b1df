package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
)

// entryCounter counts the entries that a store gives out.
type entryCounter struct {
	continuo.Store
	read atomic.Int64
}

func (c *entryCounter) Entries(ctx context.Context, conversationID string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	entries, err := c.Store.Entries(ctx, conversationID, query)
	c.read.Add(int64(len(entries)))
	return entries, err
}

// A list of tasks reads as many entries with findings as without, and tells the same as each task by itself.
func TestAListOfTasksReadsNoFindings(t *testing.T) {
	store := &entryCounter{Store: storetest.NewMemory()}
	e := newRunEngine(t, store, &scriptedModel{answer: func(stepRequest) (string, error) { return "It is done.", nil }}, nil)
	scope := continuo.Scope{ProjectID: "default"}
	var tasks []string
	for i := range 6 {
		made := createTask(t, e, fmt.Sprintf("Task %d", i), "")
		tasks = append(tasks, made.ID)
		for range i % 3 {
			awaitAgent(t, e, deploy(t, e, made.ID, "planner"))
		}
	}
	list := func() (int64, []engine.TaskStatus) {
		before := store.read.Load()
		listed, _, err := e.Tasks.List(t.Context(), engine.TaskQuery{Scope: scope, Limit: 10})
		if err != nil || len(listed) != len(tasks) {
			t.Fatal(len(listed), err)
		}
		return store.read.Load() - before, listed
	}
	bare, _ := list()
	for _, id := range tasks {
		for range 20 {
			if _, err := e.Tasks.Report(t.Context(), scope, id, engine.Finding{Message: "here"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if full, _ := list(); full != bare {
		t.Errorf("a list of %d tasks reads %d entries with findings, %d without", len(tasks), full, bare)
	}
	compareWithEach := func() {
		t.Helper()
		_, listed := list()
		for _, have := range listed {
			want, err := e.Tasks.Get(t.Context(), scope, have.ID)
			if err != nil {
				t.Fatal(err)
			}
			if want.Findings = nil; !reflect.DeepEqual(&have, want) {
				t.Errorf("the list says %+v, the task %+v", have, want)
			}
		}
	}
	compareWithEach()

	// An agent that is gone, and one that does not name its task any more, are in the task's log only.
	gone, err := e.Tasks.Get(t.Context(), scope, tasks[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Log.Delete(t.Context(), gone.Agents[0].ConversationID); err != nil {
		t.Fatal(err)
	}
	renamed, err := e.Tasks.Get(t.Context(), scope, tasks[2])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Log.Update(t.Context(), renamed.Agents[1].ConversationID, continuo.ConversationChange{Metadata: json.RawMessage(`{"mine": 1}`)}); err != nil {
		t.Fatal(err)
	}
	compareWithEach()
	if _, listed := list(); stateIn(listed, tasks[1]) != engine.TaskGone || stateIn(listed, tasks[0]) != engine.TaskQueued {
		t.Errorf("the list says %+v", listed)
	}
}

func stateIn(listed []engine.TaskStatus, id string) engine.TaskState {
	for _, status := range listed {
		if status.ID == id {
			return status.State
		}
	}
	return ""
}
