package api

import (
	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/window"
)

// ChatIDs names the turn and the conversation of an answer.
type ChatIDs struct {
	// The key or id that the request named, or the id of the conversation that it began.
	SessionID      string `json:"session_id"`
	ConversationID string `json:"conversation_id"`
	TurnID         string `json:"turn_id"`
	// The failed turn that this turn resumes; absent for a turn with a message of its own.
	Resumed *engine.Resumed `json:"resumed,omitempty"`
}

// ChatAnswer is the result of a turn.
type ChatAnswer struct {
	ChatIDs
	// The model's final text. Where `resumed` is there, it follows its `response`.
	Response string `json:"response"`
	// Why the model stopped: stop, length, content_filter, or a word of the provider's own; empty when the model gave no
	// reason.
	FinishReason string         `json:"finish_reason"`
	Usage        continuo.Usage `json:"usage"`
	Context      *ChatContext   `json:"context" nullable:"true"`
}

// ChatContext says what the turn's last request showed of the conversation. The plan itself is at
// `entries/{seq}/request`.
type ChatContext struct {
	View string `json:"view"`
	// The newest seq that the request could see.
	At int64 `json:"at"`
	window.PlanTotals
	// Counts the positions of the view's window.
	Epoch int64 `json:"epoch"`
	// Whether the window has moved since the previous request.
	Moved bool `json:"moved"`
}

// AnswerOf makes the result of a turn that ended with an entry: its answer, or the problem of a model that gave no complete
// one. plan is that of the last request; nil if it is not known.
func AnswerOf(ids ChatIDs, last *continuo.Entry, usage continuo.Usage, plan *window.Plan) (*ChatAnswer, error) {
	if last.Error != nil {
		failed := ProblemOf(ModelFailed(last.Error))
		failed.Turn = &PartialAnswer{ChatIDs: ids, Response: last.Content.String(), Usage: usage}
		return nil, failed
	}
	answer := &ChatAnswer{ChatIDs: ids, Response: last.Content.String(), Usage: usage, Context: ChatContextOf(plan)}
	if last.Round != nil {
		answer.FinishReason = last.Round.FinishReason
	}
	return answer, nil
}

// ChatContextOf is the part of a plan that answers show; nil without a plan.
func ChatContextOf(plan *window.Plan) *ChatContext {
	if plan == nil {
		return nil
	}
	return &ChatContext{View: plan.View, At: plan.At, PlanTotals: plan.Totals, Epoch: plan.Window.Epoch, Moved: plan.Moved}
}
