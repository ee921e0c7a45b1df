package render

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// CheckAnthropic checks the message list of a Messages API request against the rules of the protocol, by the
// checklist of docs/protocol-rules.md: A1 to A13. Messages of one role that follow each other count as one,
// as the API merges them; system messages in the middle, which a beta allows, are ignored.
func CheckAnthropic(messages []json.RawMessage) []Violation {
	c := anthropicChecker{used: map[string]bool{}}
	if len(messages) == 0 {
		c.hard(0, "A10 empty_list", "there is no message")
	}
	for i, raw := range messages {
		c.message(i, raw)
	}
	c.endSegment("A3 unanswered_at_end")
	c.lastText()
	if c.marks > 4 {
		c.hard(len(messages)-1, "A11 too_many_cache_marks", "%d blocks have cache_control, 4 may", c.marks)
	}
	return c.findings
}

// anthropicChecker goes through a list, one segment (messages of one role in a row) at a time.
type anthropicChecker struct {
	findings
	role   string
	blocks []placedBlock
	calls  []placedCall    // tool_use of the assistant segment just before or current
	used   map[string]bool // ids of all tool_use so far
	marks  int
}

// placedBlock is a block with its position: the message that it came in.
type placedBlock struct {
	index int
	kind  string
	block rawjson.Object
}

type placedCall struct {
	index    int
	id       string
	answered bool
}

func (c *anthropicChecker) message(i int, raw json.RawMessage) {
	m, err := rawjson.ParseObject(raw)
	if err != nil {
		c.hard(i, "A2 not_an_object", "the message is no JSON object")
		return
	}
	if loneSurrogate(raw, 0) >= 0 {
		c.hard(i, "A10 lone_surrogate", "the text holds half of a surrogate pair")
	}
	role := stringOf(m.Get("role"))
	switch {
	case role == "system":
		c.lint(i, "A2 mid_system", "system messages among the others need a beta of the API")
		return
	case role != "user" && role != "assistant":
		c.hard(i, "A2 unknown_role", "the role %q is not user or assistant", role)
		return
	case role == c.role:
		c.lint(i, "A2 consecutive_roles", "the message before it is the %s's too; the API merges them", role)
	case c.role == "" && role == "assistant":
		c.lint(i, "A1 first_not_user", "the first message is not the user's")
	}
	if role != c.role {
		c.endSegment("A3 unanswered")
		c.role = role
	}
	c.content(i, m.Get("content"))
}

// content checks each block of a message by itself and adds it to the segment.
func (c *anthropicChecker) content(i int, content json.RawMessage) {
	if text, ok := rawjson.String(content); ok {
		if isBlank(text) {
			c.hard(i, "A10 empty_content", "the message is empty")
		}
		c.blocks = append(c.blocks, placedBlock{i, "text", rawjson.Object{{Key: "text", Value: content}}})
		return
	}
	var raws []json.RawMessage
	if json.Unmarshal(content, &raws) != nil || len(raws) == 0 {
		c.hard(i, "A10 empty_content", "the message has no block")
		return
	}
	for n, raw := range raws {
		block, err := rawjson.ParseObject(raw)
		if err != nil || blockType(block) == "" {
			c.hard(i, "A2 bad_block", "block %d is no object with a type", n)
			continue
		}
		placed := placedBlock{i, blockType(block), block}
		c.block(placed)
		c.blocks = append(c.blocks, placed)
	}
}

// block checks the rules for a single block.
func (c *anthropicChecker) block(b placedBlock) {
	if !rawjson.IsNull(b.block.Get("cache_control")) {
		c.marks++
		if isThinkingBlock(b.kind) {
			c.hard(b.index, "A11 cache_mark_on_thinking", "a thinking block has cache_control")
		}
	}
	switch b.kind {
	case "text":
		if isBlank(stringOf(b.block.Get("text"))) {
			c.hard(b.index, "A10 empty_text", "a text block is empty")
		}
	case "tool_use":
		c.toolUse(b)
	case "tool_result":
		var nested []json.RawMessage
		if json.Unmarshal(b.block.Get("content"), &nested) != nil {
			return
		}
		for _, raw := range nested {
			inner, _ := rawjson.ParseObject(raw)
			if blockType(inner) == "text" && isBlank(stringOf(inner.Get("text"))) {
				c.hard(b.index, "A10 empty_text", "a text block in a tool_result is empty")
			}
		}
	}
}

func (c *anthropicChecker) toolUse(b placedBlock) {
	id, name := stringOf(b.block.Get("id")), stringOf(b.block.Get("name"))
	if id == "" || cleanName(id) != id {
		c.hard(b.index, "A6 bad_use_id", "the id %q is not made of letters, digits, _ and -", id)
	}
	if name == "" || cleanName(name) != name {
		c.hard(b.index, "A6 bad_name", "the tool name %q is not made of letters, digits, _ and -", name)
	}
	if kindOf(b.block.Get("input")) != "object" {
		c.hard(b.index, "A8 input_not_object", "the input of %s (%s) is no JSON object", name, id)
	}
}

func isThinkingBlock(kind string) bool { return kind == "thinking" || kind == "redacted_thinking" }

