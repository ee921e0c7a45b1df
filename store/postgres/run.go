package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

// The change of runs is part of the statement before it, which names the conversation's row head. Its parts
// enclose two lists of columns: of the runs that begin (see runRows.columns), as they are after all changes,
// and of changes of runs that were there before. Neither sees the other's writes. A run that has ended stays
// as it ended.
const (
	beginRuns = `,
begun AS (
  INSERT INTO continuo.runs (conversation_id, id, project_id, workflow_id, first_seq, started_at, state, updated_at, ended_at, key_id)
  SELECT $1, r.id, head.project_id, r.workflow_id, r.first_seq, r.started_at, r.state, r.updated_at, nullif(r.ended_at, ''), r.key_id
  FROM head, unnest(`

	changeRuns = `) AS r (id, workflow_id, first_seq, started_at, state, updated_at, ended_at, key_id)
  ON CONFLICT DO NOTHING),
changed AS (
  UPDATE continuo.runs AS run SET updated_at = c.updated_at, ended_at = coalesce(run.ended_at, nullif(c.ended_at, '')),
    state = CASE WHEN run.ended_at IS NOT NULL OR c.state = '' THEN run.state ELSE c.state END
  FROM head, unnest(`

	ofThisConversation = `) AS c (id, state, updated_at, ended_at)
  WHERE run.conversation_id = $1 AND run.id = c.id)`

	putRuns = `
WITH head AS (SELECT id, project_id FROM continuo.conversations WHERE id = $1)` + beginRuns +
		`$2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $13::text[]` + changeRuns +
		`$9::text[], $10::text[], $11::text[], $12::text[]` + ofThisConversation + `
SELECT 1 FROM head`

	deleteAllRuns = `DELETE FROM continuo.runs WHERE conversation_id = $1`

	anyRun = `SELECT EXISTS (SELECT 1 FROM continuo.runs WHERE conversation_id = $1)`

	isLive = `SELECT EXISTS (SELECT 1 FROM continuo.conversations WHERE id = $1 AND NOT deleted AND archived_at IS NULL)`

	lastEntry = `SELECT coalesce(max(seq), 0) FROM continuo.entries WHERE conversation_id = $1`

	// The entries with a RunEvent, and perhaps some others.
	entriesOfRuns = `
SELECT body FROM continuo.entries WHERE conversation_id = $1 AND strpos(body, '"run_event":') > 0
ORDER BY seq`

	selectRun = `
SELECT id, conversation_id, project_id, workflow_id, key_id, state, first_seq, started_at, updated_at, coalesce(ended_at, '') FROM continuo.runs `

	runByID = selectRun + `WHERE project_id = $1 AND id = $2 ORDER BY conversation_id LIMIT 1`

	runsOfProject = selectRun + `WHERE project_id = $1`
	newestRuns    = ` ORDER BY started_at DESC, id DESC LIMIT `

	runningRuns = selectRun + `
WHERE state = 'running' AND updated_at < $1
ORDER BY updated_at, conversation_id, id LIMIT $2`
)

// runRow is a new run, or a change of an existing one.
type runRow struct {
	id, workflow, key, started string
	first                      int64
	state                      string // "" keeps the state
	updated, ended             string // ended is "" for a run that has not ended
}

func (r *runRow) change(c continuo.RunChange) {
	r.updated = stamp(c.At)
	if c.State == "" || r.ended != "" {
		return
	}
	r.state = string(c.State)
	if c.State.IsOver() {
		r.ended = r.updated
	}
}

// runRows are changes of a conversation's runs, combined into one per run.
type runRows struct {
	begun   []runRow // new runs in their state after all changes
	changed []runRow // changes of runs that existed before
}

func foldRuns(changes []continuo.RunChange) *runRows {
	rows := &runRows{}
	begun, changed := map[string]int{}, map[string]int{}
	for _, c := range changes {
		i, began := begun[c.RunID]
		if c.Begins {
			if !began {
				begun[c.RunID] = len(rows.begun)
				row := runRow{id: c.RunID, workflow: c.WorkflowID, key: c.KeyID, first: c.Seq, started: stamp(c.At)}
				row.change(c)
				rows.begun = append(rows.begun, row)
			}
			continue
		}
		if began {
			rows.begun[i].change(c)
		}
		i, there := changed[c.RunID]
		if !there {
			i = len(rows.changed)
			changed[c.RunID] = i
			rows.changed = append(rows.changed, runRow{id: c.RunID})
		}
		rows.changed[i].change(c)
	}
	return rows
}

// columns returns the columns of the new runs, then those of the changes, and last the new runs' key ids.
func (r *runRows) columns() []any {
	var ids, workflows, keys, started, states, updated, ended []string
	var first []int64
	for _, row := range r.begun {
		ids, workflows, first, started = append(ids, row.id), append(workflows, row.workflow), append(first, row.first), append(started, row.started)
		states, updated, ended, keys = append(states, row.state), append(updated, row.updated), append(ended, row.ended), append(keys, row.key)
	}
	columns := []any{ids, workflows, first, started, states, updated, ended}
	ids, states, updated, ended = nil, nil, nil, nil
	for _, row := range r.changed {
		ids, states, updated, ended = append(ids, row.id), append(states, row.state), append(updated, row.updated), append(ended, row.ended)
	}
	return append(columns, ids, states, updated, ended, keys)
}

