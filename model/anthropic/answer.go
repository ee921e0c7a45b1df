package anthropic

import (
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	wire "github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// answer turns the events of a message into deltas.
type answer struct {
	*upstream.Sink
	finish  string
	usage   wire.Usage
	blocks  []*block
	calls   int // number of tool_use blocks so far
	ids     model.CallIDs
	text    bool // there has been text
	thought bool // there has been thinking
}

func newAnswer(sink *upstream.Sink) *answer {
	return &answer{Sink: sink, ids: model.CallIDs{}}
}

// Read is part of [upstream.Answer].
func (a *answer) Read(response *upstream.Response) error { return read(response, a) }

// YieldRest is part of [upstream.Answer].
func (a *answer) YieldRest() { a.yieldVendor() }

// add takes an event of a stream; unknown ones are ignored, as the protocol requires.
func (a *answer) add(event *wire.Event) error {
	switch event.Type {
	case wire.EventMessageStart:
		if event.Message == nil {
			return fmt.Errorf("%s without a message", event.Type)
		}
		a.begin(event.Message)
	case wire.EventContentBlockStart:
		return a.open(event)
	case wire.EventContentBlockDelta, wire.EventContentBlockStop:
		block, err := a.block(event)
		if err != nil {
			return err
		}
		if event.Type == wire.EventContentBlockStop {
			a.close(block)
			return nil
		}
		return a.extend(block, event.Delta)
	case wire.EventMessageDelta:
		return a.addMessageDelta(event)
	}
	return nil
}

// addResponse adds an answer that was not streamed.
func (a *answer) addResponse(response *wire.Response) error {
	a.begin(response)
	for _, raw := range response.Content {
		index := len(a.blocks)
		if err := a.open(&wire.Event{Type: wire.EventContentBlockStart, Index: &index, ContentBlock: raw}); err != nil {
			return err
		}
		a.close(a.blocks[index])
	}
	if response.StopReason != nil {
		a.finish = finishName(*response.StopReason)
	} else {
		a.finish = "stop"
	}
	a.yieldUsage()
	return nil
}

func (a *answer) begin(message *wire.Response) {
	if message.Model != "" {
		a.Yield(model.Delta{Model: message.Model})
	}
	a.usage = message.Usage
	a.yieldUsage()
}

// open begins a block and yields its first content.
func (a *answer) open(event *wire.Event) error {
	if event.Index == nil || *event.Index != len(a.blocks) {
		return fmt.Errorf("a block begins that is not number %d", len(a.blocks))
	}
	block, err := newBlock(event.ContentBlock)
	if err != nil {
		return err
	}
	follows := len(a.blocks) > 0 && a.blocks[len(a.blocks)-1].kind == block.kind
	if block.kind == "text" && a.text && !follows || block.kind == "thinking" && a.thought {
		block.gap = "\n\n"
	}
	a.blocks = append(a.blocks, block)
	switch block.kind {
	case "text":
		a.yieldText(block, block.text("text"))
	case "thinking":
		a.yieldReasoning(block, block.text("thinking"))
	case "tool_use":
		block.call = a.calls
		a.calls++
		delta := &model.ToolCallDelta{
			Index: block.call, ID: a.ids.Take(block.text("id"), block.call), Type: "function", Name: block.text("name"),
		}
		if delta.Name == "" {
			return fmt.Errorf("a tool_use without a name")
		}
		a.Yield(model.Delta{ToolCall: delta})
	}
	return nil
}

func (a *answer) block(event *wire.Event) (*block, error) {
	if event.Index == nil || *event.Index < 0 || *event.Index >= len(a.blocks) {
		return nil, fmt.Errorf("%s of a block that has not begun", event.Type)
	}
	return a.blocks[*event.Index], nil
}

// extend adds a delta to a block and yields it.
func (a *answer) extend(block *block, raw json.RawMessage) error {
	var delta wire.BlockDelta
	if err := json.Unmarshal(raw, &delta); err != nil {
		return err
	}
	switch {
	case delta.Text != nil:
		block.append("text", *delta.Text)
		a.yieldText(block, *delta.Text)
	case delta.Thinking != nil:
		block.append("thinking", *delta.Thinking)
		a.yieldReasoning(block, *delta.Thinking)
	case delta.Signature != nil:
		block.append("signature", *delta.Signature)
	case delta.PartialJSON != nil:
		block.input = append(block.input, *delta.PartialJSON...)
		if block.kind == "tool_use" && *delta.PartialJSON != "" {
			a.Yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: block.call, Arguments: *delta.PartialJSON}})
		}
	case delta.Citation != nil:
		block.addCitation(delta.Citation)
	default:
		return block.addUnknown(raw)
	}
	return nil
}

