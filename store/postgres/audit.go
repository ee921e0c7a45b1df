package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

const (
	// The lock on the row is held until the events are committed: who gets it next gives higher positions.
	moveAudit = `UPDATE continuo.audit_position SET last = last + $1 RETURNING last - $1`

	insertAudit = `
INSERT INTO continuo.audit (position, at, project_id, key_id, operation, conversation_id, event)
SELECT $1 + e.n, e.at, e.project_id, e.key_id, e.operation, e.conversation_id, e.event
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
  WITH ORDINALITY AS e (at, project_id, key_id, operation, conversation_id, event, n)`

	selectAudit = `SELECT position, at, project_id, key_id, operation, conversation_id, event FROM continuo.audit WHERE position > $1 `

	lastAudit = `SELECT last FROM continuo.audit_position`

	pruneAudit = `
DELETE FROM continuo.audit WHERE position IN (SELECT position FROM continuo.audit WHERE at < $1 ORDER BY at LIMIT $2)`
)

// AddAudit is part of audit.Store. Events whose commit was cut off by a lost connection may be added twice.
func (s *Store) AddAudit(ctx context.Context, events []audit.Event) error {
	if len(events) == 0 {
		return nil
	}
	var columns [6][]string
	for _, e := range events {
		for i, text := range []string{stamp(e.At), e.ProjectID, e.KeyID, e.Operation, e.ConversationID, form.EncodeAudit(e)} {
			columns[i] = append(columns[i], text)
		}
	}
	return s.transact(ctx, "add to the audit log", func(ctx context.Context, tx pgx.Tx) error {
		var last int64
		if err := tx.QueryRow(ctx, moveAudit, len(events)).Scan(&last); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertAudit, last, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5])
		return err
	}, nil)
}

// AuditEvents is part of audit.Store.
func (s *Store) AuditEvents(ctx context.Context, query audit.Query) (found []audit.Event, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("read the audit log: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	statement, args := selectAudit, []any{query.After}
	where := func(condition string, value any) {
		args = append(args, value)
		statement += "AND " + condition + " $" + strconv.Itoa(len(args)) + " "
	}
	if query.ProjectID != "" {
		where("project_id =", query.ProjectID)
	}
	if query.KeyID != nil {
		where("key_id =", *query.KeyID)
	}
	if query.ConversationID != "" {
		where("conversation_id <> '' AND conversation_id =", query.ConversationID)
	}
	if query.Operation != "" {
		where("operation =", query.Operation)
	}
	if !query.From.IsZero() {
		where("at >=", stamp(query.From))
	}
	if !query.To.IsZero() {
		where("at <", stamp(query.To))
	}
	statement += "ORDER BY position "
	if query.Newest {
		statement += "DESC "
	}
	args = append(args, query.Limit)
	statement += "LIMIT $" + strconv.Itoa(len(args))
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, statement, args...)
		found, err = pgx.CollectRows(rows, scanAudit)
		return err
	})
	if query.Newest {
		slices.Reverse(found)
	}
	return orNil(found), err
}

func scanAudit(row pgx.CollectableRow) (e audit.Event, err error) {
	var at, event string
	if err := row.Scan(&e.Position, &at, &e.ProjectID, &e.KeyID, &e.Operation, &e.ConversationID, &event); err != nil {
		return e, err
	}
	if e.At, err = unstamp(at, nil); err != nil {
		return e, err
	}
	return e, form.DecodeAudit(event, &e)
}

// LastAudit is part of audit.Store.
func (s *Store) LastAudit(ctx context.Context) (last int64, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error { return q.QueryRow(ctx, lastAudit).Scan(&last) })
	return last, err
}

// PruneAudit is part of audit.Store.
func (s *Store) PruneAudit(ctx context.Context, before time.Time, limit int) (removed int, err error) {
	err = s.transact(ctx, "prune the audit log", func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, pruneAudit, stamp(before), limit)
		removed = int(tag.RowsAffected())
		return err
	}, nil)
	return removed, err
}
