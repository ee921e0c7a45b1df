package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/store/internal/form"
)

const (
	insertProject = `INSERT INTO projects (id, created_at) VALUES (?, ?)`

	selectProjects = `SELECT id, created_at FROM projects ORDER BY id`

	insertKey = `INSERT INTO api_keys (id, project_id, user_id, name, hash, created_at, expires_at, revoked_at, budget) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

	selectKey = `
SELECT id, project_id, user_id, name, hash, created_at, coalesce(expires_at, ''), coalesce(revoked_at, ''), coalesce(budget, '') FROM api_keys `

	keyByID       = selectKey + `WHERE id = ?`
	keysOfAll     = selectKey + `INDEXED BY api_keys_by_age ORDER BY project_id, created_at, id`
	keysOfProject = selectKey + `INDEXED BY api_keys_by_age WHERE project_id = ? ORDER BY created_at, id`

	revokeKey = `UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?`

	setKeyBudget = `UPDATE api_keys SET budget = ? WHERE id = ?`
)

// CreateProject is part of auth.KeyStore.
func (s *Store) CreateProject(ctx context.Context, project auth.Project) error {
	if err := checkText(project.ID); err != nil {
		return fmt.Errorf("create project: %w", err)
	}
	return s.write(ctx, func(conn *connection) error {
		_, err := conn.exec(insertProject, project.ID, stamp(project.CreatedAt))
		if isTaken(err) {
			return fmt.Errorf("%w: project %s", continuo.ErrExists, project.ID)
		}
		return err
	})
}

// Projects is part of auth.KeyStore.
func (s *Store) Projects(ctx context.Context) (found []auth.Project, err error) {
	err = s.read(ctx, func(conn *connection) error {
		return conn.query(selectProjects, nil, func(rows *sql.Rows) error {
			var p auth.Project
			var created string
			err := rows.Scan(&p.ID, &created)
			if err == nil {
				p.CreatedAt, err = unstamp(created, nil)
			}
			found = append(found, p)
			return err
		})
	})
	return found, err
}

// CreateKey is part of auth.KeyStore.
func (s *Store) CreateKey(ctx context.Context, key auth.Key) error {
	if err := checkText(key.ID, key.ProjectID, key.UserID, key.Name, key.Hash); err != nil {
		return fmt.Errorf("create key: %w", err)
	}
	return s.write(ctx, func(conn *connection) error {
		_, err := conn.exec(insertKey, key.ID, key.ProjectID, key.UserID, key.Name, key.Hash, stamp(key.CreatedAt), stampOrNull(key.ExpiresAt), stampOrNull(key.RevokedAt),
			orNull(form.EncodeBudget(key.Budget)))
		if isTaken(err) {
			return fmt.Errorf("%w: key %s", continuo.ErrExists, key.ID)
		}
		return err
	})
}

// Key is part of auth.KeyStore.
func (s *Store) Key(ctx context.Context, id string) (found auth.Key, err error) {
	err = s.read(ctx, func(conn *connection) error {
		found, err = readKey(conn, id)
		return err
	})
	return found, err
}

// Keys is part of auth.KeyStore.
func (s *Store) Keys(ctx context.Context, projectID string) (found []auth.Key, err error) {
	statement, args := keysOfAll, []any(nil)
	if projectID != "" {
		statement, args = keysOfProject, []any{projectID}
	}
	err = s.read(ctx, func(conn *connection) error {
		found, err = readKeys(conn, statement, args...)
		return err
	})
	return found, err
}

// RevokeKey is part of auth.KeyStore.
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time) (revoked auth.Key, err error) {
	err = s.write(ctx, func(conn *connection) error {
		if _, err := conn.exec(revokeKey, stamp(at), id); err != nil {
			return err
		}
		revoked, err = readKey(conn, id)
		return err
	})
	return revoked, err
}

// SetKeyBudget is part of auth.KeyStore.
func (s *Store) SetKeyBudget(ctx context.Context, id string, budget auth.Budget) (changed auth.Key, err error) {
	err = s.write(ctx, func(conn *connection) error {
		if _, err := conn.exec(setKeyBudget, orNull(form.EncodeBudget(budget)), id); err != nil {
			return err
		}
		changed, err = readKey(conn, id)
		return err
	})
	return changed, err
}

func readKey(conn *connection, id string) (auth.Key, error) {
	found, err := readKeys(conn, keyByID, id)
	if err == nil && len(found) == 0 {
		err = continuo.ErrNotFound
	}
	if err != nil {
		return auth.Key{}, err
	}
	return found[0], nil
}

func readKeys(conn *connection, query string, args ...any) (found []auth.Key, err error) {
	err = conn.query(query, args, func(rows *sql.Rows) error {
		var k auth.Key
		var created, expires, revoked, budget string
		if err := rows.Scan(&k.ID, &k.ProjectID, &k.UserID, &k.Name, &k.Hash, &created, &expires, &revoked, &budget); err != nil {
			return err
		}
		var err error
		k.CreatedAt, err = unstamp(created, nil)
		k.ExpiresAt, err = unstampOrZero(expires, err)
		k.RevokedAt, err = unstampOrZero(revoked, err)
		if err == nil {
			k.Budget, err = form.DecodeBudget(budget)
		}
		found = append(found, k)
		return err
	})
	return found, err
}
