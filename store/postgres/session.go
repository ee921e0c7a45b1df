package postgres

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/jackc/pgx/v5"
)

const (
	insertSession = `
INSERT INTO continuo.sessions (id, key_id, hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`

	hasSession = `SELECT EXISTS (SELECT 1 FROM continuo.sessions WHERE id = $1 AND hash = $2)`

	selectSession = `SELECT id, key_id, hash, created_at, expires_at FROM continuo.sessions WHERE id = $1`

	deleteSession = `DELETE FROM continuo.sessions WHERE id = $1`

	deleteSessions = `DELETE FROM continuo.sessions WHERE expires_at <= $1`
)

// CreateSession is part of auth.SessionStore.
func (s *Store) CreateSession(ctx context.Context, session auth.Session) error {
	return s.transact(ctx, "create a session", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, deleteSessions, stamp(session.CreatedAt)); err != nil {
			return err
		}
		added, err := tx.Exec(ctx, insertSession, session.ID, session.KeyID, session.Hash, stamp(session.CreatedAt), stamp(session.ExpiresAt))
		if err == nil && added.RowsAffected() == 0 {
			return fmt.Errorf("%w: session %s", continuo.ErrExists, session.ID)
		}
		return err
	}, func(ctx context.Context, q querier) (committed bool, err error) {
		err = q.QueryRow(ctx, hasSession, session.ID, session.Hash).Scan(&committed)
		return committed, err
	})
}

// Session is part of auth.SessionStore.
func (s *Store) Session(ctx context.Context, id string) (found auth.Session, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, selectSession, id)
		found, err = pgx.CollectExactlyOneRow(rows, scanSession)
		return orNotFound(err)
	})
	return found, err
}

// DeleteSession is part of auth.SessionStore.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	return s.transact(ctx, "delete a session", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, deleteSession, id)
		return err
	}, nil)
}

func scanSession(row pgx.CollectableRow) (auth.Session, error) {
	var found auth.Session
	var created, expires string
	err := row.Scan(&found.ID, &found.KeyID, &found.Hash, &created, &expires)
	found.CreatedAt, err = unstamp(created, err)
	found.ExpiresAt, err = unstamp(expires, err)
	return found, err
}
