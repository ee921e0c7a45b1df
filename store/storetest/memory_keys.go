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

func (m *memory) SetKeyBudget(ctx context.Context, id string, budget auth.Budget) (auth.Key, error) {
	if err := m.begin(ctx); err != nil {
		return auth.Key{}, err
	}
	defer m.mu.Unlock()
	key, ok := m.keys[id]
	if !ok {
		return auth.Key{}, continuo.ErrNotFound
	}
	key.Budget = budget
	m.keys[id] = key
	return key, nil
}

func (m *memory) CreateSession(ctx context.Context, session auth.Session) error {
	if err := checkMemoryTexts("create session", session.ID, session.KeyID, session.Hash); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if _, taken := m.sessions[session.ID]; taken {
		return fmt.Errorf("%w: session %s", continuo.ErrExists, session.ID)
	}
	maps.DeleteFunc(m.sessions, func(_ string, s auth.Session) bool { return !s.ExpiresAt.After(session.CreatedAt) })
	if m.sessions == nil {
		m.sessions = map[string]auth.Session{}
	}
	m.sessions[session.ID] = session
	return nil
}

func (m *memory) Session(ctx context.Context, id string) (auth.Session, error) {
	if err := m.begin(ctx); err != nil {
		return auth.Session{}, err
	}
	defer m.mu.Unlock()
	session, ok := m.sessions[id]
	if !ok {
		return auth.Session{}, continuo.ErrNotFound
	}
	return session, nil
}

func (m *memory) DeleteSession(ctx context.Context, id string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	delete(m.sessions, id)
	return nil
}
