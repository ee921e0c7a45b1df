package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/engine/catalog"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/window"
)

func (s *server) showContext(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "view", "format", "at", "max_messages", "max_chars", "max_tokens", "model", "agent_id", "system", "crew", "run_id")
	if err != nil {
		return err
	}
	request, err := s.contextRequest(q)
	if err != nil {
		return err
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	result, err := s.engine.Contexts.Build(r.Context(), conversation, request)
	switch {
	case err == nil:
	case request.Crew != "" && errors.Is(err, continuo.ErrNotFound):
		return at("crew", err)
	case request.RunID != "" && (errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrInvalid)):
		return at("run_id", err)
	case strings.HasPrefix(request.View, engine.RoleView):
		return api.AboutSight(err, "view", "at", "")
	default:
		return atRange(err)
	}
	return writeJSON(w, http.StatusOK, result)
}

func (s *server) contextRequest(q query) (request engine.ContextRequest, err error) {
	request = engine.ContextRequest{View: q.text("view"), Format: engine.Format(q.text("format")), Model: q.text("model"), AgentID: q.text("agent_id"), Crew: q.text("crew"), RunID: q.text("run_id")}
	if request.System, err = q.flag("system"); err != nil {
		return request, err
	}
	if request.At, err = q.whole("at", 1, maxSeq, 0); err != nil {
		return request, err
	}
	if request.MaxMessages, err = q.count("max_messages"); err != nil {
		return request, err
	}
	if request.MaxChars, err = q.count("max_chars"); err != nil {
		return request, err
	}
	if request.MaxTokens, err = q.count("max_tokens"); err != nil {
		return request, err
	}
	return request, errors.Join(
		s.checkView(q, request.View),
		checkRun(q),
		oneOf("format", request.Format, engine.FormatOpenAI, engine.FormatAnthropic, engine.FormatTranscript, engine.FormatHandoff),
		oneOf("model", request.Model, s.engine.Catalog.Models()...),
		s.api.CheckAgent("agent_id", request.AgentID),
	)
}

// checkView refuses an unknown view, and parameters that cannot be combined with it: a role has a model of its own.
func (s *server) checkView(q query, view string) error {
	role, ok := strings.CutPrefix(view, engine.RoleView)
	switch {
	case !ok && q.has("crew"):
		return refuse("crew", "crew is of the views of roles, such as role:reviewer")
	case !ok:
		return oneOf("view", view, catalog.ViewNames()...)
	case role == "":
		return refuse("view", "role: is followed by the name of a role, such as role:reviewer")
	case q.has("crew") && !engine.IDPattern.MatchString(q.text("crew")):
		return at("crew", s.api.NoCrew(q.text("crew")))
	}
	for _, param := range []string{"model", "agent_id"} {
		if q.has(param) {
			return refuse(param, "%s cannot be combined with the view of a role, which its crew defines", param)
		}
	}
	return nil
}

// checkRun refuses parameters that cannot be combined with a run: its step decides who answers.
func checkRun(q query) error {
	if !q.has("run_id") {
		return nil
	}
	if id := q.text("run_id"); !engine.KeyPattern.MatchString(id) { // all ids match this pattern
		return at("run_id", fmt.Errorf("run %q: %w", bounded(id), continuo.ErrNotFound))
	}
	for _, param := range []string{"model", "agent_id", "crew"} {
		if q.has(param) {
			return refuse(param, "%s cannot be combined with run_id: the run's step selects the agent", param)
		}
	}
	if strings.HasPrefix(q.text("view"), engine.RoleView) {
		return refuse("view", "the view of a role cannot be combined with run_id: the steps of runs have no roles")
	}
	return nil
}

// atRange says that an out-of-range seq is about the parameter at; all other parameters were checked before.
func atRange(err error) error {
	if errors.Is(err, continuo.ErrBadRange) {
		return at("at", err)
	}
	return err
}

func (s *server) showRequest(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 {
		return refuse("seq", "the seq in the path must be a whole number from 1, not %q", bounded(r.PathValue("seq")))
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	request, err := s.engine.Contexts.Request(r.Context(), conversation, seq)
	if err != nil {
		return at("seq", err)
	}
	return writeJSON(w, http.StatusOK, request)
}

func (s *server) showTranscript(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "at", "history")
	if err != nil {
		return err
	}
	place, err := q.whole("at", 1, maxSeq, 0)
	if err != nil {
		return err
	}
	history, err := q.count("history")
	if err != nil {
		return err
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	transcript, plan, err := s.engine.Contexts.Transcript(r.Context(), conversation, place, history)
	if err != nil {
		return atRange(err)
	}
	if accepts(r, "application/json") {
		return writeJSON(w, http.StatusOK, struct {
			Text string       `json:"text"`
			Plan *window.Plan `json:"plan"`
		}{transcript.String(), plan})
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = transcript.WriteTo(w) // a client that has disconnected is not an error
	return nil
}

// accepts reports whether a request's Accept header names a media type.
func accepts(r *http.Request, mediaType string) bool {
	for _, value := range r.Header.Values("Accept") {
		for item := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(name), mediaType) {
				return true
			}
		}
	}
	return false
}
