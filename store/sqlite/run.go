package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	insertRun = `
INSERT INTO runs (conversation_id, id, project_id, workflow_id, key_id, state, first_seq, started_at, updated_at)
SELECT id, ?, project_id, ?, ?, ?, ?, ?, ? FROM conversations WHERE id = ?
ON CONFLICT DO NOTHING`

	updateRun = `UPDATE runs SET updated_at = ? WHERE conversation_id = ? AND id = ?`

	// A run that has ended stays as it ended.
	updateRunState = `
UPDATE runs SET updated_at = ?, state = iif(ended_at IS NULL, ?, state), ended_at = coalesce(ended_at, ?)
WHERE conversation_id = ? AND id = ?`

	anyRun = `SELECT EXISTS (SELECT 1 FROM runs WHERE conversation_id = ?)`

	isKept = `SELECT 1 FROM conversations WHERE id = ?`

	isLive = `SELECT EXISTS (SELECT 1 FROM conversations WHERE id = ? AND deleted = 0 AND archived_at IS NULL)`

	lastEntry = `
SELECT coalesce(max(place) & 4294967295, 0) FROM entries NOT INDEXED
WHERE place BETWEEN ` + placeOf + `?1) AND ` + placeOf + `?1) | 4294967295`

	// The entries with a RunEvent, and perhaps some others.
	entriesOfRuns = `
SELECT body FROM entries NOT INDEXED
WHERE place BETWEEN ` + placeOf + `?1) AND ` + placeOf + `?1) | 4294967295 AND instr(body, '"run_event":') > 0
ORDER BY place`

	selectRun = `
SELECT id, conversation_id, project_id, workflow_id, key_id, state, first_seq, started_at, updated_at, coalesce(ended_at, '') FROM runs `

	runByID = selectRun + `INDEXED BY runs_by_id WHERE project_id = ? AND id = ? ORDER BY conversation_id LIMIT 1`

	runsOfProject      = selectRun + `INDEXED BY runs_by_start WHERE project_id = ?`
	runsOfConversation = selectRun + `INDEXED BY runs_of_conversation WHERE project_id = ? AND conversation_id = ?`
	runsOfWorkflow     = ` AND workflow_id = ?`
	runsOfWorkflows    = ` AND workflow_id NOT LIKE 'crew:%'`
	runsOfCrews        = ` AND workflow_id LIKE 'crew:%'`
	runsOfState        = ` AND state = ?`
	runsOfUser         = ` AND EXISTS (SELECT 1 FROM conversations AS c WHERE c.id = runs.conversation_id AND c.user_id = ?)`
	runsBefore         = ` AND (started_at, id) < (?, ?)`
	runsBegunBy        = ` AND first_seq <= ? ORDER BY first_seq DESC LIMIT +?`
	newestRuns         = ` ORDER BY started_at DESC, id DESC LIMIT +?`

	runningRuns = selectRun + `INDEXED BY runs_running
WHERE state = 'running' AND updated_at < ?
ORDER BY updated_at, conversation_id, id LIMIT +?`
)

func checkRuns(changes []continuo.RunChange) error {
	for _, c := range changes {
		if err := checkText(c.RunID, c.WorkflowID, c.KeyID, string(c.State)); err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}
	return nil
}

// changeRuns applies changes of a conversation's runs in their order.
func changeRuns(conn *connection, conversationID string, changes []continuo.RunChange) error {
	for _, c := range changes {
		if err := changeRun(conn, conversationID, c); err != nil {
			return err
		}
	}
	return nil
}

func changeRun(conn *connection, conversationID string, c continuo.RunChange) (err error) {
	at := stamp(c.At)
	switch {
	case c.Begins:
		_, err = conn.exec(insertRun, c.RunID, c.WorkflowID, c.KeyID, string(c.State), c.Seq, at, at, conversationID)
	case c.State == "":
		_, err = conn.exec(updateRun, at, conversationID, c.RunID)
	default:
		var ended any
		if c.State.IsOver() {
			ended = at
		}
		_, err = conn.exec(updateRunState, at, string(c.State), ended, conversationID, c.RunID)
	}
	return err
}

// putRuns updates the index of runs for records that were put; last is the seq of the newest entry before.
// Entries after last only add to the index. Other entries may have replaced ones with events of runs, and a
// conversation's own record may have changed its project: then the index is built again.
func putRuns(conn *connection, conversationID string, records []maintenance.Record, last int64) error {
	entries, own := form.EntriesOf(records)
	if own {
		return remakeRuns(conn, conversationID)
	}
	if len(entries) == 0 {
		return nil
	}
	changes := continuo.RunChanges(entries)
	if len(changes) == 0 {
		var there bool
		if err := conn.row(anyRun, []any{conversationID}, &there); err != nil || !there {
			return err
		}
	}
	if !form.Follow(entries, last) {
		return remakeRuns(conn, conversationID)
	}
	var live bool
	if err := conn.row(isLive, []any{conversationID}, &live); err != nil || !live {
		return err
	}
	return changeRuns(conn, conversationID, changes)
}

