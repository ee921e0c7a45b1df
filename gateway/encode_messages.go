package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

func (messages) encoder(asked *askedRequest) encoder {
	return &messagesEncoder{asked: asked, open: -1, calls: map[int]*callBlock{}}
}

// messagesEncoder writes an answer as a message of Anthropic.
type messagesEncoder struct {
	asked *askedRequest
	next  int    // index of the next block
	open  int    // index of the open block of text or thinking, -1 for none
	kind  string // its type
	calls map[int]*callBlock
}

// callBlock is a call's block. The pieces of several calls may alternate, so that their blocks are open at the same time.
type callBlock struct {
	index     int
	arguments []byte // so far
	closed    bool
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
		return e.block("text", anthropic.TextBlock{Type: "text"}) + e.delta(anthropic.BlockDelta{Type: "text_delta", Text: &event.Text})
	case turn.ReasoningDelta:
		wire := e.block("thinking", anthropic.ThinkingBlock{Type: "thinking"})
		if event.Text != "" {
			wire += e.delta(anthropic.BlockDelta{Type: "thinking_delta", Thinking: &event.Text})
		}
		if event.Signature != "" {
			wire += e.delta(anthropic.BlockDelta{Type: "signature_delta", Signature: &event.Signature})
		}
		return wire
	case turn.CallDelta:
		return e.callDelta(event.Delta)
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

// block begins a block of text or thinking, unless one of the same kind is open.
func (e *messagesEncoder) block(kind string, empty any) string {
	if e.open >= 0 && e.kind == kind {
		return ""
	}
	wire := e.closeComplete()
	e.open, e.kind = e.next, kind
	return wire + e.beginNext(empty)
}

// beginNext begins the next block.
func (e *messagesEncoder) beginNext(empty any) string {
	index := e.next
	e.next++
	return anthropicEvent(anthropic.Event{Type: anthropic.EventContentBlockStart, Index: &index, ContentBlock: rawjson.MustMarshal(empty)})
}

// callDelta adds a piece to a call's block, or begins it.
func (e *messagesEncoder) callDelta(delta *model.ToolCallDelta) string {
	block, wire := e.calls[delta.Index], ""
	if block == nil {
		wire = e.closeComplete()
		block = &callBlock{index: e.next}
		e.calls[delta.Index] = block
		wire += e.beginNext(anthropic.ToolUseBlock{Type: "tool_use", ID: delta.ID, Name: delta.Name, Input: []byte("{}")})
	}
	if delta.Arguments != "" && !block.closed {
		block.arguments = append(block.arguments, delta.Arguments...)
		wire += e.deltaOf(block.index, anthropic.BlockDelta{Type: "input_json_delta", PartialJSON: &delta.Arguments})
	}
	if delta.Done {
		wire += e.closeCall(block)
	}
	return wire
}

func (e *messagesEncoder) delta(delta anthropic.BlockDelta) string { return e.deltaOf(e.open, delta) }

func (e *messagesEncoder) deltaOf(index int, delta anthropic.BlockDelta) string {
	return anthropicEvent(anthropic.Event{Type: anthropic.EventContentBlockDelta, Index: &index, Delta: rawjson.MustMarshal(delta)})
}

// closeComplete ends the blocks to which nothing can be added when another one begins.
func (e *messagesEncoder) closeComplete() string {
	return e.closeSome(func(call *callBlock) bool { return json.Valid(call.arguments) })
}

// close ends all open blocks.
func (e *messagesEncoder) close() string {
	return e.closeSome(func(*callBlock) bool { return true })
}

func (e *messagesEncoder) closeSome(ends func(call *callBlock) bool) string {
	wire := ""
	if e.open >= 0 {
		wire = stopOf(e.open)
		e.open = -1
	}
	for _, index := range slices.Sorted(maps.Keys(e.calls)) {
		if call := e.calls[index]; ends(call) {
			wire += e.closeCall(call)
		}
	}
	return wire
}

func (e *messagesEncoder) closeCall(call *callBlock) string {
	if call.closed {
		return ""
	}
	call.closed = true
	return stopOf(call.index)
}

// stopOf is the end of a block.
func stopOf(index int) string {
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
