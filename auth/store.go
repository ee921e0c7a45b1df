package auth

import (
	"context"
	"fmt"
	"regexp"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Project is the unit of isolation: conversations, files and keys belong to one.
type Project struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
}

var projectID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckProject refuses an id that no project can have; ErrInvalid.
func CheckProject(id string) error {
	if projectID.MatchString(id) {
		return nil
	}
	return fmt.Errorf("project %.80q: %w: use 1 to 64 letters, digits and . _ -, beginning with a letter or digit", id, continuo.ErrInvalid)
}

// Key is a client's credential for one project. The store has only a hash of its secret.
type Key struct {
	ID        string `json:"id"`
	ProjectID string `json:"project_id"`
	// UserID restricts the key to the conversations of one user; empty: all of the project.
	UserID string `json:"user_id,omitempty"`
	// Name describes the key's use; it may be empty.
	Name string `json:"name,omitempty"`
	// Hash is the SHA-256 of the secret, in hex.
	Hash      string    `json:"-"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
	RevokedAt time.Time `json:"revoked_at,omitzero"` // zero: not revoked
	// Budget bounds what the key's requests to models may use.
	Budget Budget `json:"budget,omitzero"`
}

// Usable reports whether the key is valid at a time: neither revoked nor expired.
func (k *Key) Usable(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// KeyStore keeps projects, their keys and the sessions of these.
type KeyStore interface {
	SessionStore
	// CreateProject adds a project; ErrExists. The default project always exists and is listed only if it was created.
	CreateProject(ctx context.Context, project Project) error
	// Projects lists all projects by id.
	Projects(ctx context.Context) ([]Project, error)
	// CreateKey adds a key; ErrExists when the id is taken.
	CreateKey(ctx context.Context, key Key) error
	// Key finds a key by id, revoked or not; ErrNotFound.
	Key(ctx context.Context, id string) (Key, error)
	// Keys lists the keys of a project, or of all projects with "", by project and then the oldest first.
	Keys(ctx context.Context, projectID string) ([]Key, error)
	// RevokeKey revokes a key and returns it; a key that is revoked already does not change. ErrNotFound.
	RevokeKey(ctx context.Context, id string, at time.Time) (Key, error)
	// SetKeyBudget replaces the budget of a key and returns it; ErrNotFound.
	SetKeyBudget(ctx context.Context, id string, budget Budget) (Key, error)
}
