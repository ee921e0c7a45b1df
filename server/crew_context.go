package server

import (
	"errors"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// showRoleContext shows what a role of a crew sees, or saw in an earlier round.
func (s *server) showRoleContext(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "session_id", "role", "at", "format", "request")
	if err != nil {
		return err
	}
	sight, err := readSight(q, "role", "at", "request", "")
	if err != nil {
		return err
	}
	format := engine.Format(q.text("format"))
	switch err := checkFormat(format); {
	case err != nil:
		return err
	case sight.Request != 0 && q.has("format"):
		return refuse("format", "format is of what a role sees now or at a place; a request is shown as it was sent")
	}
	session, conversation, err := s.inSession(r, q.text("session_id"))
	if err != nil {
		return err
	}
	if sight.Request != 0 {
		request, err := s.engine.Crews.RoleRequest(r.Context(), session, sight.Role, sight.Request)
		if err != nil {
			return at("request", err)
		}
		return writeJSON(w, http.StatusOK, request)
	}
	result, err := s.engine.Contexts.Build(r.Context(), conversation, engine.ContextRequest{
		View: engine.RoleView + sight.Role, Crew: session.Crew, At: sight.At, Format: format, System: true,
	})
	if err != nil {
		return aboutSight(err, "role", "at", "")
	}
	return writeJSON(w, http.StatusOK, result)
}

func checkFormat(format engine.Format) error {
	return oneOf("format", format, engine.FormatOpenAI, engine.FormatAnthropic, engine.FormatTranscript, engine.FormatHandoff)
}

// listRounds lists a role's requests to its model.
func (s *server) listRounds(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "session_id", "role")
	if err != nil {
		return err
	}
	role := q.text("role")
	if role == "" {
		return needsRole("role")
	}
	session, _, err := s.inSession(r, q.text("session_id"))
	if err != nil {
		return err
	}
	rounds, err := s.engine.Crews.RoleRounds(r.Context(), session, role)
	if errors.Is(err, continuo.ErrInvalid) {
		return at("role", err)
	}
	if err != nil {
		return aboutSession(err)
	}
	if len(rounds) == 0 { // it has no requests yet: maybe the crew never took part here
		if _, err := s.engine.Crews.Status(r.Context(), session); err != nil {
			return aboutSession(err)
		}
	}
	return writeJSON(w, http.StatusOK, list[engine.RoleRound]{Data: rounds})
}

func needsRole(param string) error {
	return refuse(param, "%s must name the role; GET /api/crews/{crew} lists them", param)
}

// compareRoles shows side by side what two roles see, or what one role sees at two positions.
func (s *server) compareRoles(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "session_id", "role", "at", "request", "other_role", "other_at", "other_request")
	if err != nil {
		return err
	}
	left, err := readSight(q, "role", "at", "request", "")
	if err != nil {
		return err
	}
	right, err := readSight(q, "other_role", "other_at", "other_request", left.Role)
	if err != nil {
		return err
	}
	session, _, err := s.inSession(r, q.text("session_id"))
	if err != nil {
		return err
	}
	comparison, err := s.engine.Crews.CompareRoles(r.Context(), session, left, right)
	var wrong *engine.SightError
	switch {
	case errors.As(err, &wrong) && wrong.Right:
		return aboutSight(wrong.Err, "other_role", "other_at", requestParam("other_request", right))
	case errors.As(err, &wrong):
		return aboutSight(wrong.Err, "role", "at", requestParam("request", left))
	case err != nil:
		return aboutSession(err)
	}
	return writeJSON(w, http.StatusOK, comparison)
}

// readSight reads which view of which role is requested, from the parameters with the given names; role is the default.
func readSight(q query, roleParam, atParam, requestParam, role string) (sight engine.Sight, err error) {
	if sight.Role = role; q.has(roleParam) || role == "" {
		sight.Role = q.text(roleParam)
	}
	if sight.Role == "" {
		return sight, needsRole(roleParam)
	}
	if sight.At, err = q.whole(atParam, 1, maxSeq, 0); err != nil {
		return sight, err
	}
	if sight.Request, err = q.whole(requestParam, 1, maxSeq, 0); err != nil {
		return sight, err
	}
	if q.has(atParam) && q.has(requestParam) {
		return sight, refuse(requestParam, "give %s or %s, not both: a request saw what there was when it was sent", atParam, requestParam)
	}
	return sight, nil
}

// requestParam returns param for a sight of a request; "" for others.
func requestParam(param string, sight engine.Sight) string {
	if sight.Request == 0 {
		return ""
	}
	return param
}

// aboutSight adds the parameter that caused an error about a sight: the request's parameter where there is one, else
// that of the position or the role.
func aboutSight(err error, roleParam, atParam, requestParam string) error {
	switch {
	case requestParam != "":
		return at(requestParam, err)
	case errors.Is(err, continuo.ErrBadRange):
		return at(atParam, err)
	case errors.Is(err, continuo.ErrInvalid), errors.Is(err, continuo.ErrNotFound):
		return at(roleParam, err)
	}
	return err
}
