package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
)

// errKeysOff is the problem of calls that are about keys where none are needed.
var errKeysOff = &api.Problem{
	Status: http.StatusConflict, Type: api.InvalidRequest, Code: "keys_not_required",
	Message: "no caller of this server needs an API key; the first one is made with continuo keys create",
}

// errBudgeted is the problem of a key with a budget that would make keys without it.
var errBudgeted = &api.Problem{
	Status: http.StatusForbidden, Type: api.Permission, Code: "budgeted", Message: "a key with a budget makes no keys: use one without a budget",
}

// reaches reports whether a caller may see a key: it is of the caller's project and, where the caller is bound to a user,
// of that user.
func (c caller) reaches(key *auth.Key) bool {
	return key.ProjectID == c.scope.ProjectID && (c.scope.UserID == "" || key.UserID == c.scope.UserID)
}

func (s *server) listKeys(w http.ResponseWriter, r *http.Request, _ api.Nothing) error {
	asks, shown := callerOf(r), []auth.Key{}
	if s.options.Keys != nil {
		keys, err := s.options.Keys.Keys(r.Context(), asks.scope.ProjectID)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if asks.reaches(&key) {
				shown = append(shown, key)
			}
		}
	}
	return writeJSON(w, http.StatusOK, api.AllOf(shown))
}

func (s *server) createKey(w http.ResponseWriter, r *http.Request, in api.KeyRequest) error {
	asks := callerOf(r)
	if s.options.Keys == nil || asks.keyID == "" {
		return errKeysOff
	}
	if own, err := s.options.Keys.Key(r.Context(), asks.keyID); err != nil {
		return err
	} else if !own.Budget.IsZero() {
		return errBudgeted
	}
	user, err := asks.scope.Owner(string(in.UserID))
	if err != nil {
		return api.At("user_id", err)
	}
	key, shown := auth.New(time.Now())
	key.ProjectID, key.UserID, key.Name = asks.scope.ProjectID, user, in.Name
	key.Budget = in.Budget
	if in.ExpiresIn > 0 {
		key.ExpiresAt = key.CreatedAt.Add(time.Duration(in.ExpiresIn) * time.Second)
	}
	if !asks.keyEnds.IsZero() && (key.ExpiresAt.IsZero() || asks.keyEnds.Before(key.ExpiresAt)) {
		key.ExpiresAt = asks.keyEnds
	}
	if err := s.options.Keys.CreateKey(r.Context(), key); err != nil {
		return err
	}
	s.options.Logger.InfoContext(r.Context(), "key_created", "project", key.ProjectID, "key_id", key.ID, "by_key_id", asks.keyID)
	audit.Targets(r.Context(), key.ID)
	return writeJSON(w, http.StatusCreated, api.CreatedKey{APIKey: shown, Key: key})
}

func (s *server) revokeKey(w http.ResponseWriter, r *http.Request, in api.KeyPath) error {
	asks := callerOf(r)
	if s.options.Keys == nil || asks.keyID == "" {
		return errKeysOff
	}
	unknown := fmt.Errorf("API key %q: %w", api.Bounded(in.Key), continuo.ErrNotFound)
	key, err := s.options.Keys.Key(r.Context(), in.Key)
	switch {
	case errors.Is(err, continuo.ErrNotFound), err == nil && !asks.reaches(&key):
		return unknown
	case err != nil:
		return err
	}
	revoked, err := s.options.Keys.RevokeKey(r.Context(), key.ID)
	if err != nil {
		return err
	}
	s.options.Logger.InfoContext(r.Context(), "key_revoked", "project", key.ProjectID, "key_id", key.ID, "by_key_id", asks.keyID)
	return writeJSON(w, http.StatusOK, revoked)
}