// putRuns updates the index of runs for the records that were put; last is the seq of the newest entry
// before. Entries after last only add to the index. Other entries may have replaced ones with events of runs,
// and a conversation's own record may have changed its project: then the index is built again.
func (put *recordsToPut) putRuns(ctx context.Context, tx pgx.Tx, last int64) error {
	if put.conversation != nil {
		return remakeRuns(ctx, tx, put.id)
	}
	if len(put.given) == 0 {
		return nil
	}
	changes := continuo.RunChanges(put.given)
	if len(changes) == 0 {
		var there bool
		if err := tx.QueryRow(ctx, anyRun, put.id).Scan(&there); err != nil || !there {
			return err
		}
	}
	if !form.Follow(put.given, last) {
		return remakeRuns(ctx, tx, put.id)
	}
	var live bool
	if err := tx.QueryRow(ctx, isLive, put.id).Scan(&live); err != nil || !live {
		return err
	}
	return addRuns(ctx, tx, put.id, changes)
}

// remakeRuns builds the index of a conversation's runs from its entries. A deleted or archived one has none.
func remakeRuns(ctx context.Context, tx pgx.Tx, conversationID string) error {
	if _, err := tx.Exec(ctx, deleteAllRuns, conversationID); err != nil {
		return err
	}
	var live bool
	if err := tx.QueryRow(ctx, isLive, conversationID).Scan(&live); err != nil || !live {
		return err
	}
	rows, _ := tx.Query(ctx, entriesOfRuns, conversationID)
	var changes []continuo.RunChange
	var body []byte
	_, err := pgx.ForEachRow(rows, []any{&body}, func() error {
		var entry continuo.Entry
		err := entry.UnmarshalJSON(body)
		changes = append(changes, continuo.RunChanges([]continuo.Entry{entry})...)
		return err
	})
	if err != nil {
		return err
	}
	return addRuns(ctx, tx, conversationID, changes)
}

func addRuns(ctx context.Context, tx pgx.Tx, conversationID string, changes []continuo.RunChange) error {
	if len(changes) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, putRuns, append([]any{conversationID}, foldRuns(changes).columns()...)...)
	return err
}

// Run is part of continuo.RunStore.
func (s *Store) Run(ctx context.Context, projectID, runID string) (found continuo.Run, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		found, err = scanRun(q.QueryRow(ctx, runByID, projectID, runID))
		return orNotFound(err)
	})
	return found, err
}

// Runs is part of continuo.RunStore.
func (s *Store) Runs(ctx context.Context, query continuo.RunQuery) ([]continuo.Run, error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list runs: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	statement, args := runQuery(query)
	return s.listRuns(ctx, statement, args...)
}

// runQuery writes a statement with only the conditions that the query asks for, so that an index serves each
// of them: that of the conversation's runs, or of the project's.
func runQuery(query continuo.RunQuery) (statement string, args []any) {
	statement, args = runsOfProject, []any{query.ProjectID}
	parameter := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	if query.ConversationID != "" {
		statement += ` AND conversation_id = ` + parameter(query.ConversationID)
	}
	if query.WorkflowID != "" {
		statement += ` AND workflow_id = ` + parameter(query.WorkflowID)
	}
	switch query.Of {
	case continuo.OfWorkflows:
		statement += ` AND workflow_id NOT LIKE 'crew:%'`
	case continuo.OfCrews:
		statement += ` AND workflow_id LIKE 'crew:%'`
	}
	if query.State != "" {
		statement += ` AND state = ` + parameter(string(query.State))
	}
	if query.UserID != "" {
		statement += ` AND EXISTS (SELECT 1 FROM continuo.conversations AS c WHERE c.id = runs.conversation_id AND c.user_id = ` + parameter(query.UserID) + `)`
	}
	if query.BegunBy > 0 {
		statement += ` AND first_seq <= ` + parameter(query.BegunBy) + ` ORDER BY first_seq DESC LIMIT ` + parameter(query.Limit)
		return statement, args
	}
	if query.Before != (continuo.RunCursor{}) {
		statement += ` AND (started_at, id) < (` + parameter(stamp(query.Before.StartedAt)) + `, ` + parameter(query.Before.ID) + `)`
	}
	statement += newestRuns + parameter(query.Limit)
	return statement, args
}

// RunningRuns is part of continuo.RunStore.
func (s *Store) RunningRuns(ctx context.Context, updatedBefore time.Time, limit int) ([]continuo.Run, error) {
	if limit < 1 {
		return nil, fmt.Errorf("list running runs: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	return s.listRuns(ctx, runningRuns, stamp(updatedBefore), limit)
}

func (s *Store) listRuns(ctx context.Context, query string, args ...any) (found []continuo.Run, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, query, args...)
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (continuo.Run, error) { return scanRun(row) })
		return err
	})
	return found, err
}

func scanRun(row pgx.Row) (r continuo.Run, err error) {
	var started, updated, ended string
	if err := row.Scan(&r.ID, &r.ConversationID, &r.ProjectID, &r.WorkflowID, &r.KeyID, &r.State, &r.FirstSeq, &started, &updated, &ended); err != nil {
		return r, err
	}
	r.StartedAt, err = unstamp(started, nil)
	r.UpdatedAt, err = unstamp(updated, err)
	if ended != "" {
		r.EndedAt, err = unstamp(ended, err)
	}
	if err != nil {
		return r, fmt.Errorf("run %s: %w", r.ID, err)
	}
	return r, nil
}

// RemakeRuns is part of maintenance.RecordStore.
func (s *Store) RemakeRuns(ctx context.Context, conversationID string) error {
	return s.transact(ctx, "rebuild the runs of conversation "+conversationID, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := lock(ctx, tx, conversationID); err != nil {
			return err
		}
		return remakeRuns(ctx, tx, conversationID)
	}, nil)
}
