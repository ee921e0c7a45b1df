package server

import "net/http"

func (s *server) archiveConversation(w http.ResponseWriter, r *http.Request) error {
	if err := s.readOptional(w, r, &struct{}{}); err != nil {
		return err
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	archived, err := s.engine.Conversations.Archive(r.Context(), conversation)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, archived)
}

func (s *server) restoreConversation(w http.ResponseWriter, r *http.Request) error {
	if err := s.readOptional(w, r, &struct{}{}); err != nil {
		return err
	}
	conversation, err := s.anyConversation(r)
	if err != nil {
		return err
	}
	restored, err := s.engine.Conversations.Restore(r.Context(), conversation)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, restored)
}
