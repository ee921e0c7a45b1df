package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// chatRequest is the body of POST /chat.
type chatRequest struct {
	Message   continuo.Content `json:"message"`
	SessionID string           `json:"session_id"`
	UserID    string           `json:"user_id"`
	Mode      continuo.Mode    `json:"mode"`
	AgentID   string           `json:"agent_id"`
	Model     string           `json:"model"`
	View      string           `json:"view"`
	Stream    *bool            `json:"stream"`
	OnBusy    engine.OnBusy    `json:"on_busy"`
}

func contextOf(plan *window.Plan) *api.ChatContext {
	if plan == nil {
		return nil
	}
	return &api.ChatContext{View: plan.View, At: plan.At, PlanTotals: plan.Totals, Epoch: plan.Window.Epoch, Moved: plan.Moved}
}

// chat begins a turn. The turn continues when the client disconnects: its answer is then in the log.
func (s *server) chat(w http.ResponseWriter, r *http.Request) error {
	request, err := s.readChat(w, r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	chat, err := s.engine.Turns.Chat(r.Context(), engine.ChatRequest{
		Scope: scopeOf(r), UserID: request.UserID, SessionID: request.SessionID, Message: request.Message,
		Mode: request.Mode, AgentID: request.AgentID, Model: request.Model, View: request.View, OnBusy: request.OnBusy,
		Key: key, Retry: sdkRetry(r), Detached: true,
	})
	if err != nil {
		return aboutRequest(err)
	}
	return s.answer(w, r, chat, request.Stream, request.SessionID)
}

// sdkRetry returns how many times a provider's official SDK has sent the request before; nil for other clients.
func sdkRetry(r *http.Request) *int {
	count, err := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count"))
	if err != nil || count < 0 {
		return nil
	}
	return &count
}

// answer sends a turn's answer, whole or as a stream. SessionID is the client's name for the conversation, "" for its id.
func (s *server) answer(w http.ResponseWriter, r *http.Request, chat *engine.Chat, stream *bool, sessionID string) error {
	p := &progress{ids: api.ChatIDs{SessionID: cmp.Or(sessionID, chat.Conversation.ID), ConversationID: chat.Conversation.ID, TurnID: chat.TurnID}}
	streamed := accepts(r, "text/event-stream")
	if stream != nil {
		streamed = *stream
	}
	if streamed {
		return s.stream(w, r, nil, chat.Events, p)
	}
	for event, err := range chat.Events {
		if err != nil {
			return p.failure(err)
		}
		if err := s.take(r.Context(), p, event); err != nil {
			return p.failure(err)
		}
	}
	answer, failure := p.end()
	if failure != nil {
		return failure
	}
	return writeJSON(w, http.StatusOK, answer)
}

// aboutRequest adds the field of the request that caused an error. The other fields were checked before.
func aboutRequest(err error) error {
	if errors.Is(err, engine.ErrUnknownAgent) { // the request's agent, or the one stored in the conversation
		return at("agent_id", err)
	}
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrInvalid) || errors.Is(err, continuo.ErrBusy) || errors.Is(err, continuo.ErrOtherUser) {
		return at("session_id", err)
	}
	if overflow := new(continuo.OverflowError); errors.As(err, &overflow) {
		return at("message", err)
	}
	return err
}

// readChat reads and checks the body of POST /chat.
func (s *server) readChat(w http.ResponseWriter, r *http.Request) (request chatRequest, err error) {
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
	if err := oneOf("mode", request.Mode, continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun); err != nil {
		return request, err
	}
	if err := s.api.CheckAgent("agent_id", request.AgentID); err != nil {
		return request, err
	}
	if _, err := scopeOf(r).Owner(request.UserID); err != nil {
		return request, at("user_id", err)
	}
	if err := s.checkNames(request.Model, request.View, request.OnBusy); err != nil {
		return request, err
	}
	return request, checkMessage(request.Message)
}

// checkMessage refuses an empty message.
func checkMessage(message continuo.Content) error {
	if message.IsBlank() {
		return refuse("message", "message must be a string or a list of parts, with visible text")
	}
	return nil
}

