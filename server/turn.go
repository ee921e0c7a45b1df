package server

import (
	"errors"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
)

// turnEvents streams a turn's events from the start or after the last one that the client has seen, live or from the
// log. A client that has received the last one gets 204, which stops an EventSource from reconnecting.
func (s *server) turnEvents(w http.ResponseWriter, r *http.Request, in api.TurnEvents) error {
	found, err := s.api.FollowTurn(r.Context(), scopeOf(r), in)
	if err != nil {
		return err
	}
	var out *eventStream
	if found.State == continuo.TurnRunning { // it may be silent for long
		out = newEventStream(w, s.options.KeepAlive)
		out.sendHeader()
	}
	p := &progress{begun: true, ids: api.ChatIDs{SessionID: in.Conversation, ConversationID: found.ConversationID, TurnID: found.ID}}
	err = s.stream(w, r, out, s.engine.Turns.Follow(r.Context(), found, in.After), p)
	if errors.Is(err, errNothingToSend) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return err
}

// resumeTurn resumes a turn that failed, and answers as POST /chat does.
func (s *server) resumeTurn(w http.ResponseWriter, r *http.Request, in api.TurnResumeRequest) error {
	chat, err := s.api.ResumeTurn(r.Context(), scopeOf(r), in)
	if err != nil {
		return err
	}
	return s.sendAnswer(w, r, chat, in.Stream, in.Conversation)
}
