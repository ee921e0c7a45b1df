package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

func (s *Service) chatOperations() []Operation {
	return []Operation{
		define(Operation{
			ID: "chat", Method: "POST", Path: "/chat", Tag: "chat",
			Summary: "begin a turn: send a message, get the answer, whole or as a stream",
			Example: `{"message": "I am called Ada.", "session_id": "trip"}`,
			Answers: turnAnswers("The turn's answer.",
				"The conversation is busy (`conversation_busy`), the `Idempotency-Key` was used for another message "+
					"(`idempotency_conflict`), or a client stopped the turn (`llm_error` with the reason `cancelled` or `interrupted`).",
				"As for any other call. When the log has the message, the turn's state so far is beside the error: the "+
					"model's text is not lost when the store fails."),
		}, (func(context.Context, continuo.Scope, ChatRequest) (ChatAnswer, error))(nil)),
		define(Operation{
			ID: "listModels", Method: "GET", Path: "/api/models", Tag: "chat", Summary: "list the models",
			Answers: answers(ok("All models.")),
		}, s.ListModels),
		define(Operation{
			ID: "listAgents", Method: "GET", Path: "/api/agents", Tag: "chat", Summary: "list the agents",
			Answers: answers(ok("All agents.")),
		}, s.ListAgents),
	}
}

// ChatRequest is a message that begins a turn.
type ChatRequest struct {
	Once
	// How many times an official SDK of a provider has sent the request before.
	SDKRetries string `header:"X-Stainless-Retry-Count" hidden:"true"`
	// The user's message, a string or a list of parts.
	Message continuo.Content `json:"message"`
	// A conversation's id, or a key of 1 to 128 letters, digits and `. _ : @ -` that begins with a letter or digit. An
	// unknown key begins a conversation.
	SessionID string `json:"session_id,omitempty"`
	// The user of the conversation. A conversation without a user is assigned to this one; another user's is refused with
	// 403, `other_user`.
	UserID UserID `json:"user_id,omitempty"`
	// The mode of the turn, and of the conversation from then on. The default is `agent` with an `agent_id`, else the
	// conversation's.
	Mode continuo.Mode `json:"mode,omitempty" enum:"chat,agent,run"`
	// The agent that answers, one of `/api/agents`; it is the conversation's agent from then on. The default, in the
	// modes `agent` and `run`, is the conversation's. In the mode `chat` its persona is not shown, but its model, tools,
	// view and budget count.
	AgentID string `json:"agent_id,omitempty"`
	// One of `/api/models`. The default is the agent's, else the first.
	Model string `json:"model,omitempty"`
	// How the log is shown to the model. The default is the agent's, else `continuity` in the mode chat and `codex` in
	// the others.
	View string `json:"view,omitempty" enum:"chat,agent,run,codex,continuity,replay"`
	// Whether the answer is a stream. The default is what the header `Accept` asks for.
	Stream *bool `json:"stream,omitempty"`
	// `false` leaves the turn out of the memory: no fact is extracted from it.
	Memory *bool `json:"memory,omitempty" default:"true"`
	// Another form of `memory`: `false`.
	MemoryHeader string `header:"X-Continuo-Memory" hidden:"true"`
	// What to do while the conversation has another turn in progress.
	OnBusy engine.OnBusy `json:"on_busy,omitempty" enum:"wait,reject,interrupt" default:"wait"`
}

// Check refuses an empty message.
func (in *ChatRequest) Check() error {
	if in.Message.IsBlank() {
		return Refuse("message", "message must be a string or a list of parts, with visible text")
	}
	return nil
}

