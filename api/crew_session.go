package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// crewSessionOperations read and change the state of a crew in a conversation.
func (s *Service) crewSessionOperations() []Operation {
	const crew = "/api/crews/{crew}"
	changed := answers(accepted("The state of the crew."), shared(http.StatusConflict, "CrewConflict"))
	return []Operation{
		define(Operation{
			ID: "getCrewStatus", Method: "GET", Path: crew + "/status", Tag: "crews", Summary: "show the state of a crew in a session",
			Answers: answers(ok("Its newest cycle, and each role.")),
		}, s.GetCrewStatus),
		define(Operation{
			ID: "stopCrew", Method: "POST", Path: crew + "/stop", Tag: "crews", Summary: "stop a crew until it is resumed or spoken to", Answers: changed,
		}, s.StopCrew),
		define(Operation{
			ID: "resumeCrew", Method: "POST", Path: crew + "/resume", Tag: "crews", Summary: "resume a cycle that failed or was stopped", Answers: changed,
		}, s.ResumeCrew),
		define(Operation{
			ID: "resetCrew", Method: "POST", Path: crew + "/reset", Tag: "crews",
			Summary: "hide the history from a crew's roles; nothing is deleted", Answers: changed,
		}, s.ResetCrew),
		define(Operation{
			ID: "restoreCrew", Method: "POST", Path: crew + "/restore", Tag: "crews", Summary: "take a reset back", Answers: changed,
		}, s.RestoreCrew),
	}
}

// CrewQuery names a crew in a session.
type CrewQuery struct {
	CrewPath
	// The conversation that the crew works in, by its id or key. The default is `crew:` and the crew's id.
	SessionID string `query:"session_id"`
}

// GetCrewStatus shows the state of a crew.
func (s *Service) GetCrewStatus(ctx context.Context, scope continuo.Scope, in CrewQuery) (*engine.CrewStatus, error) {
	return s.changeCrew(ctx, scope, in.Crew, in.SessionID, s.Engine.Crews.Status)
}

// CrewStopRequest is a request to stop a crew.
type CrewStopRequest struct {
	CrewPath
	// The conversation, by its id or key. The default is `crew:` and the crew's id.
	SessionID string `json:"session_id,omitempty"`
	// Recorded in the log.
	Reason string `json:"reason,omitempty" maxLength:"500"`
}

// StopCrew stops a crew until a client resumes it or sends a message.
//
// Whichever process runs it. The turn of the speaking role ends with the text that it has produced. An idle crew is left
// unchanged.
func (s *Service) StopCrew(ctx context.Context, scope continuo.Scope, in CrewStopRequest) (*engine.CrewStatus, error) {
	return s.changeCrew(ctx, scope, in.Crew, in.SessionID, func(ctx context.Context, session engine.CrewSession) (*engine.CrewStatus, error) {
		return s.Engine.Crews.Stop(ctx, session, cmp.Or(in.Reason, "a person stopped it"))
	})
}

// CrewSessionRequest is a request to change the state of a crew in a conversation.
type CrewSessionRequest struct {
	CrewPath
	// The conversation, by its id or key. The default is `crew:` and the crew's id.
	SessionID string `json:"session_id,omitempty"`
}

// ResumeCrew resumes a cycle.
//
// One that failed or was stopped resumes with the role whose turn is next, as does one whose process is gone. A running
// cycle is left unchanged.
func (s *Service) ResumeCrew(ctx context.Context, scope continuo.Scope, in CrewSessionRequest) (*engine.CrewStatus, error) {
	return s.changeCrew(ctx, scope, in.Crew, in.SessionID, func(ctx context.Context, session engine.CrewSession) (*engine.CrewStatus, error) {
		return s.Engine.Crews.Resume(ctx, session, true)
	})
}

// CrewResetRequest is a request to change the state of a crew once.
type CrewResetRequest struct {
	CrewSessionRequest
	Once
}

// ResetCrew hides the history from a crew's roles.
//
// A running cycle is stopped, and no role is shown the entries up to then. Nothing is deleted: `restore` takes it back. A
// request that is sent again with its `Idempotency-Key` resets nothing.
func (s *Service) ResetCrew(ctx context.Context, scope continuo.Scope, in CrewResetRequest) (*engine.CrewStatus, error) {
	return s.changeCrew(ctx, scope, in.Crew, in.SessionID, func(ctx context.Context, session engine.CrewSession) (*engine.CrewStatus, error) {
		return s.Engine.Crews.Reset(ctx, session, string(in.Key))
	})
}

// RestoreCrew takes a reset back.
//
// The newest one that was not taken back yet: the roles are shown the entries before it again. The entries since then
// stay. A request that is sent again with its `Idempotency-Key` restores nothing.
func (s *Service) RestoreCrew(ctx context.Context, scope continuo.Scope, in CrewResetRequest) (*engine.CrewStatus, error) {
	return s.changeCrew(ctx, scope, in.Crew, in.SessionID, func(ctx context.Context, session engine.CrewSession) (*engine.CrewStatus, error) {
		return s.Engine.Crews.Restore(ctx, session, string(in.Key))
	})
}

// changeCrew finds a crew in a session and changes its state, or reads it.
func (s *Service) changeCrew(
	ctx context.Context, scope continuo.Scope, crew, sessionID string, change func(context.Context, engine.CrewSession) (*engine.CrewStatus, error),
) (*engine.CrewStatus, error) {
	session, _, err := s.inSession(ctx, scope, crew, sessionID)
	if err != nil {
		return nil, err
	}
	status, err := change(ctx, session)
	return status, aboutSession(err)
}

// inSession finds a session's conversation and checks that the crew has taken part in it. That a crew has taken part is
// stored permanently, so that a crew whose file is gone is still found.
func (s *Service) inSession(ctx context.Context, scope continuo.Scope, crew, sessionID string) (engine.CrewSession, continuo.Conversation, error) {
	session := engine.CrewSession{Scope: scope, Crew: crew, SessionID: sessionID}
	if err := checkSession(sessionID); err != nil {
		return session, continuo.Conversation{}, err
	}
	if !engine.DefinitionIDPattern.MatchString(crew) {
		return session, continuo.Conversation{}, s.noCrew(crew)
	}
	name := cmp.Or(sessionID, continuo.CrewWorkflow(crew))
	conversation, err := s.Engine.Conversations.Find(ctx, scope, name)
	if err == nil && !conversation.ArchivedAt.IsZero() {
		err = fmt.Errorf("session %q: %w", Bounded(name), continuo.ErrArchived)
	}
	if err == nil {
		_, err = s.Engine.Crews.CycleAt(ctx, session, conversation.ID, maxSeq)
	}
	if errors.Is(err, continuo.ErrNotFound) {
		if _, unknown := s.crew(crew); unknown != nil {
			return session, conversation, unknown
		}
		err = fmt.Errorf("session %q: %w: crew %s has not been there", Bounded(name), continuo.ErrNotFound, crew)
	}
	return session, conversation, aboutSession(err)
}

// checkSession refuses a text that cannot be a conversation's id or key.
func checkSession(id string) error {
	if id == "" || engine.KeyPattern.MatchString(id) {
		return nil
	}
	return Refuse("session_id", "session_id must be a conversation's id, or a key of up to 128 letters, digits and ._:@-")
}

// aboutSession says that an error is about the conversation that a request names: the crew was looked up before.
func aboutSession(err error) error {
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrBusy) || errors.Is(err, continuo.ErrArchived) || errors.Is(err, continuo.ErrOtherUser) {
		return At("session_id", err)
	}
	return err
}