// checkNames refuses unknown names; "" is always valid.
func (s *server) checkNames(model, view string, onBusy engine.OnBusy) error {
	for _, err := range []error{
		oneOf("view", view, window.Names()...),
		oneOf("model", model, s.engine.Catalog.Models()...),
		oneOf("on_busy", onBusy, engine.Wait, engine.Reject, engine.Interrupt),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// progress is the state of a turn so far.
type progress struct {
	ids    api.ChatIDs
	plan   *window.Plan    // of the newest request
	begun  bool            // the user's entry is in the log
	text   strings.Builder // the newest round's text, for the case that it cannot be stored
	last   *continuo.Entry // the final answer, complete or not
	lastID int64           // of the newest event
	usage  continuo.Usage
}

// take records an event; at the first one it also looks up which turn this one resumes.
func (s *server) take(ctx context.Context, p *progress, event turn.Event) (err error) {
	if p.lastID == 0 {
		p.ids.Resumed, err = s.engine.Turns.Resumed(ctx, p.ids.ConversationID, p.ids.TurnID)
	}
	p.take(event)
	return err
}

// take records an event.
func (p *progress) take(event turn.Event) {
	p.lastID = event.ID
	switch event.Kind {
	case turn.Started:
		p.begun = true
	case turn.Planned:
		p.plan = event.Plan
		p.text.Reset()
	case turn.TextDelta:
		p.text.WriteString(event.Text)
	case turn.Finished, turn.Failed:
		p.begun, p.last, p.usage = true, event.Entry, event.Usage
		if event.Plan != nil {
			p.plan = event.Plan
		}
	}
}

// end returns the answer of a finished turn, or the error that it ended with.
func (p *progress) end() (*api.ChatAnswer, error) {
	if p.last == nil {
		return nil, p.failure(fmt.Errorf("turn %s ended without an answer", p.ids.TurnID))
	}
	if p.last.Error != nil {
		return nil, p.failure(modelFailure(p.last.Error))
	}
	answer := &api.ChatAnswer{ChatIDs: p.ids, Response: p.last.Content.String(), Usage: p.usage, Context: contextOf(p.plan)}
	if p.last.Round != nil {
		answer.FinishReason = p.last.Round.FinishReason
	}
	return answer, nil
}

// failure adds the turn's state so far to an error, so that no text of the model is lost.
func (p *progress) failure(err error) error {
	failed := problemOf(err)
	if !p.begun {
		if failed.Type == api.InvalidRequest && failed.Param == "" {
			failed.Param = "message"
		}
		return failed
	}
	response := p.text.String()
	if p.last != nil {
		response = p.last.Content.String()
	}
	failed.Beside = members("session_id", p.ids.SessionID, "conversation_id", p.ids.ConversationID, "turn_id", p.ids.TurnID,
		"response", response, "usage", p.usage)
	if p.ids.Resumed != nil {
		failed.Beside = append(failed.Beside, members("resumed", p.ids.Resumed)...)
	}
	return failed
}

// modelFailure is the problem of a turn whose model gave no complete answer. The turn is in the log: only a retry with
// the same Idempotency-Key repeats it without appending the message twice.
func modelFailure(failure *continuo.TurnError) *problem {
	p := &problem{
		Status: http.StatusBadGateway, Type: api.UpstreamError, Code: "llm_error", Message: failure.Message,
		Details: members("reason", failure.Reason, "retryable", failure.Retryable),
	}
	if failure.ProviderStatus != 0 {
		p.Details = append(p.Details, members("provider_status", failure.ProviderStatus)...)
	}
	if failure.Retryable {
		p.RetryAfter = failure.RetryAfter
	} else {
		p.RetryAfter = api.RetryNever
	}
	switch failure.Reason {
	case continuo.ReasonTimeout:
		p.Status = http.StatusGatewayTimeout
	case continuo.ReasonRateLimit:
		p.Status, p.Type = http.StatusTooManyRequests, api.RateLimit
	case continuo.ReasonContextOverflow:
		p.Status, p.Type, p.Code = http.StatusRequestEntityTooLarge, api.InvalidRequest, "context_overflow"
	case continuo.ReasonCancelled, continuo.ReasonInterrupted: // the turn was stopped or interrupted; the model did not fail
		p.Status, p.Type = http.StatusConflict, api.Conflict
	}
	return p
}
