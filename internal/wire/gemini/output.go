package gemini

import (
	"encoding/json"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Output returns the parts of an assistant entry as an answer has them: the provider's own, or else a thought, the text
// and the calls, with ids, so that a client answers each call by its id.
func Output(entry *continuo.Entry, o Options) (parts []json.RawMessage) {
	if own, ok := Own(entry, o); ok {
		return own
	}
	if entry.Reasoning != nil && entry.Reasoning.Text != "" {
		parts = append(parts, TextPart(entry.Reasoning.Text, true))
	}
	if text := entry.Content.String(); text != "" {
		parts = append(parts, TextPart(text, false))
	}
	for _, call := range entry.ToolCalls {
		parts = append(parts, CallPart(call))
	}
	return parts
}

// TextPart returns a text, or a piece of one, or of a thought.
func TextPart(text string, thought bool) json.RawMessage {
	part := textOf(text)
	if thought {
		part = append(part[:len(part)-1], `,"thought":true}`...)
	}
	return part
}

// CallPart returns a call with its id. Calls are streamed whole.
func CallPart(call continuo.ToolCall) json.RawMessage {
	return rawjson.MustMarshal(callPart{FunctionCall: FunctionCall{ID: call.ID, Name: call.Name, Args: argsOf(call.Arguments)}})
}

// Answer returns an answer, or a piece of a streamed one. The last piece has the finish reason, under OpenAI's name, and
// the usage; others have "" and nil.
func Answer(parts []json.RawMessage, finish string, usage *continuo.Usage) Response {
	if parts == nil {
		parts = []json.RawMessage{}
	}
	return Response{
		Candidates:    []Candidate{{Content: Content{Role: "model", Parts: parts}, FinishReason: finishReason(finish)}},
		UsageMetadata: UsageOf(usage),
	}
}

// finishReason maps OpenAI's name of a finish reason to the API's; a name of another provider is OTHER.
func finishReason(finish string) string {
	switch finish {
	case "":
		return ""
	case "stop", "tool_calls":
		return "STOP"
	case "length":
		return "MAX_TOKENS"
	case "content_filter":
		return "SAFETY"
	}
	return "OTHER"
}

// UsageOf is a usage in the API's form; nil for nil.
func UsageOf(usage *continuo.Usage) *Usage {
	if usage == nil {
		return nil
	}
	return &Usage{
		PromptTokenCount: usage.InputTokens, CachedContentTokenCount: usage.CachedTokens,
		CandidatesTokenCount: usage.OutputTokens - usage.ReasoningTokens, ThoughtsTokenCount: usage.ReasoningTokens,
		TotalTokenCount: usage.InputTokens + usage.OutputTokens,
	}
}
