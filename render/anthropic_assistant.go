package render

import (
	"bytes"
	"encoding/json"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/window"
)

// assistantBlocks writes an assistant message; ids are its calls' ids in the request. A message without text
// and calls gives no blocks.
func (w *anthropicWriter) assistantBlocks(m *window.Message, ids callNames) ([]json.RawMessage, error) {
	own := w.vendorBlocks(m)
	if own != nil && shownWhole(m) && sameCalls(own, m) {
		return withoutLastThinking(ownBlocks(own, m, ids)), nil
	}
	var blocks []json.RawMessage
	for _, block := range own {
		switch blockType(block) {
		case "thinking", "redacted_thinking", "compaction":
			blocks = append(blocks, block.Raw())
		}
	}
	if own == nil && w.options.owns(m) && m.Entry.Reasoning != nil && m.Entry.Reasoning.Signature != "" {
		blocks = append(blocks, rawjson.MustMarshal(anthropic.ThinkingBlock{
			Type: "thinking", Thinking: m.Entry.Reasoning.Text, Signature: m.Entry.Reasoning.Signature,
		}))
	}
	blocks = append(blocks, w.contentBlocks(m)...)
	for i := range m.ToolCalls {
		block, err := w.callBlock(&m.ToolCalls[i], ids.at(i))
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return withoutLastThinking(blocks), nil
}

// callBlock writes a tool_use block.
func (w *anthropicWriter) callBlock(call *continuo.ToolCall, id string) (_ json.RawMessage, err error) {
	begin := w.begin("tool_use")
	w.memory = rawjson.AppendString(append(w.memory, `,"id":`...), id)
	w.memory = rawjson.AppendString(append(w.memory, `,"name":`...), ToolName(call.Name))
	w.memory = append(w.memory, `,"input":`...)
	if w.memory, err = rawjson.AppendCompact(w.memory, inputObject(call.Arguments)); err != nil {
		return nil, err
	}
	return w.end(begin), nil
}

// withoutLastThinking drops trailing thinking: a message must not end with it.
func withoutLastThinking(blocks []json.RawMessage) []json.RawMessage {
	for len(blocks) > 0 {
		if !isThinkingBlock(typeOf(blocks[len(blocks)-1])) {
			break
		}
		blocks = blocks[:len(blocks)-1]
	}
	return blocks
}

// sameCalls reports whether the tool_use blocks are the message's calls, in order.
func sameCalls(blocks []rawjson.Object, m *window.Message) bool {
	n := 0
	for _, block := range blocks {
		if blockType(block) != "tool_use" {
			continue
		}
		id, _ := rawjson.String(block.Get("id"))
		if n == len(m.ToolCalls) || n == len(m.Entry.ToolCalls) || m.ToolCalls[n].ID != id {
			return false
		}
		n++
	}
	return n == len(m.ToolCalls)
}

// ownBlocks writes the provider's own blocks. A call gets its id in the request, and the shortened arguments
// if the plan cut them down.
func ownBlocks(own []rawjson.Object, m *window.Message, ids callNames) []json.RawMessage {
	var blocks, calls []json.RawMessage // calls are added at the end of their segment
	n := 0
	for _, block := range own {
		switch blockType(block) {
		case "tool_use":
			call := m.ToolCalls[n]
			block.Set("id", rawjson.MustMarshal(ids.at(n)))
			if call.Arguments != m.Entry.ToolCalls[n].Arguments || !isObject(block.Get("input")) {
				block.Set("input", inputObject(call.Arguments))
			}
			calls = append(calls, block.Raw())
			n++
		case "thinking", "redacted_thinking":
			blocks = append(append(blocks, calls...), block.Raw())
			calls = nil
		default:
			blocks = append(blocks, block.Raw())
		}
	}
	return append(blocks, calls...)
}

// inputObject makes the input of a tool_use block: the arguments if they are a JSON object, else an object
// that holds their text.
func inputObject(arguments string) json.RawMessage {
	if isObject(json.RawMessage(arguments)) {
		return json.RawMessage(arguments)
	}
	return rawjson.MustMarshal(struct {
		Arguments string `json:"arguments"`
	}{arguments})
}

func isObject(value json.RawMessage) bool {
	trimmed := bytes.TrimLeft(value, " \n\t\r")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(value)
}
