package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
)

func (s *Service) turnOperations() []Operation {
	const turns, one, tag = "/api/conversations/{id}/turns", "/api/conversations/{id}/turns/{turn}", "turns"
	return []Operation{
		define(Operation{
			ID: "listTurns", Method: "GET", Path: turns, Tag: tag, Summary: "list its turns, the newest first",
			Answers: answers(ok("A page of turns.")),
		}, s.ListTurns),
		define(Operation{
			ID: "getTurn", Method: "GET", Path: one, Tag: tag, Summary: "show a turn",
			Answers: answers(ok("The turn, and the calls that wait for a person's decision.")),
		}, s.GetTurn),
		define(Operation{
			ID: "followTurn", Method: "GET", Path: one + "/events", Tag: tag, Summary: "follow a turn, live or from its start",
			Answers: answers(ok("The events.").as(events[EventStream]()), Answer{
				Status:      http.StatusNoContent,
				Description: "The turn has ended, and the client has received its last event. An `EventSource` stops reconnecting then.",
			}),
		}, (func(context.Context, continuo.Scope, TurnEvents) (None, error))(nil)),
		define(Operation{
			ID: "resumeTurn", Method: "POST", Path: one + "/resume", Tag: tag, Summary: "resume a turn that failed",
			Answers: turnAnswers("The answer of the new turn.",
				"The turn did not fail, or the conversation has continued since (`not_resumable`); the conversation is busy "+
					"(`conversation_busy`); or the new turn was stopped (`llm_error`).",
				"As for `POST /chat`."),
		}, (func(context.Context, continuo.Scope, TurnResumeRequest) (ChatAnswer, error))(nil)),
		define(Operation{
			ID: "cancelTurn", Method: "POST", Path: one + "/cancel", Tag: tag, Summary: "stop a turn",
			Answers: answers(ok("The turn had ended already; this is how."), accepted("The turn is stopped; this was its state before.")),
		}, s.CancelTurn),
		define(Operation{
			ID: "decide", Method: "POST", Path: one + "/approvals", Tag: tag, Summary: "decide on a call that waits for it",
			Answers: answers(
				accepted("The decision is recorded; this was the state of the turn before, without the call."),
				failing(http.StatusNotFound, "There is no such turn, or no such call waits for a decision (`not_found`)."),
				failing(http.StatusConflict, "The turn has ended (`not_running`)."),
			),
		}, s.Decide),
	}
}

// TurnPath names a turn in a path.
type TurnPath struct {
	ConversationPath
	// A turn's id.
	Turn string `path:"turn"`
}

// Turn is one user input and everything until its final answer.
type Turn struct {
	continuo.Turn
	// The calls that wait for a person's decision; absent in lists, and when there are none.
	WaitingFor []ToolCallEvent `json:"waiting_for,omitempty"`
}

// InternalTurnMembers are the members of a turn that are only for the programs that share the store.
var InternalTurnMembers = []string{"owner", "fence", "lease_until", "lease_expired", "fingerprint"}

// public removes the fields that are only for the programs that share the store.
func public(t continuo.Turn) Turn {
	t.Owner, t.Fence, t.Fingerprint, t.LeaseUntil, t.LeaseExpired = "", 0, "", time.Time{}, false
	return Turn{Turn: t}
}

// TurnFilter selects a page of a conversation's turns.
type TurnFilter struct {
	ConversationPath
	// The maximum number of turns.
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor
}

// turnCursor is a cursor of the list of turns.
type turnCursor struct {
	StartedAt time.Time `json:"started_at"`
	ID        string    `json:"id"`
}

