package postgres

import (
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/store/internal/form"
	"github.com/jackc/pgx/v5"
)

const (
	insertProject = `INSERT INTO continuo.projects (id, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`

	hasProject = `SELECT EXISTS (SELECT 1 FROM continuo.projects WHERE id = $1 AND created_at = $2)`

	selectProjects = `SELECT id, created_at FROM continuo.projects ORDER BY id`

	insertKey = `
INSERT INTO continuo.api_keys (id, project_id, name, hash, created_at, expires_at, revoked_at, user_id, budget)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`

	hasKey = `SELECT EXISTS (SELECT 1 FROM continuo.api_keys WHERE id = $1 AND project_id = $2 AND hash = $3 AND created_at = $4)`

	keyColumns = `id, project_id, user_id, name, hash, created_at, coalesce(expires_at, ''), coalesce(revoked_at, ''), coalesce(budget, '')`

	selectKey = `SELECT ` + keyColumns + ` FROM continuo.api_keys WHERE id = $1`

	selectKeys = `
SELECT ` + keyColumns + ` FROM continuo.api_keys
WHERE $1 = '' OR project_id = $1
ORDER BY project_id, created_at, id`

	revokeKey = `UPDATE continuo.api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING ` + keyColumns

	setKeyBudget = `UPDATE continuo.api_keys SET budget = $2 WHERE id = $1 RETURNING ` + keyColumns
)

// CreateProject is part of auth.KeyStore.
func (s *Store) CreateProject(ctx context.Context, project auth.Project) error {
	return s.transact(ctx, "create a project", func(ctx context.Context, tx pgx.Tx) error {
		added, err := tx.Exec(ctx, insertProject, project.ID, stamp(project.CreatedAt))
		if err == nil && added.RowsAffected() == 0 {
			return fmt.Errorf("%w: project %s", continuo.ErrExists, project.ID)
		}
		return err
	}, func(ctx context.Context, q querier) (committed bool, err error) {
		err = q.QueryRow(ctx, hasProject, project.ID, stamp(project.CreatedAt)).Scan(&committed)
		return committed, err
	})
}

// Projects is part of auth.KeyStore.
func (s *Store) Projects(ctx context.Context) (found []auth.Project, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, selectProjects)
		found, err = pgx.CollectRows(rows, scanProject)
		return err
	})
	return found, err
}

func scanProject(row pgx.CollectableRow) (auth.Project, error) {
	var p auth.Project
	var created string
	err := row.Scan(&p.ID, &created)
	if err == nil {
		p.CreatedAt, err = unstamp(created, nil)
	}
	return p, err
}

// CreateKey is part of auth.KeyStore.
func (s *Store) CreateKey(ctx context.Context, key auth.Key) error {
	created := stamp(key.CreatedAt)
	return s.transact(ctx, "create an API key", func(ctx context.Context, tx pgx.Tx) error {
		added, err := tx.Exec(ctx, insertKey, key.ID, key.ProjectID, key.Name, key.Hash, created, stampOrNull(key.ExpiresAt), stampOrNull(key.RevokedAt), key.UserID,
			orNull(form.EncodeBudget(key.Budget)))
		if err == nil && added.RowsAffected() == 0 {
			return fmt.Errorf("%w: API key %s", continuo.ErrExists, key.ID)
		}
		return err
	}, func(ctx context.Context, q querier) (committed bool, err error) {
		err = q.QueryRow(ctx, hasKey, key.ID, key.ProjectID, key.Hash, created).Scan(&committed)
		return committed, err
	})
}

// Key is part of auth.KeyStore.
func (s *Store) Key(ctx context.Context, id string) (found auth.Key, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, selectKey, id)
		found, err = pgx.CollectExactlyOneRow(rows, scanKey)
		return orNotFound(err)
	})
	return found, err
}

// Keys is part of auth.KeyStore.
func (s *Store) Keys(ctx context.Context, projectID string) (found []auth.Key, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, selectKeys, projectID)
		found, err = pgx.CollectRows(rows, scanKey)
		return err
	})
	return found, err
}

// RevokeKey is part of auth.KeyStore.
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time) (revoked auth.Key, err error) {
	err = s.transact(ctx, "revoke an API key", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, revokeKey, id, stamp(at))
		revoked, err = pgx.CollectExactlyOneRow(rows, scanKey)
		return orNotFound(err)
	}, nil)
	return revoked, err
}

// SetKeyBudget is part of auth.KeyStore.
func (s *Store) SetKeyBudget(ctx context.Context, id string, budget auth.Budget) (changed auth.Key, err error) {
	err = s.transact(ctx, "set the budget of an API key", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, setKeyBudget, id, orNull(form.EncodeBudget(budget)))
		changed, err = pgx.CollectExactlyOneRow(rows, scanKey)
		return orNotFound(err)
	}, nil)
	return changed, err
}

func scanKey(row pgx.CollectableRow) (auth.Key, error) {
	var k auth.Key
	var created, expires, revoked, budget string
	err := row.Scan(&k.ID, &k.ProjectID, &k.UserID, &k.Name, &k.Hash, &created, &expires, &revoked, &budget)
	if err != nil {
		return k, err
	}
	k.CreatedAt, err = unstamp(created, err)
	if expires != "" {
		k.ExpiresAt, err = unstamp(expires, err)
	}
	if revoked != "" {
		k.RevokedAt, err = unstamp(revoked, err)
	}
	if err == nil {
		k.Budget, err = form.DecodeBudget(budget)
	}
	return k, err
}

func stampOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}
