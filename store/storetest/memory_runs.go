package storetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// changeRuns applies changes in their order.
func (c *memoryConversation) changeRuns(changes []continuo.RunChange) {
	for _, change := range changes {
		i := slices.IndexFunc(c.runs, func(r continuo.Run) bool { return r.ID == change.RunID })
		at := change.At.UTC()
		switch {
		case change.Begins && i < 0:
			c.runs = append(c.runs, continuo.Run{
				ID: change.RunID, ConversationID: c.ID, ProjectID: c.ProjectID, WorkflowID: change.WorkflowID, KeyID: change.KeyID,
				State: change.State, FirstSeq: change.Seq, StartedAt: at, UpdatedAt: at,
			})
		case change.Begins || i < 0: // it has already begun, or is unknown
		default:
			changeMemoryRun(&c.runs[i], change.State, at)
		}
	}
}

func changeMemoryRun(run *continuo.Run, state continuo.RunState, at time.Time) {
	run.UpdatedAt = at
	if state == "" || run.State.IsOver() {
		return
	}
	run.State = state
	if state.IsOver() {
		run.EndedAt = at
	}
}

// remakeRuns builds the index of runs from the entries, unless they are archived or kept for forks only.
func (c *memoryConversation) remakeRuns() error {
	c.runs = nil
	if c.deleted || !c.ArchivedAt.IsZero() {
		return nil
	}
	for _, e := range c.entries {
		if !bytes.Contains(e.body, []byte(`"run_event":`)) {
			continue
		}
		var entry continuo.Entry
		if err := json.Unmarshal(e.body, &entry); err != nil {
			return err
		}
		c.changeRuns(continuo.RunChanges([]continuo.Entry{entry}))
	}
	return nil
}

func (m *memory) Run(ctx context.Context, projectID, runID string) (continuo.Run, error) {
	wanted := func(r continuo.Run) bool { return r.ProjectID == projectID && r.ID == runID }
	found, err := m.selectRuns(ctx, wanted, newestRunFirst, 1)
	if err == nil && len(found) == 0 {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return continuo.Run{}, err
	}
	return found[0], nil
}

func (m *memory) Runs(ctx context.Context, query continuo.RunQuery) ([]continuo.Run, error) {
	before := continuo.Run{StartedAt: query.Before.StartedAt, ID: query.Before.ID}
	wanted := func(r continuo.Run) bool {
		return r.ProjectID == query.ProjectID && (query.UserID == "" || m.find(r.ConversationID).UserID == query.UserID) && (query.ConversationID == "" || r.ConversationID == query.ConversationID) &&
			(query.WorkflowID == "" || r.WorkflowID == query.WorkflowID) && query.Of.Has(r.WorkflowID) && (query.State == "" || r.State == query.State) &&
			(query.BegunBy > 0 && r.FirstSeq <= query.BegunBy || query.BegunBy == 0 && (query.Before == (continuo.RunCursor{}) || newestRunFirst(r, before) > 0))
	}
	order := newestRunFirst
	if query.BegunBy > 0 {
		order = func(a, b continuo.Run) int { return cmp.Compare(b.FirstSeq, a.FirstSeq) }
	}
	return m.selectRuns(ctx, wanted, order, query.Limit)
}

func newestRunFirst(a, b continuo.Run) int {
	return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.ID, a.ID))
}

func (m *memory) RunningRuns(ctx context.Context, updatedBefore time.Time, limit int) ([]continuo.Run, error) {
	wanted := func(r continuo.Run) bool { return r.State == continuo.RunRunning && r.UpdatedAt.Before(updatedBefore) }
	longestQuietFirst := func(a, b continuo.Run) int {
		return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ConversationID, b.ConversationID), cmp.Compare(a.ID, b.ID))
	}
	return m.selectRuns(ctx, wanted, longestQuietFirst, limit)
}

func (m *memory) selectRuns(ctx context.Context, wanted func(continuo.Run) bool, order func(a, b continuo.Run) int, limit int) ([]continuo.Run, error) {
	if limit < 1 {
		return nil, fmt.Errorf("list runs: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var found []continuo.Run
	for _, c := range m.conversations {
		for _, r := range c.runs {
			if wanted(r) {
				found = append(found, r)
			}
		}
	}
	slices.SortStableFunc(found, order)
	return found[:min(limit, len(found))], nil
}

// RemakeRuns is part of maintenance.RecordStore.
func (m *memory) RemakeRuns(ctx context.Context, conversationID string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c := m.find(conversationID)
	if c == nil {
		return continuo.ErrNotFound
	}
	return c.remakeRuns()
}
