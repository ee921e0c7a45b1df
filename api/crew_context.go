package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// crewContextOperations show what the roles of a crew see.
func (s *Service) crewContextOperations() []Operation {
	const crew = "/api/crews/{crew}"
	shown := Media{Type: JSON, AnyOf: []reflect.Type{reflect.TypeFor[engine.Context](), reflect.TypeFor[engine.Replayed]()}}
	overflow := shared(http.StatusRequestEntityTooLarge, "Overflow")
	return []Operation{
		define(Operation{
			ID: "showRoleContext", Method: "GET", Path: crew + "/context", Tag: "crews", Summary: "show what a role sees, or saw",
			Answers: answers(ok("The rendering and its plan, or the request.").as(shown), overflow),
		}, s.ShowRoleContext),
		define(Operation{
			ID: "listRounds", Method: "GET", Path: crew + "/rounds", Tag: "crews", Summary: "list the requests that a role was asked with",
			Answers: answers(ok("All rounds of the role in the session.")),
		}, s.ListRounds),
		define(Operation{
			ID: "compareRoles", Method: "GET", Path: crew + "/compare", Tag: "crews", Summary: "show what two roles see, and where it differs",
			Answers: answers(ok("Both sides."), overflow),
		}, s.CompareRoles),
	}
}

// RoleQuery names a role of a crew in a session.
type RoleQuery struct {
	CrewQuery
	// The role's name (`role_name`).
	Role string `query:"role" required:"true"`
}

// Check refuses a request without a role.
func (in *RoleQuery) Check() error { return needsRole("role", in.Role) }

func needsRole(param, role string) error {
	if role != "" {
		return nil
	}
	return Refuse(param, "%s must name the role; GET /api/crews/{crew} lists them", param)
}

// RolePositionQuery selects what a role sees, or saw.
type RolePositionQuery struct {
	RoleQuery
	// Show the conversation as it was when this `seq` was the newest. The default is the newest.
	At *int64 `query:"at" minimum:"1"`
	// The `seq` of an answer of the role, as its rounds list them: show what the role saw then. Not with `at`.
	Request *int64 `query:"request" minimum:"1"`
}

// Check refuses a position together with a request.
func (in *RolePositionQuery) Check() error {
	if err := in.RoleQuery.Check(); err != nil {
		return err
	}
	return notBoth("at", in.At, "request", in.Request)
}

func (in *RolePositionQuery) roleContextQuery() engine.RoleContextQuery {
	return engine.RoleContextQuery{Role: in.Role, At: valueOf(in.At), Request: valueOf(in.Request)}
}

func notBoth(atParam string, at *int64, requestParam string, request *int64) error {
	if at == nil || request == nil {
		return nil
	}
	return Refuse(requestParam, "give %s or %s, not both: a request saw what there was when it was sent", atParam, requestParam)
}

// valueOf is the value of an optional input; the zero value for none.
func valueOf[T any](given *T) (value T) {
	if given != nil {
		value = *given
	}
	return value
}

// RoleContextRequest selects what a role sees, or saw, and how it is shown.
type RoleContextRequest struct {
	RolePositionQuery
	// The form of the rendering. The default is `openai`. Not with `request`.
	Format string `query:"format" enum:"openai,anthropic,transcript"`
}

// Check refuses a format of a request.
func (in *RoleContextRequest) Check() error {
	if err := in.RolePositionQuery.Check(); err != nil {
		return err
	}
	if in.Format != "" && in.Request != nil {
		return Refuse("format", "format applies to a context built now or at a seq; a recorded request is shown as it was sent")
	}
	return nil
}