// endSegment checks the collected segment and begins another. code is for calls of the previous assistant
// segment that this segment did not answer.
func (c *anthropicChecker) endSegment(code string) {
	blocks := c.blocks
	c.blocks = nil
	switch c.role {
	case "user":
		c.user(blocks)
		c.unanswered("A3 unanswered")
	case "assistant":
		c.assistant(blocks)
		if code == "A3 unanswered_at_end" {
			c.unanswered(code)
			c.blocks = blocks // for lastText
		}
	}
}

func (c *anthropicChecker) unanswered(code string) {
	for _, call := range c.calls {
		if !call.answered {
			c.hard(call.index, code, "the tool_use %q has no tool_result in the next message", call.id)
		}
	}
	c.calls = nil
}

func (c *anthropicChecker) user(blocks []placedBlock) {
	other := "" // kind of an earlier block that is no result
	for _, b := range blocks {
		switch b.kind {
		case "tool_result":
			c.result(b)
			if other != "" {
				c.hard(b.index, "A4 result_not_first", "a tool_result follows a %s block", other)
			}
			continue
		case "tool_use":
			c.hard(b.index, "A5 misplaced_tool_use", "a user message has a tool_use block")
		case "thinking", "redacted_thinking":
			c.hard(b.index, "A9 misplaced_thinking", "a user message has a thinking block")
		}
		other = b.kind
	}
}

func (c *anthropicChecker) result(b placedBlock) {
	id := stringOf(b.block.Get("tool_use_id"))
	at := slices.IndexFunc(c.calls, func(call placedCall) bool { return call.id == id })
	switch {
	case at < 0:
		c.hard(b.index, "A5 orphan_result", "the tool_result answers %q, which is no tool_use of the message before", id)
	case c.calls[at].answered:
		c.hard(b.index, "A5 duplicate_result", "the tool_use %q has its tool_result already", id)
	default:
		c.calls[at].answered = true
	}
}

func (c *anthropicChecker) assistant(blocks []placedBlock) {
	afterUse := false // since the last thinking block
	for i, b := range blocks {
		switch b.kind {
		case "tool_use":
			c.call(b)
			afterUse = true
		case "thinking", "redacted_thinking":
			afterUse = false
		case "text":
			if afterUse {
				c.hard(b.index, "A7 text_after_tool_use", "text follows a tool_use block")
			}
		case "tool_result":
			c.hard(b.index, "A5 misplaced_result", "an assistant message has a tool_result block")
		case "compaction":
			if i > 0 && blocks[i-1].index == b.index {
				c.lint(b.index, "A13 compaction_not_first", "a compaction block should be the first of its message")
			}
		}
	}
	c.serverTools(blocks)
	c.thinking(blocks)
}

// call records a tool_use.
func (c *anthropicChecker) call(b placedBlock) {
	id := stringOf(b.block.Get("id"))
	inSegment := slices.ContainsFunc(c.calls, func(call placedCall) bool { return call.id == id })
	switch {
	case inSegment:
		c.hard(b.index, "A6 duplicate_use_id", "two tool_use blocks of one message have the id %q", id)
		return
	case c.used[id]:
		c.lint(b.index, "A6 reused_use_id", "the id %q was used by an earlier message", id)
	}
	c.used[id] = true
	c.calls = append(c.calls, placedCall{index: b.index, id: id})
}

// serverTools checks that calls which the API itself executed are followed by their results.
func (c *anthropicChecker) serverTools(blocks []placedBlock) {
	var uses []placedCall
	for _, b := range blocks {
		switch {
		case b.kind == "server_tool_use" || b.kind == "mcp_tool_use":
			uses = append(uses, placedCall{index: b.index, id: stringOf(b.block.Get("id"))})
		case b.kind != "tool_result" && strings.HasSuffix(b.kind, "_tool_result"):
			id := stringOf(b.block.Get("tool_use_id"))
			at := slices.IndexFunc(uses, func(use placedCall) bool { return use.id == id })
			if at < 0 {
				c.hard(b.index, "A12 orphan_server_result", "the %s answers %q, which is no server tool use of the same message", b.kind, id)
				continue
			}
			uses[at].answered = true
		}
	}
	for _, use := range uses {
		if !use.answered {
			c.lint(use.index, "A12 server_use_without_result", "the server tool use %q has no result in its message", use.id)
		}
	}
}

// thinking checks the position of thinking in a message with calls.
func (c *anthropicChecker) thinking(blocks []placedBlock) {
	if len(blocks) == 0 {
		return
	}
	if last := blocks[len(blocks)-1]; isThinkingBlock(last.kind) {
		c.lint(last.index, "A9 thinking_last", "the assistant message ends with thinking")
	}
	first := slices.IndexFunc(blocks, func(b placedBlock) bool { return isThinkingBlock(b.kind) })
	if first > 0 && len(c.calls) > 0 {
		c.lint(blocks[first].index, "A9 thinking_not_first", "the assistant message has calls and thinking, but does not begin with it")
	}
}

// lastText checks the text at the end of a list that ends with the assistant: the API continues from it.
func (c *anthropicChecker) lastText() {
	if c.role != "assistant" || len(c.blocks) == 0 {
		return
	}
	last := c.blocks[len(c.blocks)-1]
	text := stringOf(last.block.Get("text"))
	if last.kind == "text" && !isBlank(text) && strings.TrimRightFunc(text, unicode.IsSpace) != text {
		c.hard(last.index, "A10 trailing_space", "the assistant text that the list ends with ends with white space")
	}
}
