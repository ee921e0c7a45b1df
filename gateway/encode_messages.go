package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/turn"
)

func (messages) encoder(asked *askedRequest) encoder {
	return &messagesEncoder{asked: asked, open: -1, call: -1}
}

// messagesEncoder writes an answer as a message of Anthropic.
type messagesEncoder struct {
	asked *askedRequest
	next  int    // index of the next block
	open  int    // index of the open block, -1 for none
	kind  string // its type
	call  int    // the index of its call, -1 for none
}

func (e *messagesEncoder) streams() bool { return e.asked.Stream }

// messageID is the id of a turn's answer.
func messageID(chat *engine.Chat) string { return "msg_" + strings.TrimPrefix(chat.TurnID, "turn_") }

func (e *messagesEncoder) begin(chat *engine.Chat) string {
	return anthropicEvent(anthropic.Event{Type: anthropic.EventMessageStart, Message: &anthropic.Response{
		ID: messageID(chat), Type: "message", Role: "assistant", Model: e.asked.Model, Content: []json.RawMessage{},
	}})
}

func anthropicEvent(event anthropic.Event) string {
	return fmt.Sprintf("event: %s\ndata: %s\n\n", event.Type, rawjson.MustMarshal(event))
}

func (e *messagesEncoder) event(event *turn.Event) string {
	switch event.Kind {
	case turn.TextDelta:
		return e.block("text", -1, anthropic.TextBlock{Type: "text"}) + e.delta(anthropic.BlockDelta{Type: "text_delta", Text: &event.Text})
	case turn.ReasoningDelta:
		wire := e.block("thinking", -1, anthropic.ThinkingBlock{Type: "thinking"})
		if event.Text != "" {
			wire += e.delta(anthropic.BlockDelta{Type: "thinking_delta", Thinking: &event.Text})
		}
		if event.Signature != "" {
			wire += e.delta(anthropic.BlockDelta{Type: "signature_delta", Signature: &event.Signature})
		}
		return wire
	case turn.CallDelta:
		delta := event.Delta
		wire := e.block("tool_use", delta.Index, anthropic.ToolUseBlock{Type: "tool_use", ID: delta.ID, Name: delta.Name, Input: []byte("{}")})
		if delta.Arguments != "" {
			wire += e.delta(anthropic.BlockDelta{Type: "input_json_delta", PartialJSON: &delta.Arguments})
		}
		return wire
	case turn.Finished:
		reason := rawjson.MustMarshal(anthropic.MessageDelta{StopReason: stopReason(event.Entry)})
		usage := anthropicUsage(event.Usage)
		return e.close() + anthropicEvent(anthropic.Event{Type: anthropic.EventMessageDelta, Delta: reason, Usage: &anthropic.DeltaUsage{
			InputTokens: &usage.InputTokens, OutputTokens: &usage.OutputTokens,
			CacheReadInputTokens: &usage.CacheReadInputTokens, CacheCreationInputTokens: &usage.CacheCreationInputTokens,
		}}) + anthropicEvent(anthropic.Event{Type: anthropic.EventMessageStop})
	}
	return ""
}

// block begins a block, unless the open one is of the same kind and call.
func (e *messagesEncoder) block(kind string, call int, empty any) string {
	if e.open >= 0 && e.kind == kind && e.call == call {
		return ""
	}
	wire := e.close()
	e.open, e.kind, e.call = e.next, kind, call
	e.next++
	return wire + anthropicEvent(anthropic.Event{Type: anthropic.EventContentBlockStart, Index: &e.open, ContentBlock: rawjson.MustMarshal(empty)})
}

func (e *messagesEncoder) delta(delta anthropic.BlockDelta) string {
	return anthropicEvent(anthropic.Event{Type: anthropic.EventContentBlockDelta, Index: &e.open, Delta: rawjson.MustMarshal(delta)})
}

// close ends the open block.
func (e *messagesEncoder) close() string {
	if e.open < 0 {
		return ""
	}
	index := e.open
	e.open = -1
	return anthropicEvent(anthropic.Event{Type: anthropic.EventContentBlockStop, Index: &index})
}

func (e *messagesEncoder) whole(chat *engine.Chat, end *turn.Event) any {
	answer := end.Entry
	message := anthropic.Response{
		ID: messageID(chat), Type: "message", Role: "assistant", Model: e.asked.Model, Content: []json.RawMessage{},
		StopReason: stopReason(answer), Usage: anthropicUsage(end.Usage),
	}
	add := func(block any) { message.Content = append(message.Content, rawjson.MustMarshal(block)) }
	if answer.Reasoning != nil {
		add(anthropic.ThinkingBlock{Type: "thinking", Thinking: answer.Reasoning.Text, Signature: answer.Reasoning.Signature})
	}
	if text := answer.Content.String(); text != "" {
		add(anthropic.TextBlock{Type: "text", Text: text})
	}
	for _, call := range answer.ToolCalls {
		input := json.RawMessage(call.Arguments)
		if !json.Valid(input) {
			input = rawjson.MustMarshal(map[string]string{"input": call.Arguments})
		}
		add(anthropic.ToolUseBlock{Type: "tool_use", ID: call.ID, Name: call.Name, Input: input})
	}
	return message
}

// stopReason is why an answer ended, under Anthropic's name.
func stopReason(answer *continuo.Entry) *string {
	names := map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
	reason := finishReason(answer)
	if name, ok := names[reason]; ok {
		reason = name
	}
	return &reason
}

// anthropicUsage is the usage of an answer; Anthropic counts the cached tokens beside the others.
func anthropicUsage(usage continuo.Usage) anthropic.Usage {
	return anthropic.Usage{
		InputTokens: max(usage.InputTokens-usage.CachedTokens-usage.CacheWriteTokens, 0), OutputTokens: usage.OutputTokens,
		CacheReadInputTokens: usage.CachedTokens, CacheCreationInputTokens: usage.CacheWriteTokens,
	}
}