// ShowRoleContext shows what a role of a crew sees, or saw in an earlier round.
//
// The request that the role would be sent now, or at the position `at`, with its system messages; with `request`, the
// request of an earlier round, byte for byte. Calls no model and changes nothing.
func (s *Service) ShowRoleContext(ctx context.Context, scope continuo.Scope, in RoleContextRequest) (any, error) {
	session, conversation, err := s.inSession(ctx, scope, in.Crew, in.SessionID)
	if err != nil {
		return nil, err
	}
	query := in.roleContextQuery()
	if in.Request != nil {
		request, err := s.Engine.Crews.RoleRequest(ctx, session, query.Role, query.Request)
		return request, At("request", err)
	}
	shown, err := s.Engine.Contexts.Build(ctx, conversation, engine.ContextRequest{
		View: engine.RoleViewPrefix + query.Role, Crew: session.Crew, At: query.At, Format: engine.Format(in.Format), System: true,
	})
	return shown, RoleContextError(err, "role", "at", "")
}

// ListRounds lists a role's requests to its model.
//
// The oldest first, on one page. A turn that a role passed because nothing was new has no request.
func (s *Service) ListRounds(ctx context.Context, scope continuo.Scope, in RoleQuery) (list All[engine.RoleRound], err error) {
	session, _, err := s.inSession(ctx, scope, in.Crew, in.SessionID)
	if err != nil {
		return list, err
	}
	list.Data, err = s.Engine.Crews.RoleRounds(ctx, session, in.Role)
	if errors.Is(err, continuo.ErrInvalid) {
		return list, At("role", err)
	}
	return list, aboutSession(err)
}

// ComparisonRequest selects what two roles see, or one role at two positions or in two rounds.
type ComparisonRequest struct {
	RolePositionQuery
	// The other role. The default is the same one.
	OtherRole *string `query:"other_role"`
	// As `at`, for the other side.
	OtherAt *int64 `query:"other_at" minimum:"1"`
	// As `request`, for the other side; not with `other_at`.
	OtherRequest *int64 `query:"other_request" minimum:"1"`
}

// Check checks both sides.
func (in *ComparisonRequest) Check() error {
	if err := in.RolePositionQuery.Check(); err != nil {
		return err
	}
	if in.OtherRole == nil {
		in.OtherRole = &in.Role
	}
	if err := needsRole("other_role", *in.OtherRole); err != nil {
		return err
	}
	return notBoth("other_at", in.OtherAt, "other_request", in.OtherRequest)
}

// CompareRoles shows side by side what two roles see, or what one role sees at two positions.
//
// Of two roles, or of one at two positions or in two rounds: both texts, and the lines in which they differ. `other_role`,
// `other_at` and `other_request` select the right side. Calls no model and changes nothing.
func (s *Service) CompareRoles(ctx context.Context, scope continuo.Scope, in ComparisonRequest) (*engine.Comparison, error) {
	session, _, err := s.inSession(ctx, scope, in.Crew, in.SessionID)
	if err != nil {
		return nil, err
	}
	right := engine.RoleContextQuery{Role: *in.OtherRole, At: valueOf(in.OtherAt), Request: valueOf(in.OtherRequest)}
	comparison, err := s.Engine.Crews.CompareRoles(ctx, session, in.roleContextQuery(), right)
	var wrong *engine.ComparisonError
	switch {
	case !errors.As(err, &wrong):
		return comparison, aboutSession(err)
	case wrong.Right:
		return nil, RoleContextError(wrong.Err, "other_role", "other_at", given("other_request", in.OtherRequest))
	default:
		return nil, RoleContextError(wrong.Err, "role", "at", given("request", in.Request))
	}
}

// given is the name of a parameter that was given; "" for another.
func given(param string, value *int64) string {
	if value == nil {
		return ""
	}
	return param
}

// RoleContextError adds the parameter that caused an error about what a role sees: the request's parameter where there is one, else
// that of the position or the role.
func RoleContextError(err error, roleParam, atParam, requestParam string) error {
	switch {
	case requestParam != "":
		return At(requestParam, err)
	case errors.Is(err, continuo.ErrBadRange):
		return At(atParam, err)
	case errors.Is(err, continuo.ErrInvalid), errors.Is(err, continuo.ErrNotFound):
		return At(roleParam, err)
	}
	return err
}
