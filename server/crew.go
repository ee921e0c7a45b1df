package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
)

func (s *server) listCrews(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	found, err := s.engine.Crews.List()
	rows := []any{}
	for _, one := range found {
		rows = append(rows, one.Summary())
	}
	return listFiles(w, rows, err)
}

// showCrewSchema shows the JSON Schema that editors check crews' files against. A crew whose id is schema can be used,
// but not shown.
func (s *server) showCrewSchema(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	return writeBody(w, http.StatusOK, "application/schema+json", crew.Schema())
}

func (s *server) getCrew(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	found, err := s.crew(r.PathValue("crew"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, found.Shown())
}

// crew finds a crew, or suggests the nearest id. Ids of crews look like those of workflows.
func (s *server) crew(id string) (*crew.Crew, error) {
	if !workflowPattern.MatchString(id) {
		return nil, s.noCrew(id)
	}
	found, err := s.engine.Crews.Get(id)
	var problems *crew.Problems
	switch {
	case errors.As(err, &problems):
		return nil, api.FileInvalid("crew_invalid", "the crew's file is not right", problems)
	case errors.Is(err, continuo.ErrNotFound):
		return nil, s.noCrew(id)
	}
	return found, err
}

// noCrew is the problem of an id that no crew has.
func (s *server) noCrew(id string) error {
	known, _ := s.engine.Crews.List()
	names := make([]string, len(known))
	for i := range known {
		names[i] = known[i].ID
	}
	return fmt.Errorf("crew %q: %w%s", bounded(id), continuo.ErrNotFound, suggestion(id, names))
}

// crewMessage is the body of POST /api/crews/{crew}/messages.
type crewMessage struct {
	SessionID string           `json:"session_id"`
	UserID    string           `json:"user_id"` // the owner of a new conversation
	Message   continuo.Content `json:"message"`
	Author    json.RawMessage  `json:"author"`

	speaker *continuo.Author // the parsed author; nil for none
}

// maxDisplayName bounds a person's name, in Unicode characters.
const maxDisplayName = 64

// readSpeaker reads a person's name. All other fields of an entry's author are refused: no client can speak as a role.
func readSpeaker(author json.RawMessage) (*continuo.Author, error) {
	if rawjson.IsNull(author) {
		return nil, nil
	}
	if eachMember(author, func(string, json.RawMessage) error { return nil }) != nil {
		return nil, refuse("author", "author must be an object whose fields come once")
	}
	var fields struct {
		DisplayName string `json:"display_name"`
	}
	if err := decode(author, &fields); err != nil {
		return nil, refuse("author", "author: %s", problemOf(err).Message)
	}
	if strings.TrimSpace(fields.DisplayName) == "" || utf8.RuneCountInString(fields.DisplayName) > maxDisplayName {
		return nil, refuse("author", "author.display_name must be a name of at most %d characters", maxDisplayName)
	}
	return &continuo.Author{DisplayName: fields.DisplayName}, nil
}

// sayToCrew sends a message to a crew. The crew continues when the client disconnects.
func (s *server) sayToCrew(w http.ResponseWriter, r *http.Request) error {
	request, err := s.readCrewMessage(w, r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if _, err := s.crew(r.PathValue("crew")); err != nil {
		return err
	}
	session := crewSession(r, request.SessionID)
	session.UserID = request.UserID
	status, err := s.engine.Crews.Say(r.Context(), engine.CrewMessage{
		CrewSession: session, Message: request.Message, Author: request.speaker, Key: key, Detached: true,
	})
	if err != nil {
		return aboutSession(err)
	}
	if accepts(r, "text/event-stream") {
		return s.streamCrew(w, r, &crewListener{session: session, conversation: status.ConversationID, seq: status.FirstSeq - 1})
	}
	return writeJSON(w, http.StatusAccepted, status)
}

// readCrewMessage reads and checks a message to a crew.
func (s *server) readCrewMessage(w http.ResponseWriter, r *http.Request) (request crewMessage, err error) {
	if _, err := parseQuery(r); err != nil {
		return request, err
	}
	body, err := s.readBody(w, r)
	if err != nil {
		return request, err
	}
	if err := decode(body, &request); err != nil {
		return request, err
	}
	if _, err := scopeOf(r).Owner(request.UserID); err != nil {
		return request, at("user_id", err)
	}
	if err := checkMessage(request.Message); err != nil {
		return request, err
	}
	if request.speaker, err = readSpeaker(request.Author); err != nil {
		return request, err
	}
	return request, checkSession(request.SessionID)
}

// checkSession refuses a text that cannot be a conversation's id or key.
func checkSession(id string) error {
	if id == "" || engine.KeyPattern.MatchString(id) {
		return nil
	}
	return refuse("session_id", "session_id must be a conversation's id, or a key of up to 128 letters, digits and ._:@-")
}

// crewSession is the session that a request names; "" is the crew's own.
func crewSession(r *http.Request, sessionID string) engine.CrewSession {
	return engine.CrewSession{Scope: scopeOf(r), Crew: r.PathValue("crew"), SessionID: sessionID}
}

// aboutSession says that an error is about the conversation that a request names: the crew was looked up before.
func aboutSession(err error) error {
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrBusy) || errors.Is(err, continuo.ErrArchived) || errors.Is(err, continuo.ErrOtherUser) {
		return at("session_id", err)
	}
	return err
}

// inSession finds the conversation and checks that the request's crew has taken part in it. That a crew has taken part
// is stored permanently, so that a crew whose file is gone is still found.
func (s *server) inSession(r *http.Request, sessionID string) (session engine.CrewSession, conversation continuo.Conversation, err error) {
	session = crewSession(r, sessionID)
	if err := checkSession(sessionID); err != nil {
		return session, conversation, err
	}
	if !workflowPattern.MatchString(session.Crew) {
		return session, conversation, s.noCrew(session.Crew)
	}
	name := cmp.Or(sessionID, continuo.CrewWorkflow(session.Crew))
	conversation, err = s.engine.Log.Find(r.Context(), session.Scope, name)
	if err == nil && !conversation.ArchivedAt.IsZero() {
		err = fmt.Errorf("session %q: %w", bounded(name), continuo.ErrArchived)
	}
	if err == nil {
		_, err = s.cycleAt(r, session, conversation.ID, maxSeq)
	}
	if errors.Is(err, continuo.ErrNotFound) {
		if _, unknown := s.crew(session.Crew); unknown != nil {
			return session, conversation, unknown
		}
		err = fmt.Errorf("session %q: %w: crew %s has not been there", bounded(name), continuo.ErrNotFound, session.Crew)
	}
	return session, conversation, aboutSession(err)
}

func (s *server) getCrewStatus(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "session_id")
	if err != nil {
		return err
	}
	session, _, err := s.inSession(r, q.text("session_id"))
	if err != nil {
		return err
	}
	status, err := s.engine.Crews.Status(r.Context(), session)
	if err != nil {
		return aboutSession(err)
	}
	return writeJSON(w, http.StatusOK, status)
}