// ListTurns lists a conversation's turns.
//
// The newest first. Turns that wrote nothing to the log are not listed.
func (s *Service) ListTurns(ctx context.Context, scope continuo.Scope, in TurnFilter) (page List[Turn], err error) {
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return page, err
	}
	var position turnCursor
	if _, err := in.decode(&position); err != nil {
		return page, err
	}
	found, err := s.Engine.Turns.List(ctx, continuo.TurnQuery{
		ConversationID: conversation.ID, Limit: in.Limit + 1, Before: continuo.TurnCursor(position),
	})
	if err != nil {
		return page, err
	}
	var shown []Turn
	for _, t := range found {
		shown = append(shown, public(t))
	}
	return listed(shown, in.Limit, func(t Turn) any { return turnCursor{t.StartedAt, t.ID} }), nil
}

// GetTurn shows a turn.
//
// A turn whose process is gone is closed first, so that it is shown as failed.
func (s *Service) GetTurn(ctx context.Context, scope continuo.Scope, in TurnPath) (Turn, error) {
	_, _, shown, err := s.shown(ctx, scope, in)
	return shown, err
}

// turn finds the turn that a path names.
func (s *Service) turn(ctx context.Context, scope continuo.Scope, in TurnPath) (continuo.Conversation, continuo.Turn, error) {
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return conversation, continuo.Turn{}, err
	}
	found, err := s.Engine.Turns.Get(ctx, conversation, in.Turn)
	return conversation, found, err
}

// shown finds the turn that a path names, and converts it to the form for clients, with the calls that it waits for.
func (s *Service) shown(
	ctx context.Context, scope continuo.Scope, in TurnPath,
) (conversation continuo.Conversation, found continuo.Turn, shown Turn, err error) {
	conversation, found, err = s.turn(ctx, scope, in)
	shown = public(found)
	if err != nil || found.State != continuo.TurnRunning {
		return conversation, found, shown, err
	}
	waiting, err := s.Engine.Turns.Waiting(ctx, found)
	for _, call := range waiting {
		shown.WaitingFor = append(shown.WaitingFor, ToolCallEvent{call.ID, call.Name, call.Arguments, call.Until})
	}
	return conversation, found, shown, err
}

// TurnEvents is a request to follow a turn.
type TurnEvents struct {
	TurnPath
	// The id of the last event that the client has received. It takes precedence over `after`.
	LastEventID string `header:"Last-Event-ID"`
	// The same, for clients that cannot set headers.
	After int64 `query:"after" minimum:"0" default:"0"`
}

// Check reads the id of the last event.
func (in *TurnEvents) Check() (err error) {
	if in.LastEventID == "" {
		return nil
	}
	if in.After, err = strconv.ParseInt(in.LastEventID, 10, 64); err != nil || in.After < 0 {
		return Refuse("Last-Event-ID", "Last-Event-ID must be the id of an event of this turn, not %q", in.LastEventID)
	}
	return nil
}

// FollowTurn finds the turn that a client follows; the adapter sends its events.
//
// The events that `POST /chat` streams, with the same ids: those after the last one that the client received, and then
// live ones until the turn ends, whichever process executes it. They are kept for a limited time after the turn's end;
// later there are only `turn` and the last one. There may be gaps between ids where a process was killed. `session_id` is
// the name of the conversation in the path.
func (s *Service) FollowTurn(ctx context.Context, scope continuo.Scope, in TurnEvents) (continuo.Turn, error) {
	_, found, err := s.turn(ctx, scope, in.TurnPath)
	return found, err
}

// ResumeRequest is the body of a request to resume a turn.
type ResumeRequest struct {
	// One of `/api/models`. The default is the turn's own.
	Model string `json:"model,omitempty"`
	// How the log is shown to the model. The default is the turn's own.
	View   string `json:"view,omitempty" enum:"chat,agent,run,codex,continuity,replay"`
	Stream *bool  `json:"stream,omitempty"`
	// What to do while the conversation has another turn in progress.
	OnBusy engine.OnBusy `json:"on_busy,omitempty" enum:"wait,reject,interrupt" default:"wait"`
}

// TurnResumeRequest is a request to resume a turn.
type TurnResumeRequest struct {
	TurnPath
	Once
	ResumeRequest
}

