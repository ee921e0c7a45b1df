package gemini

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	wire "github.com/continuo-log/continuo/internal/wire/gemini"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/failure"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// answer turns the pieces of an answer into deltas.
type answer struct {
	*upstream.Sink
	model   string
	finish  string // the provider's reason
	message string // what the provider says about the reason
	parts   []wire.Part
	texts   wire.Texts
	calls   int
	ids     model.CallIDs
}

func newAnswer(sink *upstream.Sink) *answer {
	return &answer{Sink: sink, ids: model.CallIDs{}}
}

// Read is part of [upstream.Answer].
func (a *answer) Read(response *upstream.Response) error { return read(response, a) }

// YieldRest is part of [upstream.Answer].
func (a *answer) YieldRest() { a.yieldVendor() }

// add takes a piece. An error that is no *failure.Failure means that the piece cannot be read.
func (a *answer) add(response *upstream.Response, piece *wire.Response) error {
	if a.model == "" && piece.ModelVersion != "" {
		a.model = piece.ModelVersion
		a.Yield(model.Delta{Model: a.model})
	}
	for _, candidate := range piece.Candidates {
		if candidate.Index != 0 {
			continue
		}
		for _, raw := range candidate.Content.Parts {
			part, err := wire.ParsePart(raw)
			if err != nil {
				return err
			}
			if err := a.addPart(part); err != nil {
				return err
			}
		}
		if reason := candidate.FinishReason; reason != "" && reason != "FINISH_REASON_UNSPECIFIED" {
			a.finish, a.message = reason, candidate.FinishMessage
		}
	}
	a.yieldUsage(piece.UsageMetadata)
	if blocked := piece.PromptFeedback; blocked != nil && blocked.BlockReason != "" && len(piece.Candidates) == 0 {
		failed := response.Failure(fmt.Sprintf("the prompt was refused: %s", cmp.Or(blocked.BlockReasonMessage, blocked.BlockReason)))
		failed.Reason, failed.Retryable = failure.ContentFilter, false
		return failed
	}
	return nil
}

func isFailure(err error) bool {
	var failed *failure.Failure
	return errors.As(err, &failed)
}

// addPart yields a part and keeps it.
func (a *answer) addPart(part wire.Part) error {
	text, reasoning := a.texts.Add(part)
	if text != "" {
		a.Yield(model.Delta{Text: text})
	}
	if reasoning != "" {
		a.Yield(model.Delta{Reasoning: reasoning})
	}
	if call := part.Call; call != nil {
		if call.Name == "" {
			return fmt.Errorf("a functionCall without a name")
		}
		arguments := string(call.Args)
		if rawjson.IsNull(call.Args) {
			arguments = "{}"
		}
		a.Yield(model.Delta{ToolCall: &model.ToolCallDelta{
			Index: a.calls, ID: a.ids.Take(call.ID, a.calls), Type: "function", Name: call.Name, Arguments: arguments, Done: true,
		}})
		a.calls++
	}
	if last := len(a.parts) - 1; last >= 0 && part.Mergeable() && a.parts[last].Mergeable() && part.Thought == a.parts[last].Thought {
		a.parts[last] = joined(a.parts[last], part)
		return nil
	}
	a.parts = append(a.parts, part)
	return nil
}

// joined is a piece of a text with the next one.
func joined(part, next wire.Part) wire.Part {
	part.Text += next.Text
	object, _ := rawjson.ParseObject(part.Raw)
	object.Set("text", rawjson.MustMarshal(part.Text))
	part.Raw = object.Raw()
	return part
}

func (a *answer) yieldUsage(usage *wire.Usage) {
	if usage == nil || usage.PromptTokenCount+usage.CandidatesTokenCount == 0 {
		return
	}
	a.Yield(model.Delta{Usage: &continuo.Usage{
		InputTokens:  usage.PromptTokenCount + usage.ToolUsePromptTokenCount,
		OutputTokens: usage.CandidatesTokenCount + usage.ThoughtsTokenCount,
		CachedTokens: usage.CachedContentTokenCount, ReasoningTokens: usage.ThoughtsTokenCount,
	}})
}

// finishName maps the provider's reason to OpenAI's name; "" for one that means that the answer failed.
func finishName(reason string) string {
	switch reason {
	case "STOP":
		return "stop"
	case "MAX_TOKENS":
		return "length"
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return "content_filter"
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "NO_IMAGE", "OTHER":
		return ""
	}
	return reason
}

// end yields what is known only at the end of the answer.
func (a *answer) end(response *upstream.Response) error {
	finish := finishName(a.finish)
	if finish == "" {
		return response.Failure(fmt.Sprintf("the model stopped with the reason %s: %s", a.finish, cmp.Or(a.message, "it said no more")))
	}
	if finish == "stop" && a.calls > 0 {
		finish = "tool_calls"
	}
	a.Yield(model.Delta{Finish: finish})
	a.yieldVendor()
	return nil
}

// yieldVendor yields the parts as vendor data, unless they add nothing to the deltas: one text followed by calls without
// ids.
func (a *answer) yieldVendor() {
	raws := make([]json.RawMessage, len(a.parts))
	plain := true
	for i, part := range a.parts {
		raws[i] = part.Raw
		call := part.Call != nil && part.Call.ID == "" && !part.Signed
		plain = plain && (call || i == 0 && part.Mergeable() && !part.Thought)
	}
	if !plain && len(raws) > 0 {
		a.Yield(model.Delta{Vendor: wire.Vendor(raws)})
	}
}
