package api

import (
	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Error is the body of an answer that reports an error.
type Error struct {
	Error ErrorDetail `json:"error"`
}

// ChatFailure is an error of a turn. The members beside `error` are there when the log has the message.
type ChatFailure struct {
	Error          ErrorDetail `json:"error"`
	*PartialAnswer `json:",omitempty"`
}

// PartialAnswer is what a turn that failed has produced.
type PartialAnswer struct {
	ChatIDs
	// The text that the model had produced when the turn failed; empty for none.
	Response string         `json:"response"`
	Usage    continuo.Usage `json:"usage"`
}

// ErrorDetail is an error of an operation.
type ErrorDetail struct {
	// Who has to act.
	Type ErrorType `json:"type"`
	// The cause, for programs. For an entry that breaks a rule of the log, the rule.
	Code string `json:"code"`
	// The cause, for people.
	Message string `json:"message"`
	// The field, query parameter or header at fault.
	Param *string `json:"param"`
	ErrorDetails
	// The delay in seconds after which the same request may succeed, as in the header `Retry-After`. Of 429, 502, 503 and
	// 504, unless `retryable` is false.
	RetryAfter int `json:"retry_after,omitempty"`
}

// ErrorDetails are the members that errors of some codes have.
type ErrorDetails struct {
	*ModelError  `json:",omitempty"`
	*SeqConflict `json:",omitempty"`
	*Overflow    `json:",omitempty"`
	// The errors in the file of a workflow or a crew. Of `workflow_invalid` and `crew_invalid`.
	Problems []ShownProblem `json:"problems,omitempty"`
}

// ModelError describes why a model gave no complete answer.
type ModelError struct {
	// Of `llm_error`, and of a `context_overflow` that the provider reported.
	Reason continuo.FailureReason `json:"reason"`
	// Whether the model may answer the same request later. Of `llm_error`.
	Retryable bool `json:"retryable"`
	// The provider's HTTP status. Of `llm_error`, when there was one.
	ProviderStatus int `json:"provider_status,omitempty"`
}

// SeqConflict describes an append at another position than the end of the log.
type SeqConflict struct {
	// The seq that the append expected. Of `conflict`.
	ExpectSeq int64 `json:"expect_seq"`
	// The seq that the next entry gets. Of `conflict`.
	NextSeq int64 `json:"next_seq"`
}

// Overflow has the sizes of a request that does not fit.
type Overflow struct {
	// The view of the request. Of `context_overflow`, like the members that follow.
	View string `json:"view"`
	// The provider's name of the model whose window is too small; empty where a limit of the view is.
	Model string `json:"model"`
	// The whole window of the model, in tokens; 0 where a limit of the view is too small.
	ContextWindow int           `json:"context_window"`
	Limits        continuo.Size `json:"limits"`
	Prompt        continuo.Size `json:"prompt"`
	// How many tokens of the window are reserved for the answer.
	AnswerTokens int           `json:"answer_tokens"`
	NewestUser   continuo.Size `json:"newest_user"`
	OpenGroup    continuo.Size `json:"open_group"`
	// The rest of an open cycle that the view shows completely.
	OpenCycle continuo.Size `json:"open_cycle"`
}

// overflowOf converts an overflow to the form for clients.
func overflowOf(e *continuo.OverflowError) *Overflow {
	return &Overflow{
		View: e.View, Model: e.Model, ContextWindow: e.ModelWindow, Limits: e.Limits, Prompt: e.Prompt,
		AnswerTokens: e.Answer, NewestUser: e.NewestUser, OpenGroup: e.OpenGroup, OpenCycle: e.OpenCycle,
	}
}

// MarshalJSON writes the body of the answer.
func (p *Problem) MarshalJSON() ([]byte, error) {
	detail := ErrorDetail{Type: p.Type, Code: p.Code, Message: p.Message, ErrorDetails: p.Details, RetryAfter: p.Wait()}
	if p.Param != "" {
		detail.Param = &p.Param
	}
	return rawjson.Marshal(ChatFailure{detail, p.Turn})
}
