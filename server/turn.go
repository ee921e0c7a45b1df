package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
)

// shownTurn is a turn as clients see it.
type shownTurn struct {
	continuo.Turn
	// WaitingFor are the calls that wait for a person's decision.
	WaitingFor []callEvent `json:"waiting_for,omitempty"`
}

// turn finds the turn that a path names.
func (s *server) turn(r *http.Request) (continuo.Conversation, continuo.Turn, error) {
	conversation, err := s.conversation(r)
	if err != nil {
		return conversation, continuo.Turn{}, err
	}
	found, err := s.engine.Turn(r.Context(), conversation, r.PathValue("turn"))
	return conversation, found, err
}

// turnPlace is a cursor of the list of turns.
type turnPlace struct {
	StartedAt time.Time `json:"started_at"`
	ID        string    `json:"id"`
}

func (s *server) listTurns(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := q.whole("limit", 1, 100, 20)
	if err != nil {
		return err
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	query := continuo.TurnQuery{ConversationID: conversation.ID, Limit: int(limit) + 1}
	if q.has("cursor") {
		var place turnPlace
		if err := q.cursor(&place); err != nil {
			return err
		}
		query.Before = continuo.TurnCursor(place)
	}
	found, err := s.engine.Turns(r.Context(), query)
	if err != nil {
		return err
	}
	page := list[continuo.Turn]{Data: append([]continuo.Turn{}, found...)}
	if len(found) > int(limit) {
		page.Data, page.HasMore = page.Data[:limit], true
		last := page.Data[limit-1]
		page.NextCursor = writeCursor(turnPlace{last.StartedAt, last.ID})
	}
	return writeJSON(w, http.StatusOK, page)
}

func (s *server) getTurn(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	_, found, err := s.turn(r)
	if err != nil {
		return err
	}
	return s.writeTurn(w, r, http.StatusOK, found)
}

// writeTurn answers with a turn and the calls that it waits for.
func (s *server) writeTurn(w http.ResponseWriter, r *http.Request, status int, t continuo.Turn) error {
	shown := shownTurn{Turn: t}
	if t.State == continuo.TurnRunning {
		waiting, err := s.engine.Waiting(r.Context(), t)
		if err != nil {
			return err
		}
		for _, call := range waiting {
			shown.WaitingFor = append(shown.WaitingFor, callEvent{call.ID, call.Name, call.Arguments})
		}
	}
	return writeJSON(w, status, shown)
}

// turnEvents streams a turn's events from the start or after the one that the client saw last, live or
// over. A client that has seen the last one already is told to stop asking: 204, as EventSource has it.
func (s *server) turnEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "after")
	if err != nil {
		return err
	}
	after, err := q.whole("after", 0, maxSeq, 0)
	if err != nil {
		return err
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		after, err = strconv.ParseInt(last, 10, 64)
		if err != nil || after < 0 {
			return refuse("Last-Event-ID", "Last-Event-ID must be the id of an event of this turn, not %q", last)
		}
	}
	conversation, found, err := s.turn(r)
	if err != nil {
		return err
	}
	if found.State != continuo.TurnRunning && found.LastEvent > 0 && after >= found.LastEvent {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	p := &progress{begun: true, ids: chatIDs{SessionID: conversation.ID, ConversationID: conversation.ID, TurnID: found.ID}}
	return s.stream(w, r, s.engine.Follow(r.Context(), found, after), p)
}

// resumeTurn goes on with a turn that failed, and answers as POST /chat does.
func (s *server) resumeTurn(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		Model  string        `json:"model"`
		View   string        `json:"view"`
		Stream *bool         `json:"stream"`
		OnBusy engine.OnBusy `json:"on_busy"`
	}
	if err := s.readOptional(w, r, &request); err != nil {
		return err
	}
	if err := s.checkNames(request.Model, request.View, request.OnBusy); err != nil {
		return err
	}
	_, found, err := s.turn(r)
	if err != nil {
		return err
	}
	chat, err := s.engine.Resume(r.Context(), engine.ResumeRequest{
		Turn: found, Model: request.Model, View: request.View, OnBusy: request.OnBusy, Detached: true,
	})
	if err != nil {
		return err
	}
	return s.answer(w, r, chat, request.Stream, "")
}

// cancelTurn stops a turn. One that has ended is shown as it is.
func (s *server) cancelTurn(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	conversation, found, err := s.turn(r)
	if err != nil {
		return err
	}
	if found.State != continuo.TurnRunning {
		return s.writeTurn(w, r, http.StatusOK, found)
	}
	if err := s.engine.Cancel(r.Context(), found); err != nil && !errors.Is(err, continuo.ErrNotRunning) {
		return err
	}
	if found, err = s.engine.Turn(r.Context(), conversation, found.ID); err != nil {
		return err
	}
	return s.writeTurn(w, r, http.StatusAccepted, found)
}

// decide lets a call that waits for a person run, or not.
func (s *server) decide(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		ToolCallID string `json:"tool_call_id"`
		Decision   string `json:"decision"`
		Reason     string `json:"reason"`
	}
	if _, err := parseQuery(r); err != nil {
		return err
	}
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	if err := decode(body, &request); err != nil {
		return err
	}
	switch {
	case request.ToolCallID == "":
		return refuse("tool_call_id", "tool_call_id must name the call that is decided on")
	case request.Decision != "allow" && request.Decision != "deny":
		return refuse("decision", "decision must be allow or deny")
	}
	conversation, found, err := s.turn(r)
	if err != nil {
		return err
	}
	decision := turn.Decision{Allowed: request.Decision == "allow", Reason: bounded(request.Reason)}
	if err := s.engine.Decide(r.Context(), found, request.ToolCallID, decision); err != nil {
		return at("tool_call_id", err)
	}
	if found, err = s.engine.Turn(r.Context(), conversation, found.ID); err != nil {
		return fmt.Errorf("decided, but: %w", err)
	}
	return s.writeTurn(w, r, http.StatusAccepted, found)
}
