package server

import (
	"net/http"

	continuo "github.com/continuo-log/continuo"
)

// conversation finds the conversation that a path names by its id or key. An archived one is refused.
func (s *server) conversation(r *http.Request) (continuo.Conversation, error) {
	return s.engine.Conversations.Get(r.Context(), scopeOf(r), r.PathValue("id"))
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