// ResumeTurn resumes a turn that failed; the adapter sends the answer. The new turn continues when the client
// disconnects.
//
// Begins a new turn, without a new message, where the failed one broke off, and answers as `POST /chat` does. Only the
// conversation's newest turn can be resumed. A request that is sent again with its `Idempotency-Key` gets the same new
// turn.
func (s *Service) ResumeTurn(ctx context.Context, scope continuo.Scope, in TurnResumeRequest) (*engine.Chat, error) {
	if err := oneOf("model", in.Model, s.Engine.Catalog.Models()...); err != nil {
		return nil, err
	}
	_, found, err := s.turn(ctx, scope, in.TurnPath)
	if err != nil {
		return nil, err
	}
	return s.Engine.Turns.Resume(ctx, engine.ResumeRequest{
		Turn: found, Model: in.Model, View: in.View, OnBusy: in.OnBusy, Key: string(in.Key), Detached: true,
	})
}

// CancelledTurn is a turn that a client stops.
type CancelledTurn struct {
	Turn
	status int
}

// HTTPStatus says whether the turn takes a moment to end, or had ended already.
func (t CancelledTurn) HTTPStatus() int { return t.status }

// Form is the form of the turn, for the document.
func (CancelledTurn) Form() reflect.Type { return reflect.TypeFor[Turn]() }

// CancelTurn stops a turn, and returns its state before, since it takes a moment to end. A turn that has ended already is
// returned as it is.
//
// Whichever process executes it. The turn ends with the text that the model has produced and the reason `cancelled`; its
// events say when.
func (s *Service) CancelTurn(ctx context.Context, scope continuo.Scope, in TurnPath) (CancelledTurn, error) {
	conversation, found, shown, err := s.shown(ctx, scope, in)
	if err != nil {
		return CancelledTurn{}, err
	}
	switch err := s.Engine.Turns.Cancel(ctx, found); {
	case err == nil:
		return CancelledTurn{shown, http.StatusAccepted}, nil
	case !errors.Is(err, continuo.ErrNotRunning):
		return CancelledTurn{}, err
	}
	found, err = s.Engine.Turns.Get(ctx, conversation, found.ID)
	return CancelledTurn{public(found), http.StatusOK}, err
}

// DecisionRequest is a decision on a call that waits for a person.
type DecisionRequest struct {
	TurnPath
	ToolCallID string `json:"tool_call_id,omitempty" required:"true"`
	Decision   string `json:"decision,omitempty" required:"true"`
	// Sent to the model with a denial; at most 600 characters of it.
	Reason string `json:"reason,omitempty"`
}

// Check refuses what no call could be decided with.
func (in *DecisionRequest) Check() error {
	switch {
	case in.ToolCallID == "":
		return Refuse("tool_call_id", "tool_call_id must name the call that is decided on")
	case in.Decision != "allow" && in.Decision != "deny":
		return Refuse("decision", "decision must be allow or deny")
	}
	return nil
}

// Decide approves or denies a call that waits for a person, and returns the turn's state before, without that call.
//
// A tool whose policy is `ask` waits for a person: the turn's stream has an `approval`, and the turn shows the call in
// `waiting_for`. The first decision on a call counts; without a decision it is denied at `expires_at`. The turn's time
// limit does not include this time.
func (s *Service) Decide(ctx context.Context, scope continuo.Scope, in DecisionRequest) (shown Turn, err error) {
	_, found, shown, err := s.shown(ctx, scope, in.TurnPath)
	if err != nil {
		return shown, err
	}
	decision := turn.Decision{Allowed: in.Decision == "allow", Reason: Bounded(in.Reason)}
	if err := s.Engine.Turns.Decide(ctx, found, in.ToolCallID, decision); errors.Is(err, continuo.ErrNotFound) {
		return shown, At("tool_call_id", err)
	} else if err != nil {
		return shown, err
	}
	shown.WaitingFor = slices.DeleteFunc(shown.WaitingFor, func(call ToolCallEvent) bool { return call.ID == in.ToolCallID })
	return shown, nil
}
