package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/fragment"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// answer turns the pieces of a message into deltas.
type answer struct {
	*upstream.Sink
	model  string
	finish string
	calls  calls
	vendor fragment.Object
}

func newAnswer(sink *upstream.Sink) *answer {
	return &answer{Sink: sink, calls: calls{ids: model.CallIDs{}}}
}

// Read is part of [upstream.Answer].
func (a *answer) Read(response *upstream.Response) error { return read(response, a) }

// YieldRest is part of [upstream.Answer]: nothing is held back.
func (a *answer) YieldRest() {}

func (a *answer) addModel(name string) {
	if a.model == "" && name != "" {
		a.model = name
		a.Yield(model.Delta{Model: name})
	}
}

func (a *answer) addUsage(usage *openaichat.Usage) {
	if usage == nil || usage.PromptTokens+usage.CompletionTokens == 0 {
		return // some servers send zeros until the end
	}
	counted := continuo.Usage{
		InputTokens: usage.PromptTokens, OutputTokens: usage.CompletionTokens, CachedTokens: usage.PromptCacheHitTokens,
	}
	if details := usage.PromptTokensDetails; details != nil {
		counted.CachedTokens = max(counted.CachedTokens, details.CachedTokens)
		counted.CacheWriteTokens = details.CacheWriteTokens
	}
	if details := usage.CompletionTokensDetails; details != nil {
		counted.ReasoningTokens = details.ReasoningTokens
	}
	a.Yield(model.Delta{Usage: &counted})
}

func (a *answer) addMessage(message openaichat.Message) {
	text, thinking := contentText(message.Content)
	refusal, _ := rawjson.String(message.Refusal)
	if reasoning := message.Reasoning + thinking; reasoning != "" {
		a.Yield(model.Delta{Reasoning: reasoning})
	}
	if text += refusal; text != "" {
		a.Yield(model.Delta{Text: text})
	}
	pieces := message.ToolCalls
	if message.FunctionCall != nil {
		first := 0
		pieces = append(pieces, openaichat.ToolCall{Index: &first, Function: message.FunctionCall})
	}
	for _, piece := range pieces {
		if delta := a.calls.add(piece); delta != nil {
			a.Yield(model.Delta{ToolCall: delta})
		}
	}
	a.vendor.Add(message.Extra)
}

// contentText returns the text of a content: a string, or a list of parts as Mistral's models send it,
// where thinking is a part too.
func contentText(content json.RawMessage) (text, thinking string) {
	if text, ok := rawjson.String(content); ok {
		return text, ""
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return "", ""
	}
	for _, part := range parts {
		if part.Type == "thinking" {
			inner, _ := contentText(part.Thinking)
			thinking += inner
		} else {
			text += part.Text
		}
	}
	return text, thinking
}

// finishName maps a compatible server's finish reason to OpenAI's name, if there is one.
func finishName(reason string) string {
	switch reason = strings.ToLower(reason); reason {
	case "function_call", "tool_use", "tool_call":
		return "tool_calls"
	case "max_tokens", "model_length", "max_output_tokens":
		return "length"
	case "eos", "eos_token", "end_turn", "stop_sequence":
		return "stop"
	case "safety", "content-filter":
		return "content_filter"
	}
	return reason
}

// isFailure reports whether a finish reason means that the server could not finish.
func isFailure(finish string) bool {
	switch finish {
	case "error", "abort", "aborted", "cancelled", "insufficient_system_resource", "network_error":
		return true
	}
	return false
}

func (a *answer) addFinish(reason *string) {
	if reason == nil || *reason == "" || a.finish != "" {
		return // some servers repeat it with the usage
	}
	a.finish = finishName(*reason)
}

// end yields what is known only at the end of the answer.
func (a *answer) end(response *upstream.Response) error {
	if isFailure(a.finish) {
		return response.Failure(fmt.Sprintf("the model stopped with the reason %q", a.finish))
	}
	for _, call := range a.calls.all {
		if call.name == "" {
			a.Yield(model.Delta{ToolCall: call.begin()})
			return response.Failure("the model called a tool without naming it")
		}
		a.Yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: call.index, Done: true}})
	}
	a.Yield(model.Delta{Finish: a.finish})
	if vendor := a.vendor.Raw(); vendor != nil {
		a.Yield(model.Delta{Vendor: vendor})
	}
	return nil
}