// remakeRuns builds the index of a conversation's runs from its entries. A deleted or archived one has none.
func remakeRuns(conn *connection, conversationID string) error {
	if _, err := conn.exec(deleteRuns, conversationID); err != nil {
		return err
	}
	var live bool
	if err := conn.row(isLive, []any{conversationID}, &live); err != nil || !live {
		return err
	}
	var changes []continuo.RunChange
	err := conn.query(entriesOfRuns, []any{conversationID}, func(rows *sql.Rows) error {
		var body string
		if err := rows.Scan(&body); err != nil {
			return err
		}
		var entry continuo.Entry
		err := entry.Decode(body)
		changes = append(changes, continuo.RunChanges([]continuo.Entry{entry})...)
		return err
	})
	if err != nil {
		return err
	}
	return changeRuns(conn, conversationID, changes)
}

// Run is part of continuo.RunStore.
func (s *Store) Run(ctx context.Context, projectID, runID string) (continuo.Run, error) {
	found, err := s.listRuns(ctx, runByID, projectID, runID)
	if err == nil && len(found) == 0 {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return continuo.Run{}, err
	}
	return found[0], nil
}

// Runs is part of continuo.RunStore.
func (s *Store) Runs(ctx context.Context, query continuo.RunQuery) ([]continuo.Run, error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list runs: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	statement, args := runQuery(query)
	return s.listRuns(ctx, statement, args...)
}

// runQuery chooses the statement, and thereby the index.
func runQuery(query continuo.RunQuery) (statement string, args []any) {
	statement, args = runsOfProject, []any{query.ProjectID}
	if query.ConversationID != "" {
		statement, args = runsOfConversation, append(args, query.ConversationID)
	}
	if query.WorkflowID != "" {
		statement, args = statement+runsOfWorkflow, append(args, query.WorkflowID)
	}
	switch query.Of {
	case continuo.OfWorkflows:
		statement += runsOfWorkflows
	case continuo.OfCrews:
		statement += runsOfCrews
	}
	if query.State != "" {
		statement, args = statement+runsOfState, append(args, string(query.State))
	}
	if query.UserID != "" {
		statement, args = statement+runsOfUser, append(args, query.UserID)
	}
	if query.BegunBy > 0 {
		return statement + runsBegunBy, append(args, query.BegunBy, query.Limit)
	}
	if query.Before != (continuo.RunCursor{}) {
		statement, args = statement+runsBefore, append(args, stamp(query.Before.StartedAt), query.Before.ID)
	}
	return statement + newestRuns, append(args, query.Limit)
}

// RunningRuns is part of continuo.RunStore.
func (s *Store) RunningRuns(ctx context.Context, updatedBefore time.Time, limit int) ([]continuo.Run, error) {
	if limit < 1 {
		return nil, fmt.Errorf("list running runs: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	return s.listRuns(ctx, runningRuns, stamp(updatedBefore), limit)
}

func (s *Store) listRuns(ctx context.Context, query string, args ...any) (found []continuo.Run, err error) {
	err = s.read(ctx, func(conn *connection) error {
		found = nil
		return conn.query(query, args, func(rows *sql.Rows) error {
			run, err := scanRun(rows)
			found = append(found, run)
			return err
		})
	})
	return found, err
}

func scanRun(rows *sql.Rows) (r continuo.Run, err error) {
	var started, updated, ended string
	if err := rows.Scan(&r.ID, &r.ConversationID, &r.ProjectID, &r.WorkflowID, &r.KeyID, &r.State, &r.FirstSeq, &started, &updated, &ended); err != nil {
		return r, err
	}
	r.StartedAt, err = unstamp(started, nil)
	r.UpdatedAt, err = unstamp(updated, err)
	r.EndedAt, err = unstampOrZero(ended, err)
	if err != nil {
		return r, fmt.Errorf("run %s: %w", r.ID, err)
	}
	return r, nil
}

// RemakeRuns is part of maintenance.RecordStore.
func (s *Store) RemakeRuns(ctx context.Context, conversationID string) error {
	return s.write(ctx, func(conn *connection) error {
		var there bool
		if err := conn.row(isKept, []any{conversationID}, &there); err != nil {
			return orNotFound(err)
		}
		return remakeRuns(conn, conversationID)
	})
}
