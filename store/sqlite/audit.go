package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	insertAudit = `INSERT INTO audit (at, project_id, key_id, operation, conversation_id, event) VALUES (?, ?, ?, ?, ?, ?)`
	selectAudit = `SELECT position, at, project_id, key_id, operation, conversation_id, event FROM audit WHERE position > ? `
	lastAudit   = `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'audit'`
	pruneAudit  = `DELETE FROM audit WHERE position IN (SELECT position FROM audit WHERE at < ? ORDER BY at LIMIT +?)`
)

// AddAudit is part of audit.Store.
func (s *Store) AddAudit(ctx context.Context, events []audit.Event) error {
	for _, e := range events {
		if err := checkText(e.ProjectID, e.KeyID, e.Operation, e.ConversationID, form.EncodeAudit(e)); err != nil {
			return fmt.Errorf("add to the audit log: %w", err)
		}
	}
	return s.write(ctx, func(conn *connection) error {
		for _, e := range events {
			if _, err := conn.exec(insertAudit, stamp(e.At), e.ProjectID, e.KeyID, e.Operation, e.ConversationID, form.EncodeAudit(e)); err != nil {
				return err
			}
		}
		return nil
	})
}

// AuditEvents is part of audit.Store.
func (s *Store) AuditEvents(ctx context.Context, query audit.Query) (found []audit.Event, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("read the audit log: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	statement, args := selectAudit, []any{query.After}
	where := func(condition string, value any) {
		statement, args = statement+"AND "+condition+" ", append(args, value)
	}
	if query.ProjectID != "" {
		where("project_id = ?", query.ProjectID)
	}
	if query.KeyID != nil {
		where("key_id = ?", *query.KeyID)
	}
	if query.ConversationID != "" {
		where("conversation_id <> '' AND conversation_id = ?", query.ConversationID)
	}
	if query.Operation != "" {
		where("operation = ?", query.Operation)
	}
	if !query.From.IsZero() {
		where("at >= ?", stamp(query.From))
	}
	if !query.To.IsZero() {
		where("at < ?", stamp(query.To))
	}
	order := "ORDER BY position "
	if query.Newest {
		order += "DESC "
	}
	statement, args = statement+order+"LIMIT +?", append(args, query.Limit)
	err = s.read(ctx, func(conn *connection) error {
		found = nil
		return conn.query(statement, args, func(rows *sql.Rows) error {
			e, err := scanAudit(rows)
			found = append(found, e)
			return err
		})
	})
	if query.Newest {
		slices.Reverse(found)
	}
	return found, err
}

func scanAudit(rows *sql.Rows) (e audit.Event, err error) {
	var at, event string
	if err := rows.Scan(&e.Position, &at, &e.ProjectID, &e.KeyID, &e.Operation, &e.ConversationID, &event); err != nil {
		return e, err
	}
	if e.At, err = unstamp(at, nil); err != nil {
		return e, err
	}
	return e, form.DecodeAudit(event, &e)
}

// LastAudit is part of audit.Store.
func (s *Store) LastAudit(ctx context.Context) (last int64, err error) {
	err = s.read(ctx, func(conn *connection) error { return conn.row(lastAudit, nil, &last) })
	return last, err
}

// PruneAudit is part of audit.Store.
func (s *Store) PruneAudit(ctx context.Context, before time.Time, limit int) (removed int, err error) {
	err = s.write(ctx, func(conn *connection) error {
		count, err := conn.exec(pruneAudit, stamp(before), limit)
		removed = int(count)
		return err
	})
	return removed, err
}
