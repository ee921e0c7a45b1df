package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
)

func (s *Service) crewOperations() []Operation {
	const one = "/api/crews/{crew}"
	invalid := shared(http.StatusUnprocessableEntity, "CrewInvalid")
	stream := events[CrewStream]()
	return []Operation{
		define(Operation{
			ID: "listCrews", Method: "GET", Path: "/api/crews", Tag: "crews", Summary: "list the crews",
			Answers: answers(ok("All crews.")),
		}, s.ListCrews),
		define(Operation{
			ID: "showCrewSchema", Method: "GET", Path: "/api/crews/schema", Tag: "crews", Summary: "show the JSON Schema of crews' files",
			Public: true, Answers: answers(ok("The schema (JSON Schema, draft 2020-12).").as(jsonSchema)),
		}, s.ShowCrewSchema),
		define(Operation{
			ID: "getCrew", Method: "GET", Path: one, Tag: "crews", Summary: "show a crew",
			Answers: answers(
				ok("The crew, parsed and as text. For the tokens of bots it has only the names of variables."),
				failing(404, "There is no such crew (`not_found`); the message suggests the nearest id."), invalid,
			),
		}, s.GetCrew),
		define(Operation{
			ID: "sendCrewMessage", Method: "POST", Path: one + "/messages", Tag: "crews", Summary: "send a message to a crew",
			Answers: answers(
				accepted("The message is in the log. The state of the crew."), ok("The crew's events, as a stream.").as(stream),
				failing(404, "There is no such crew, or no conversation with that id (`not_found`, with `session_id` in `param`)."),
				failing(409, "Calls of a role have waited for their results for too long (`conversation_busy`), the `Idempotency-Key` was used "+
					"for another message (`idempotency_conflict`), or the conversation is archived (`archived`)."),
				invalid,
			),
		}, s.SendCrewMessage),
		define(Operation{
			ID: "followCrew", Method: "GET", Path: one + "/events", Tag: "crews", Summary: "follow a crew, live or from its start",
			Answers: answers(ok("The events.").as(stream), Answer{Status: http.StatusNoContent, Description: streamOver}),
		}, s.FollowCrew),
	}
}

// CrewPath names a crew.
type CrewPath struct {
	// A crew's id.
	Crew string `path:"crew"`
}

// CrewRow is a row of the list of crews: a crew, or a file that is invalid.
type CrewRow struct {
	*crew.Summary
	*BrokenFile
}

// ListCrews lists the crews.
//
// The valid ones by id, and then the invalid files, each with all of its problems. They are the same for all projects. The
// list has one page.
func (s *Service) ListCrews(context.Context, continuo.Scope, Nothing) (All[CrewRow], error) {
	return CrewList(s.Engine.Crews.List())
}

// CrewList makes the list of crews from the valid ones and the problems of the invalid files. It returns other errors.
func CrewList(found []*crew.Crew, problems error) (list All[CrewRow], err error) {
	broken, err := brokenFiles(problems)
	list.Data = []CrewRow{}
	for _, one := range found {
		summary := one.Summary()
		list.Data = append(list.Data, CrewRow{Summary: &summary})
	}
	for i := range broken {
		list.Data = append(list.Data, CrewRow{BrokenFile: &broken[i]})
	}
	return list, err
}

// ShowCrewSchema shows the JSON Schema of crews' files.
//
// For editors, which use it to check and complete a file. A crew whose id is `schema` can be used, but `GET
// /api/crews/{crew}` does not show it.
func (s *Service) ShowCrewSchema(context.Context, continuo.Scope, Nothing) ([]byte, error) {
	return crew.Schema(), nil
}

// GetCrew shows a crew.
func (s *Service) GetCrew(_ context.Context, _ continuo.Scope, in CrewPath) (shown crew.Shown, err error) {
	found, err := s.crew(in.Crew)
	if err != nil {
		return shown, err
	}
	return found.Shown(), nil
}

// crew finds a crew, or suggests the nearest id.
func (s *Service) crew(id string) (*crew.Crew, error) {
	if !engine.DefinitionIDPattern.MatchString(id) { // it is not looked up
		return nil, s.noCrew(id)
	}
	found, err := s.Engine.Crews.Get(id)
	var problems *crew.Problems
	switch {
	case errors.As(err, &problems):
		return nil, FileInvalid("crew_invalid", "the crew's file is not right", problems)
	case errors.Is(err, continuo.ErrNotFound):
		return nil, s.noCrew(id)
	}
	return found, err
}

// noCrew is the error about an id that no crew has.
func (s *Service) noCrew(id string) error {
	known, _ := s.Engine.Crews.List()
	names := make([]string, len(known))
	for i := range known {
		names[i] = known[i].ID
	}
	return fmt.Errorf("crew %q: %w%s", Bounded(id), continuo.ErrNotFound, suggestion(id, names))
}