func (a *answer) yieldText(block *block, text string) {
	if text == "" {
		return
	}
	a.text = true
	a.Yield(model.Delta{Text: block.gap + text})
	block.gap = ""
}

func (a *answer) yieldReasoning(block *block, text string) {
	if text == "" {
		return
	}
	a.thought = true
	a.Yield(model.Delta{Reasoning: block.gap + text})
	block.gap = ""
}

// close ends a block and yields what is known only at its end.
func (a *answer) close(block *block) {
	if block.closed {
		return
	}
	block.closed = true
	switch block.kind {
	case "thinking":
		if signature := block.text("signature"); signature != "" {
			a.Yield(model.Delta{Signature: signature})
		}
	case "tool_use":
		delta := &model.ToolCallDelta{Index: block.call, Done: true}
		if len(block.input) == 0 { // the input came with the block's start, or is empty
			delta.Arguments = string(block.start.Get("input"))
		}
		a.Yield(model.Delta{ToolCall: delta})
	}
}

func (a *answer) addMessageDelta(event *wire.Event) error {
	var delta wire.MessageDelta
	if err := json.Unmarshal(event.Delta, &delta); err != nil {
		return err
	}
	if delta.StopReason != nil && a.finish == "" {
		a.finish = finishName(*delta.StopReason)
	}
	if event.Usage != nil {
		update(&a.usage.InputTokens, event.Usage.InputTokens)
		update(&a.usage.CacheCreationInputTokens, event.Usage.CacheCreationInputTokens)
		update(&a.usage.CacheReadInputTokens, event.Usage.CacheReadInputTokens)
		update(&a.usage.OutputTokens, event.Usage.OutputTokens)
		a.yieldUsage()
	}
	return nil
}

func update(count *int, value *int) {
	if value != nil {
		*count = *value
	}
}

// yieldUsage yields the counts so far, if the upstream sends any. Anthropic's input count leaves out tokens
// read from and written to the cache.
func (a *answer) yieldUsage() {
	if a.usage == (wire.Usage{}) {
		return
	}
	a.Yield(model.Delta{Usage: &continuo.Usage{
		InputTokens:  a.usage.InputTokens + a.usage.CacheReadInputTokens + a.usage.CacheCreationInputTokens,
		OutputTokens: a.usage.OutputTokens, CachedTokens: a.usage.CacheReadInputTokens,
		CacheWriteTokens: a.usage.CacheCreationInputTokens,
	}})
}

// finishName maps a stop reason to OpenAI's name, if there is one.
func finishName(reason string) string {
	switch reason {
	case "end_turn", "stop_sequence":
		return "stop"
	case "tool_use":
		return "tool_calls"
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "refusal":
		return "content_filter"
	}
	return reason
}

// end yields what is known only at the end of the answer.
func (a *answer) end() {
	for _, block := range a.blocks {
		a.close(block)
	}
	a.Yield(model.Delta{Finish: a.finish})
	a.yieldVendor()
}

// yieldVendor yields the complete blocks and the text as vendor data, unless they add nothing to the deltas:
// one text followed by calls.
func (a *answer) yieldVendor() {
	var content []json.RawMessage
	plain := true
	for i, block := range a.blocks {
		if block.closed || block.kind == "text" {
			content = append(content, block.raw())
		}
		plain = plain && block.isPlain() && (block.kind == "tool_use" || i == 0)
	}
	if plain || len(content) == 0 {
		return
	}
	a.Yield(model.Delta{Vendor: rawjson.MustMarshal(struct {
		Content []json.RawMessage `json:"content"`
	}{content})})
}
