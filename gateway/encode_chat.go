package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/turn"
)

func (chatCompletions) encoder(asked *askedRequest) encoder {
	var options openaichat.StreamOptions
	_ = json.Unmarshal(asked.Fields.Get("stream_options"), &options) // what cannot be read counts as absent
	return &chatEncoder{asked: asked, usage: options.IncludeUsage, created: time.Now().Unix()}
}

// chatEncoder writes an answer as a chat completion.
type chatEncoder struct {
	asked   *askedRequest
	usage   bool // the stream ends with the usage
	created int64
	id      string
}

func (e *chatEncoder) streams() bool { return e.asked.Stream }

func (e *chatEncoder) begin(chat *engine.Chat) string {
	e.id = chatID(chat.TurnID)
	return e.chunk(openaichat.Message{Role: "assistant", Content: []byte(`""`)}, nil)
}

// chatID is the id of a turn's answer in chat completions.
func chatID(turnID string) string { return "chatcmpl-" + strings.TrimPrefix(turnID, "turn_") }

func (e *chatEncoder) event(event *turn.Event) string {
	switch event.Kind {
	case turn.TextDelta:
		return e.chunk(openaichat.Message{Content: rawjson.MustMarshal(event.Text)}, nil)
	case turn.ReasoningDelta:
		if event.Text != "" {
			return e.chunk(openaichat.Message{Reasoning: event.Text}, nil)
		}
	case turn.CallDelta:
		return e.chunk(openaichat.Message{ToolCalls: []openaichat.ToolCall{callDelta(event)}}, nil)
	case turn.Finished:
		reason := finishReason(event.Entry)
		wire := e.chunk(openaichat.Message{}, &reason)
		if e.usage {
			wire += e.line(openaichat.Chunk{Choices: []openaichat.ChunkChoice{}, Usage: chatUsage(event.Usage)})
		}
		return wire + "data: " + openaichat.Done + "\n\n"
	}
	return ""
}

// callDelta is a piece of a call in a chunk.
func callDelta(event *turn.Event) openaichat.ToolCall {
	delta := event.Delta
	piece := openaichat.ToolCall{Index: &delta.Index, ID: delta.ID, Type: delta.Type}
	if delta.Type == "custom" {
		piece.Custom = &openaichat.Custom{Name: delta.Name, Input: openaichat.Arguments(delta.Arguments)}
		return piece
	}
	piece.Function = &openaichat.Function{Name: delta.Name, Arguments: openaichat.Arguments(delta.Arguments)}
	return piece
}

func (e *chatEncoder) chunk(delta openaichat.Message, finish *string) string {
	return e.line(openaichat.Chunk{Choices: []openaichat.ChunkChoice{{Delta: delta, FinishReason: finish}}})
}

func (e *chatEncoder) line(chunk openaichat.Chunk) string {
	chunk.ID, chunk.Object, chunk.Created, chunk.Model = e.id, "chat.completion.chunk", openaichat.Seconds(e.created), e.asked.Model
	return fmt.Sprintf("data: %s\n\n", rawjson.MustMarshal(chunk))
}

func (e *chatEncoder) whole(chat *engine.Chat, end *turn.Event) any {
	return chatResponse(chatID(chat.TurnID), e.created, e.asked.Model, end.Entry, end.Usage)
}

// chatResponse is an answer as a chat completion.
func chatResponse(id string, created int64, model string, answer *continuo.Entry, usage continuo.Usage) openaichat.Response {
	reason := finishReason(answer)
	message := openaichat.Message{Role: "assistant", Content: []byte("null")}
	if !answer.Content.IsNull() {
		message.Content = rawjson.MustMarshal(answer.Content)
	}
	if answer.Reasoning != nil {
		message.Reasoning = answer.Reasoning.Text
	}
	for _, call := range answer.ToolCalls {
		piece := openaichat.ToolCall{ID: call.ID, Type: call.Type}
		if call.Type == "custom" {
			piece.Custom = &openaichat.Custom{Name: call.Name, Input: openaichat.Arguments(call.Arguments)}
		} else {
			piece.Function = &openaichat.Function{Name: call.Name, Arguments: openaichat.Arguments(call.Arguments)}
		}
		message.ToolCalls = append(message.ToolCalls, piece)
	}
	return openaichat.Response{
		ID: id, Object: "chat.completion", Created: openaichat.Seconds(created), Model: model,
		Choices: []openaichat.Choice{{Message: message, FinishReason: &reason}}, Usage: chatUsage(usage),
	}
}

// finishReason is why an answer ended, under OpenAI's name.
func finishReason(answer *continuo.Entry) string {
	switch {
	case len(answer.ToolCalls) > 0:
		return "tool_calls"
	case answer.Round == nil || answer.Round.FinishReason == "":
		return "stop"
	}
	return answer.Round.FinishReason
}

// chatUsage is the usage of an answer in chat completions.
func chatUsage(usage continuo.Usage) *openaichat.Usage {
	return &openaichat.Usage{
		PromptTokens: usage.InputTokens, CompletionTokens: usage.OutputTokens, TotalTokens: usage.InputTokens + usage.OutputTokens,
		PromptTokensDetails:     &openaichat.PromptDetails{CachedTokens: usage.CachedTokens},
		CompletionTokensDetails: &openaichat.CompletionDetails{ReasoningTokens: usage.ReasoningTokens},
	}
}
