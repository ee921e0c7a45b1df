package interchange

import (
	"encoding/json"
	"slices"

	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// detect recognises the protocol of a conversation: by its own statement, by the field that holds its
// messages, then by the first message with a mark of one protocol. The default is OpenAI chat.
func detect(s *source, messages []rawjson.Object) string {
	if stated := s.text("protocol"); stated != FormatContinuo && slices.Contains(readable, stated) {
		return stated
	}
	if s.list == "conversation" {
		return FormatPipeline
	}
	for _, message := range messages {
		if format := markOf(message); format != "" {
			return format
		}
	}
	return FormatOpenAI
}

// unifiedMarks are fields that only the unified log's predecessor has.
var unifiedMarks = []string{"createdAt", "partType", "toolName", "isCollapsed", "includeInContext"}

// markOf names the only protocol that a message can belong to, empty when there is none.
func markOf(message rawjson.Object) string {
	role, _ := rawjson.String(message.Get("role"))
	switch {
	case role == "function", isObject(message.Get("function_call")) && !isEmptyCall(message.Get("function_call")):
		return FormatOpenAILegacy
	case role == "agent" && (message.Get("agent_name") != nil || message.Get("role_name") != nil):
		return FormatPipeline
	}
	for _, name := range unifiedMarks {
		if message.Get(name) != nil {
			return FormatUnified
		}
	}
	if hasAnthropicBlock(message.Get("content")) {
		return FormatAnthropic
	}
	return ""
}

// anthropicBlocks are the types of blocks that only Anthropic messages have.
var anthropicBlocks = []string{
	"tool_use", "tool_result", "server_tool_use", "redacted_thinking", "document", "container_upload", "mcp_tool_use",
	"mcp_tool_result", "web_search_tool_result", "web_fetch_tool_result", "compaction",
}

func hasAnthropicBlock(content json.RawMessage) bool {
	var blocks []json.RawMessage
	if json.Unmarshal(content, &blocks) != nil {
		return false
	}
	for _, raw := range blocks {
		object, err := rawjson.ParseObject(raw)
		if err != nil {
			return false
		}
		of, _ := rawjson.String(object.Get("type"))
		switch {
		case slices.Contains(anthropicBlocks, of),
			of == "image" && isObject(object.Get("source")),
			of == "thinking" && object.Get("signature") != nil:
			return true
		}
	}
	return false
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && messages.Kind(raw) == "an object" }

// isEmptyCall recognises the function_call without a name that some servers send with every message.
func isEmptyCall(raw json.RawMessage) bool {
	object, _ := rawjson.ParseObject(raw)
	name, _ := rawjson.String(object.Get("name"))
	return name == ""
}
