package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
)

const (
	insertSession  = `INSERT INTO sessions (id, key_id, hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?)`
	selectSession  = `SELECT id, key_id, hash, created_at, expires_at FROM sessions WHERE id = ?`
	deleteSession  = `DELETE FROM sessions WHERE id = ?`
	deleteSessions = `DELETE FROM sessions WHERE expires_at <= ?`
)

// CreateSession is part of auth.SessionStore.
func (s *Store) CreateSession(ctx context.Context, session auth.Session) error {
	if err := checkText(session.ID, session.KeyID, session.Hash); err != nil {
		return fmt.Errorf("create session: %w", err)
	}
	return s.write(ctx, func(conn *connection) error {
		if _, err := conn.exec(deleteSessions, stamp(session.CreatedAt)); err != nil {
			return err
		}
		_, err := conn.exec(insertSession, session.ID, session.KeyID, session.Hash, stamp(session.CreatedAt), stamp(session.ExpiresAt))
		if isTaken(err) {
			return fmt.Errorf("%w: session %s", continuo.ErrExists, session.ID)
		}
		return err
	})
}

// Session is part of auth.SessionStore.
func (s *Store) Session(ctx context.Context, id string) (found auth.Session, err error) {
	err = s.read(ctx, func(conn *connection) error {
		known := false
		err := conn.query(selectSession, []any{id}, func(rows *sql.Rows) error {
			var created, expires string
			err := rows.Scan(&found.ID, &found.KeyID, &found.Hash, &created, &expires)
			known = err == nil
			found.CreatedAt, err = unstamp(created, err)
			found.ExpiresAt, err = unstamp(expires, err)
			return err
		})
		if err == nil && !known {
			err = continuo.ErrNotFound
		}
		return err
	})
	return found, err
}

// DeleteSession is part of auth.SessionStore.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	return s.write(ctx, func(conn *connection) error {
		_, err := conn.exec(deleteSession, id)
		return err
	})
}
