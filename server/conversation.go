package server

import (
	"fmt"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// conversation finds the conversation that a path names by its id or key. An archived one is refused.
func (s *server) conversation(r *http.Request) (continuo.Conversation, error) {
	found, err := s.anyConversation(r)
	if err == nil && !found.ArchivedAt.IsZero() {
		err = fmt.Errorf("conversation %q: %w", bounded(r.PathValue("id")), continuo.ErrArchived)
	}
	return found, err
}

// anyConversation finds the conversation that a path names, archived or not.
func (s *server) anyConversation(r *http.Request) (continuo.Conversation, error) {
	id := r.PathValue("id")
	if !engine.KeyPattern.MatchString(id) { // all ids and keys match this pattern
		return continuo.Conversation{}, fmt.Errorf("conversation %q: %w", bounded(id), continuo.ErrNotFound)
	}
	return s.engine.Log.Find(r.Context(), scopeOf(r), id)
}

// readOptional decodes a body that may be absent.
func (s *server) readOptional(w http.ResponseWriter, r *http.Request, into any) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	body, err := s.readBody(w, r)
	if err != nil || body == nil {
		return err
	}
	return decode(body, into)
}