// CrewMessage is a message to a crew.
type CrewMessage struct {
	CrewPath
	Once
	// The conversation, by its id or key; an unknown key begins one. The default is `crew:` and the crew's id.
	SessionID string `json:"session_id,omitempty"`
	// The owner of a new conversation. A conversation without an owner gets this one; another user's is refused with
	// 403, `other_user`.
	UserID  UserID           `json:"user_id,omitempty"`
	Message continuo.Content `json:"message"`
	// The speaker, where several people speak.
	Author *Speaker `json:"author,omitempty"`
}

// Check refuses an empty message, and a text that cannot be a conversation's id or key.
func (in *CrewMessage) Check() error {
	if in.Message.IsBlank() {
		return Refuse("message", "message must be a string or a list of parts, with visible text")
	}
	return checkSession(in.SessionID)
}

// Speaker is a person who speaks to a crew. All other fields of an entry's author are refused: no client can speak as a
// role.
type Speaker struct {
	DisplayName string `json:"display_name" doc:"minLength=1,maxLength=64"`
}

// maxDisplayName bounds a person's name, in Unicode characters.
const maxDisplayName = 64

// UnmarshalJSON reads the speaker and checks the name.
func (s *Speaker) UnmarshalJSON(data []byte) error {
	if !isObject(data) {
		return Refuse("author", "author must be an object whose fields come once")
	}
	type fields Speaker
	if err := decodeObject(data, (*fields)(s)); err != nil {
		return Refuse("author", "author: %s", ProblemOf(err).Message)
	}
	if strings.TrimSpace(s.DisplayName) == "" || utf8.RuneCountInString(s.DisplayName) > maxDisplayName {
		return Refuse("author", "author.display_name must be a name of at most %d characters", maxDisplayName)
	}
	return nil
}

// SendCrewMessage sends a message to a crew.
//
// It begins a cycle, in which the roles speak in turn until none has anything to add; during a cycle the message becomes
// part of it. An unknown session begins a conversation. **The crew continues when the client disconnects**, until its
// cycle ends, fails or is stopped; it also continues after a crash.
//
// The answer is sent as soon as the message is in the log. With `Accept: text/event-stream` it is the stream of `GET
// /api/crews/{crew}/events` from the first entry of the message's cycle.
//
// A request that is sent again with its `Idempotency-Key` gets the cycle of its message.
func (s *Service) SendCrewMessage(ctx context.Context, scope continuo.Scope, in CrewMessage) (*engine.CrewStatus, error) {
	if _, err := scope.Owner(string(in.UserID)); err != nil {
		return nil, At("user_id", err)
	}
	if _, err := s.crew(in.Crew); err != nil {
		return nil, err
	}
	message := engine.CrewMessage{
		Session: engine.CrewSession{Scope: scope, Crew: in.Crew, UserID: string(in.UserID), SessionID: in.SessionID},
		Message: in.Message, Key: string(in.Key), Detached: true,
	}
	if in.Author != nil {
		message.Author = &continuo.Author{DisplayName: in.Author.DisplayName}
	}
	status, err := s.Engine.Crews.Send(ctx, message)
	return status, aboutSession(err)
}

// CrewEvents is a request to follow a crew.
type CrewEvents struct {
	CrewQuery
	After
}

// FollowedCrew is a crew in a conversation, whose events a client follows from an entry on.
type FollowedCrew struct {
	Session        engine.CrewSession
	ConversationID string
	Seq            int64 // of the newest entry that the client has received
}

// FollowCrew finds the crew that a client follows; the adapter sends its events.
//
// The entries of the conversation after the last one that the client received, or else since the newest cycle began, and
// then new ones, until the crew is idle: its newest cycle has ended, failed or was stopped. Every client gets each entry
// once and in order, whichever process runs the crew; a client that was disconnected continues with `Last-Event-ID`, which
// an `EventSource` sends by itself, also over several cycles.
//
// The live events of the speaking role's turn come between the entries, as in the turn's own stream, with the role but
// without ids. They are not sent again after a reconnect: the entries contain the same text.
func (s *Service) FollowCrew(ctx context.Context, scope continuo.Scope, in CrewEvents) (followed FollowedCrew, err error) {
	session, conversation, err := s.inSession(ctx, scope, in.Crew, in.SessionID)
	if err != nil {
		return followed, err
	}
	followed = FollowedCrew{session, conversation.ID, in.Seq}
	if in.Seq == 0 {
		newest, err := s.Engine.Crews.CycleAt(ctx, session, conversation.ID, maxSeq)
		if err != nil {
			return followed, err
		}
		followed.Seq = newest.FirstSeq - 1
	}
	return followed, nil
}
