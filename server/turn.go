package server

import (
	"errors"
	"net/http"
	"slices"
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

// public removes the fields that are only for the programs that share the store.
func public(t continuo.Turn) continuo.Turn {
	t.Owner, t.Fence, t.Fingerprint, t.LeaseUntil, t.LeaseExpired = "", 0, "", time.Time{}, false
	return t
}

// turn finds the turn that a path names.
func (s *server) turn(r *http.Request) (continuo.Conversation, continuo.Turn, error) {
	conversation, err := s.conversation(r)
	if err != nil {
		return conversation, continuo.Turn{}, err
	}
	found, err := s.engine.Turns.Get(r.Context(), conversation, r.PathValue("turn"))
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
	found, err := s.engine.Turns.List(r.Context(), query)
	if err != nil {
		return err
	}
	shown := []continuo.Turn{}
	for _, t := range found {
		shown = append(shown, public(t))
	}
	return writeJSON(w, http.StatusOK, paged(shown, limit, func(t continuo.Turn) any { return turnPlace{t.StartedAt, t.ID} }))
}

func (s *server) getTurn(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	_, _, shown, err := s.shown(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, shown)
}

// shown finds the turn that a path names, and converts it to the form for clients, with the calls that it waits for.
func (s *server) shown(r *http.Request) (conversation continuo.Conversation, found continuo.Turn, shown shownTurn, err error) {
	conversation, found, err = s.turn(r)
	shown.Turn = public(found)
	if err != nil || found.State != continuo.TurnRunning {
		return conversation, found, shown, err
	}
	waiting, err := s.engine.Turns.Waiting(r.Context(), found)
	for _, call := range waiting {
		shown.WaitingFor = append(shown.WaitingFor, callEvent{call.ID, call.Name, call.Arguments, call.Until})
	}
	return conversation, found, shown, err
}

// turnEvents streams a turn's events from the start or after the last one that the client has seen, live or from the
// log. A client that has received the last one gets 204, which stops an EventSource from reconnecting.
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
	var out *eventStream
	if found.State == continuo.TurnRunning { // it may be silent for long
		out = newEventStream(w, s.options.KeepAlive)
		out.open()
	}
	p := &progress{begun: true, ids: chatIDs{SessionID: r.PathValue("id"), ConversationID: conversation.ID, TurnID: found.ID}}
	err = s.stream(w, r, out, s.engine.Turns.Follow(r.Context(), found, after), p)
	if errors.Is(err, errNothingToSend) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return err
}

// resumeTurn resumes a turn that failed, and answers as POST /chat does.
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
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	_, found, err := s.turn(r)
	if err != nil {
		return err
	}
	chat, err := s.engine.Turns.Resume(r.Context(), engine.ResumeRequest{
		Turn: found, Model: request.Model, View: request.View, OnBusy: request.OnBusy, Key: key, Detached: true,
	})
	if err != nil {
		return err
	}
	return s.answer(w, r, chat, request.Stream, r.PathValue("id"))
}

// cancelTurn stops a turn: the answer is 202 with the turn's state before, since it takes a moment to end. A turn that
// has ended already is shown as it is.
func (s *server) cancelTurn(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	conversation, found, shown, err := s.shown(r)
	if err != nil {
		return err
	}
	switch err := s.engine.Turns.Cancel(r.Context(), found); {
	case err == nil:
		return writeJSON(w, http.StatusAccepted, shown)
	case !errors.Is(err, continuo.ErrNotRunning):
		return err
	}
	if found, err = s.engine.Turns.Get(r.Context(), conversation, found.ID); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, public(found))
}

// decide approves or denies a call that waits for a person: the answer is 202 with the turn's state before, without
// that call.
func (s *server) decide(w http.ResponseWriter, r *http.Request) error {
	callID, decision, err := s.readDecision(w, r)
	if err != nil {
		return err
	}
	_, found, shown, err := s.shown(r)
	if err != nil {
		return err
	}
	if err := s.engine.Turns.Decide(r.Context(), found, callID, decision); errors.Is(err, continuo.ErrNotFound) {
		return at("tool_call_id", err)
	} else if err != nil {
		return err
	}
	shown.WaitingFor = slices.DeleteFunc(shown.WaitingFor, func(call callEvent) bool { return call.ID == callID })
	return writeJSON(w, http.StatusAccepted, shown)
}

// readDecision reads the body of …/approvals.
func (s *server) readDecision(w http.ResponseWriter, r *http.Request) (callID string, decision turn.Decision, err error) {
	var request struct {
		ToolCallID string `json:"tool_call_id"`
		Decision   string `json:"decision"`
		Reason     string `json:"reason"`
	}
	if err := s.readOptional(w, r, &request); err != nil {
		return "", decision, err
	}
	switch {
	case request.ToolCallID == "":
		return "", decision, refuse("tool_call_id", "tool_call_id must name the call that is decided on")
	case request.Decision != "allow" && request.Decision != "deny":
		return "", decision, refuse("decision", "decision must be allow or deny")
	}
	return request.ToolCallID, turn.Decision{Allowed: request.Decision == "allow", Reason: bounded(request.Reason)}, nil
}
