package storetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
)

func (m *memory) CreateProject(ctx context.Context, project auth.Project) error {
	if err := checkMemoryTexts("create project", project.ID); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if _, taken := m.projects[project.ID]; taken {
		return fmt.Errorf("%w: project %s", continuo.ErrExists, project.ID)
	}
	if m.projects == nil {
		m.projects = map[string]auth.Project{}
	}
	m.projects[project.ID] = project
	return nil
}

func (m *memory) Projects(ctx context.Context) ([]auth.Project, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.projects), func(a, b auth.Project) int { return cmp.Compare(a.ID, b.ID) }), nil
}

func (m *memory) CreateKey(ctx context.Context, key auth.Key) error {
	if err := checkMemoryTexts("create key", key.ID, key.ProjectID, key.UserID, key.Name, key.Hash); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if _, taken := m.keys[key.ID]; taken {
		return fmt.Errorf("%w: key %s", continuo.ErrExists, key.ID)
	}
	if m.keys == nil {
		m.keys = map[string]auth.Key{}
	}
	m.keys[key.ID] = key
	return nil
}

func (m *memory) Key(ctx context.Context, id string) (auth.Key, error) {
	if err := m.begin(ctx); err != nil {
		return auth.Key{}, err
	}
	defer m.mu.Unlock()
	key, ok := m.keys[id]
	if !ok {
		return auth.Key{}, continuo.ErrNotFound
	}
	return key, nil
}

func (m *memory) Keys(ctx context.Context, projectID string) ([]auth.Key, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var found []auth.Key
	for _, key := range m.keys {
		if projectID == "" || key.ProjectID == projectID {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, func(a, b auth.Key) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

func (m *memory) RevokeKey(ctx context.Context, id string, at time.Time) (auth.Key, error) {
	if err := m.begin(ctx); err != nil {
		return auth.Key{}, err
	}
	defer m.mu.Unlock()
	key, ok := m.keys[id]
	if !ok {
		return auth.Key{}, continuo.ErrNotFound
	}
	if key.RevokedAt.IsZero() {
		key.RevokedAt = at
		m.keys[id] = key
	}
	return key, nil
}