// stopCrew stops a crew until a client resumes it or sends a message.
func (s *server) stopCrew(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		SessionID string `json:"session_id"`
		Reason    string `json:"reason"`
	}
	return s.changeCrew(w, r, &request, &request.SessionID, func(session engine.CrewSession) (*engine.CrewStatus, error) {
		if utf8.RuneCountInString(request.Reason) > maxReason {
			return nil, refuse("reason", "reason must have at most %d characters", maxReason)
		}
		return s.engine.Crews.Stop(r.Context(), session, cmp.Or(request.Reason, "a person stopped it"))
	})
}

// resumeCrew resumes a cycle that failed, was stopped, or whose process is gone.
func (s *server) resumeCrew(w http.ResponseWriter, r *http.Request) error {
	var request sessionRequest
	return s.changeCrew(w, r, &request, &request.SessionID, func(session engine.CrewSession) (*engine.CrewStatus, error) {
		return s.engine.Crews.Resume(r.Context(), session, true)
	})
}

// resetCrew starts a crew's conversation afresh.
func (s *server) resetCrew(w http.ResponseWriter, r *http.Request) error {
	return s.turnPage(w, r, s.engine.Crews.Reset)
}

// restoreCrew undoes a reset.
func (s *server) restoreCrew(w http.ResponseWriter, r *http.Request) error {
	return s.turnPage(w, r, s.engine.Crews.Restore)
}

// sessionRequest is the body of calls that change a crew.
type sessionRequest struct {
	SessionID string `json:"session_id"`
}

// turnPage resets or restores a crew, once for each Idempotency-Key.
func (s *server) turnPage(w http.ResponseWriter, r *http.Request, turn func(context.Context, engine.CrewSession, string) (*engine.CrewStatus, error)) error {
	var request sessionRequest
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	return s.changeCrew(w, r, &request, &request.SessionID, func(session engine.CrewSession) (*engine.CrewStatus, error) {
		return turn(r.Context(), session, key)
	})
}

// changeCrew reads an optional body with a session, changes the crew's state there, and answers with its status. The
// answer is 202, since the process that runs its turns learns of the change a moment later.
func (s *server) changeCrew(w http.ResponseWriter, r *http.Request, body any, sessionID *string, change func(engine.CrewSession) (*engine.CrewStatus, error)) error {
	if err := s.readOptional(w, r, body); err != nil {
		return err
	}
	session, _, err := s.inSession(r, *sessionID)
	if err != nil {
		return err
	}
	status, err := change(session)
	if err != nil {
		return aboutSession(err)
	}
	return writeJSON(w, http.StatusAccepted, status)
}