// Chat begins a turn; the adapter sends the answer. The turn continues when the client disconnects.
//
// Appends the message to its conversation, asks the model, runs the tools that it calls, and answers with its final text.
// Without `session_id` a new conversation begins; with an unknown key, a conversation of that key.
//
// Turns of one conversation run one after the other; `on_busy` says what to do while another one runs. **A client that
// disconnects does not stop the turn**: its answer is in the log when it is done, and
// `/api/conversations/{id}/turns/{turn}/events` resumes its stream. With `Idempotency-Key`, a repeated request gets the
// same turn, whatever its outcome, and runs nothing twice; `resume` continues a turn that failed.
//
// With `"stream": true`, or with `Accept: text/event-stream` and no `stream`, the answer is a stream of server-sent
// events: first `turn`; for each request to the model `context` and then `reasoning`, `delta` and `tool_call_delta` as
// they come, or `fallback` when another model is asked; for each tool a `tool_call`, `approval` and `decision` where a
// person decides, and later its `tool_result`; and last, always and once, `done` or `error`. Text before a tool call is
// part of the deltas; `response` is the text of the last round. Every event has an `id`; ids grow and are the same for
// every reader. A silent stream carries a comment every 15 seconds. An error before the first event is an ordinary error
// response.
func (s *Service) Chat(ctx context.Context, scope continuo.Scope, in ChatRequest) (*engine.Chat, error) {
	if err := s.checkAgent("agent_id", in.AgentID); err != nil {
		return nil, err
	}
	if _, err := scope.Owner(string(in.UserID)); err != nil {
		return nil, At("user_id", err)
	}
	if err := oneOf("model", in.Model, s.Engine.Catalog.Models()...); err != nil {
		return nil, err
	}
	chat, err := s.Engine.Turns.Chat(ctx, engine.ChatRequest{
		Scope: scope, UserID: string(in.UserID), SessionID: in.SessionID, Message: in.Message,
		Mode: in.Mode, AgentID: in.AgentID, Model: in.Model, View: in.View, OnBusy: in.OnBusy,
		Key: string(in.Key), Retry: in.retries(), Detached: true, NoMemory: in.Memory != nil && !*in.Memory || LeavesOut(in.MemoryHeader),
	})
	return chat, aboutChat(err)
}

// LeavesOut reports whether a header X-Continuo-Memory leaves a turn out of the memory.
func LeavesOut(header string) bool { return strings.EqualFold(strings.TrimSpace(header), "false") }

// retries is the retry count of an official SDK; nil for other clients.
func (in *ChatRequest) retries() *int {
	count, err := strconv.Atoi(in.SDKRetries)
	if err != nil || count < 0 {
		return nil
	}
	return &count
}

// aboutChat adds the member of the request that caused an error. The other members were checked before.
func aboutChat(err error) error {
	var overflow *continuo.OverflowError
	switch {
	case errors.Is(err, engine.ErrUnknownAgent): // the request's agent, or the one stored in the conversation
		return At("agent_id", err)
	case errors.Is(err, continuo.ErrNotFound), errors.Is(err, continuo.ErrInvalid),
		errors.Is(err, continuo.ErrBusy), errors.Is(err, continuo.ErrOtherUser):
		return At("session_id", err)
	case errors.As(err, &overflow):
		return At("message", err)
	}
	return err
}

// ModelFailed is the problem of a turn whose model gave no complete answer. The turn is in the log: only a retry with
// the same Idempotency-Key repeats it without appending the message twice.
func ModelFailed(failure *continuo.TurnError) *Problem {
	p := &Problem{
		Status: http.StatusBadGateway, Type: UpstreamError, Code: "llm_error", Message: failure.Message,
		Details: ErrorDetails{ModelError: &ModelError{failure.Reason, failure.Retryable, failure.ProviderStatus}},
	}
	if failure.Retryable {
		p.RetryAfter = failure.RetryAfter
	} else {
		p.RetryAfter = RetryNever
	}
	switch failure.Reason {
	case continuo.ReasonTimeout:
		p.Status = http.StatusGatewayTimeout
	case continuo.ReasonRateLimit:
		p.Status, p.Type = http.StatusTooManyRequests, RateLimit
	case continuo.ReasonBudget:
		p.Status, p.Type, p.Code = http.StatusTooManyRequests, RateLimit, "budget_exceeded"
	case continuo.ReasonContextOverflow:
		p.Status, p.Type, p.Code = http.StatusRequestEntityTooLarge, InvalidRequest, "context_overflow"
	case continuo.ReasonCancelled, continuo.ReasonInterrupted: // the turn was stopped or interrupted; the model did not fail
		p.Status, p.Type = http.StatusConflict, Conflict
	}
	return p
}
