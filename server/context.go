package server

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/window"
)

func (s *server) showContext(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "view", "format", "at", "max_messages", "max_chars", "max_tokens", "model", "agent_id", "system")
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
	result, err := s.engine.Context(r.Context(), conversation, request)
	if err != nil {
		return atRange(err)
	}
	return writeJSON(w, http.StatusOK, result)
}

func (s *server) contextRequest(q query) (request engine.ContextRequest, err error) {
	request = engine.ContextRequest{View: q.text("view"), Format: engine.Format(q.text("format")), Model: q.text("model"), AgentID: q.text("agent_id")}
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
		oneOf("view", request.View, window.Names()...),
		oneOf("format", request.Format, engine.FormatOpenAI, engine.FormatAnthropic, engine.FormatTranscript),
		oneOf("model", request.Model, s.engine.Models()...),
		s.checkAgent("agent_id", request.AgentID),
	)
}

// atRange says that a seq out of range was the parameter at; all other parameters were checked before.
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
	request, err := s.engine.Request(r.Context(), conversation, seq)
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
	text, plan, err := s.engine.Transcript(r.Context(), conversation, place, history)
	if err != nil {
		return atRange(err)
	}
	if accepts(r, "application/json") {
		return writeJSON(w, http.StatusOK, struct {
			Text string         `json:"text"`
			Plan *continuo.Plan `json:"plan"`
		}{text, plan})
	}
	return writeText(w, []byte(text))
}

// accepts reports whether a request asks for a media type by name.
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
