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

// chatIDs says which turn of which conversation an answer is of.
type chatIDs struct {
	// SessionID is what the client called the conversation, or its id.
	SessionID      string `json:"session_id"`
	ConversationID string `json:"conversation_id"`
	TurnID         string `json:"turn_id"`
	// Resumed is the turn that this one goes on with, if any. It is known when the turn has begun.
	Resumed *engine.Resumed `json:"resumed,omitempty"`
}

// chatAnswer is what a turn gives.
type chatAnswer struct {
	chatIDs
	Response string `json:"response"`
	// FinishReason says why the model ended, as OpenAI names it; "" when it did not say.
	FinishReason string         `json:"finish_reason"`
	Usage        continuo.Usage `json:"usage"`
	Context      *chatContext   `json:"context"`
}

// chatContext says what the turn's last request showed of the conversation.
type chatContext struct {
	View string `json:"view"`
	// At is the newest seq that the request could see.
	At int64 `json:"at"`
	continuo.PlanTotals
	Epoch int64 `json:"epoch"`
	Moved bool  `json:"moved"`
}

func contextOf(plan *continuo.Plan) *chatContext {
	if plan == nil {
		return nil
	}
	return &chatContext{View: plan.View, At: plan.At, PlanTotals: plan.Totals, Epoch: plan.Window.Epoch, Moved: plan.Moved}
}

// chat begins a turn. The turn goes on when the client goes away: its answer is in the log then.
func (s *server) chat(w http.ResponseWriter, r *http.Request) error {
	request, err := s.readChat(w, r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	chat, err := s.engine.Chat(r.Context(), engine.ChatRequest{
		Scope: scopeOf(r), UserID: request.UserID, SessionID: request.SessionID, Message: request.Message,
		Mode: request.Mode, AgentID: request.AgentID, Model: request.Model, View: request.View, OnBusy: request.OnBusy,
		Key: key, Retry: sdkRetry(r), Detached: true,
	})
	if err != nil {
		return aboutRequest(err)
	}
	return s.answer(w, r, chat, request.Stream, request.SessionID)
}

// sdkRetry is how often an official library of a provider has made the request before; nil for other clients.
func sdkRetry(r *http.Request) *int {
	count, err := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count"))
	if err != nil || count < 0 {
		return nil
	}
	return &count
}

// answer gives a turn's answer, whole or as a stream. SessionID is what the client called the conversation,
// "" for its id.
func (s *server) answer(w http.ResponseWriter, r *http.Request, chat *engine.Chat, stream *bool, sessionID string) error {
	p := &progress{ids: chatIDs{SessionID: cmp.Or(sessionID, chat.Conversation.ID), ConversationID: chat.Conversation.ID, TurnID: chat.TurnID}}
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

// aboutRequest says which field an error is about that a request can help: all but these were checked.
func aboutRequest(err error) error {
	if errors.Is(err, engine.ErrUnknownAgent) { // the request's, or the one that the conversation has kept
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
	if err := s.checkAgent("agent_id", request.AgentID); err != nil {
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

// checkMessage refuses a message that says nothing.
func checkMessage(message continuo.Content) error {
	if message.IsBlank() {
		return refuse("message", "message must be a string or a list of parts that says something")
	}
	return nil
}

// checkNames refuses names that there are not; "" is always fine.
func (s *server) checkNames(model, view string, onBusy engine.OnBusy) error {
	for _, err := range []error{
		oneOf("view", view, window.Names()...),
		oneOf("model", model, s.engine.Models()...),
		oneOf("on_busy", onBusy, engine.Wait, engine.Reject, engine.Interrupt),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// progress is what has come of a turn so far.
type progress struct {
	ids    chatIDs
	plan   *continuo.Plan  // of the newest request
	begun  bool            // the user's entry stands in the log
	text   strings.Builder // what the newest round said, for when it cannot be kept
	last   *continuo.Entry // the final answer, whole or not
	lastID int64           // of the newest event
	usage  continuo.Usage
}

// take notes an event, and with the first one which turn this one goes on with.
func (s *server) take(ctx context.Context, p *progress, event turn.Event) (err error) {
	if p.lastID == 0 {
		p.ids.Resumed, err = s.engine.Resumed(ctx, p.ids.ConversationID, p.ids.TurnID)
	}
	p.take(event)
	return err
}

// take notes an event.
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

// end returns the answer of a turn that is over, or why there is none.
func (p *progress) end() (*chatAnswer, error) {
	if p.last == nil {
		return nil, p.failure(fmt.Errorf("turn %s ended without an answer", p.ids.TurnID))
	}
	if p.last.Error != nil {
		return nil, p.failure(modelFailure(p.last.Error))
	}
	answer := &chatAnswer{chatIDs: p.ids, Response: p.last.Content.String(), Usage: p.usage, Context: contextOf(p.plan)}
	if p.last.Round != nil {
		answer.FinishReason = p.last.Round.FinishReason
	}
	return answer, nil
}

// failure tells, beside an error, what the turn had come to: nothing that the model said is lost.
func (p *progress) failure(err error) error {
	failed := problemOf(err)
	if !p.begun {
		if failed.kind == invalidRequest && failed.param == "" {
			failed.param = "message"
		}
		return failed
	}
	response := p.text.String()
	if p.last != nil {
		response = p.last.Content.String()
	}
	failed.beside = members("session_id", p.ids.SessionID, "conversation_id", p.ids.ConversationID, "turn_id", p.ids.TurnID,
		"response", response, "usage", p.usage)
	if p.ids.Resumed != nil {
		failed.beside = append(failed.beside, members("resumed", p.ids.Resumed)...)
	}
	return failed
}

// modelFailure is the problem of a turn whose model gave no whole answer. The turn is in the log: only the
// same Idempotency-Key asks for it again without saying everything twice.
func modelFailure(failure *continuo.TurnError) *problem {
	p := &problem{
		status: http.StatusBadGateway, kind: upstreamError, code: "llm_error", message: failure.Message,
		details: members("reason", failure.Reason, "retryable", failure.Retryable),
	}
	if failure.ProviderStatus != 0 {
		p.details = append(p.details, members("provider_status", failure.ProviderStatus)...)
	}
	if failure.Retryable {
		p.retryAfter = failure.RetryAfter
	} else {
		p.retryAfter = retryNever
	}
	switch failure.Reason {
	case continuo.ReasonTimeout:
		p.status = http.StatusGatewayTimeout
	case continuo.ReasonRateLimit:
		p.status, p.kind = http.StatusTooManyRequests, rateLimit
	case continuo.ReasonContextOverflow:
		p.status, p.kind, p.code = http.StatusRequestEntityTooLarge, invalidRequest, "context_overflow"
	case continuo.ReasonCancelled, continuo.ReasonInterrupted: // not the model's doing: somebody stopped the turn
		p.status, p.kind = http.StatusConflict, conflict
	}
	return p
}
