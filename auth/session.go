package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// SessionPrefix is what the token of every session begins with.
const SessionPrefix = "ctns_"

// ErrSession says that a session's token is not valid; errors that wrap it say why, as far as the caller may know.
var ErrSession = errors.New("the session is not valid")

// Session is what a key opened for a browser: a credential of a bounded life that never gives access to the key. It ends
// with the key, too. Its token has the form of a key, with another prefix.
type Session struct {
	ID    string `json:"id"`
	KeyID string `json:"key_id"`
	// Hash is the SHA-256 of the token's secret, in hex.
	Hash      string    `json:"-"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SessionStore keeps the sessions of keys. Copies of a store do not have them: their owners open new ones.
type SessionStore interface {
	// CreateSession adds a session, and removes those that expired before it was created. ErrExists when the id is taken.
	CreateSession(ctx context.Context, session Session) error
	// Session finds a session by id, expired or not; ErrNotFound.
	Session(ctx context.Context, id string) (Session, error)
	// DeleteSession removes a session; one that does not exist is no error.
	DeleteSession(ctx context.Context, id string) error
}

// OpenSession opens a session of the key whose full text is shown. The token is shown this once. It fails as Check does.
func (c *Checker) OpenSession(ctx context.Context, shown string, life time.Duration) (key Key, session Session, token string, err error) {
	if key, err = c.Check(ctx, shown); err != nil {
		return key, session, "", err
	}
	credential, token := newCredential(SessionPrefix)
	now := c.options.Now().UTC()
	session = Session{ID: credential.id, KeyID: key.ID, Hash: hashOf(credential.secret), CreatedAt: now, ExpiresAt: now.Add(life)}
	if !key.ExpiresAt.IsZero() && key.ExpiresAt.Before(session.ExpiresAt) {
		session.ExpiresAt = key.ExpiresAt
	}
	if err := c.store.CreateSession(ctx, session); err != nil {
		return key, session, "", fmt.Errorf("open a session of API key %s: %w", key.ID, err)
	}
	return key, session, token, nil
}

// CheckSession looks up the session of a token, and its key. It fails with ErrSession, with ErrRefused where the key is no
// longer valid, or with the store's error.
func (c *Checker) CheckSession(ctx context.Context, token string) (Key, Session, error) {
	id, secret, err := parseAs(SessionPrefix, token)
	if err != nil {
		return Key{}, Session{}, fmt.Errorf("%w: its token is not whole", ErrSession)
	}
	session, err := c.sessions.get(ctx, id)
	known := err == nil
	if errors.Is(err, continuo.ErrNotFound) {
		session.Hash = unknownHash // the same work whether the id exists or not
	} else if err != nil {
		return Key{}, Session{}, fmt.Errorf("look up session %s: %w", id, err)
	}
	same := subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(session.Hash)) == 1
	switch {
	case !same || !known:
		return Key{}, Session{}, fmt.Errorf("%w: it has ended, or is not known here", ErrSession)
	case !c.options.Now().Before(session.ExpiresAt):
		return Key{}, Session{}, fmt.Errorf("%w: it expired at %s", ErrSession, session.ExpiresAt.UTC().Format(time.RFC3339))
	}
	key, err := c.find(ctx, session.KeyID)
	switch {
	case errors.Is(err, continuo.ErrNotFound):
		return Key{}, Session{}, fmt.Errorf("%w: its key is not known here", ErrSession)
	case err != nil:
		return Key{}, Session{}, fmt.Errorf("look up API key %s: %w", session.KeyID, err)
	case !key.Usable(c.options.Now()):
		return key, session, fmt.Errorf("%w: the key of the session was revoked or has expired", ErrRefused)
	}
	return key, session, nil
}

// CloseSession ends the session of a token. Other processes refuse it at the latest when their cache ends.
func (c *Checker) CloseSession(ctx context.Context, token string) error {
	_, session, err := c.CheckSession(ctx, token)
	if errors.Is(err, ErrSession) {
		return nil
	}
	if err != nil && !errors.Is(err, ErrRefused) {
		return err
	}
	if err := c.store.DeleteSession(ctx, session.ID); err != nil {
		return fmt.Errorf("end session %s: %w", session.ID, err)
	}
	c.sessions.forget(session.ID)
	return nil
}
