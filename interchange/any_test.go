package interchange

import (
	"encoding/json"
	"strings"
	"testing"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"
)

// oneOf draws a JSON value of those given; an empty one means that the field is missing.
func oneOf(t *rapid.T, label string, values ...string) string {
	return rapid.SampledFrom(values).Draw(t, label)
}

// anyField writes a field with one of the values.
func anyField(t *rapid.T, name string, values ...string) string {
	if value := oneOf(t, name, values...); value != "" {
		return `,"` + name + `":` + value
	}
	return ""
}

var anyID = []string{`"a"`, `"b"`, `"a"`, `"b"`, `"a_2"`, `"call_import_1_0"`, `""`, `null`, ``}

func anyList(t *rapid.T, most int, element func() string) string {
	var list []string
	for n := rapid.IntRange(0, most).Draw(t, "n"); n > 0; n-- {
		list = append(list, element())
	}
	return "[" + strings.Join(list, ",") + "]"
}

// anyMessage writes a message of the OpenAI form and those like it, often a broken one.
func anyMessage(t *rapid.T) string {
	role := oneOf(t, "role", "user", "assistant", "assistant", "tool", "tool", "tool", "system", "developer", "function", "model", "Tool", "agent", "x")
	message := `{"role":"` + role + `"`
	message += anyField(t, "content", `"x"`, `"x"`, `""`, `null`, ``, `[]`, `[{"type":"text","text":"p"}]`, `["s",{"text":"t"},{"type":"text","Text":1,"text":"u"}]`, `"\ud83d"`, `[{"type":"image_url","image_url":{"url":"u"}}]`)
	if oneOf(t, "calls", "", "calls") != "" {
		message += `,"tool_calls":` + anyList(t, 3, func() string {
			return `{"x":1` + anyField(t, "id", anyID...) + anyField(t, "type", `"function"`, `"function"`, `"custom"`, `"other"`, ``, `"ID"`) +
				anyField(t, "function", `{"name":"f","arguments":"{}"}`, `{"name":"f","arguments":{"a": 1}}`, `{"arguments":""}`, `null`, ``) +
				anyField(t, "custom", ``, ``, `{"name":"g","input":"i"}`) + anyField(t, "ID", ``, ``, `"other"`) + `}`
		})
	}
	message += anyField(t, "tool_call_id", anyID...)
	message += anyField(t, "function_call", ``, ``, ``, `{"name":"f","arguments":"{}"}`, `{"name":"","arguments":""}`, `null`, `{"name":"f","arguments":{}}`)
	message += anyField(t, "name", ``, ``, `"f"`, `null`)
	message += anyField(t, "refusal", ``, ``, `"no"`, `null`, `""`)
	message += anyField(t, "audio", ``, ``, `{"transcript":"t"}`, `null`)
	message += anyField(t, "reasoning", ``, ``, `"r"`, `7`)
	message += anyField(t, "reasoning_content", ``, ``, `"c"`, `null`)
	message += anyField(t, "includeInContext", ``, ``, `true`, `false`, `null`)
	message += anyField(t, "duration", ``, ``, `1`, `1.5`, `1e300`, `"1"`)
	message += anyField(t, "ts", ``, ``, `"2025-01-01T00:00:00Z"`, `"0000-01-01T00:00:00+23:59"`, `1`)
	message += anyField(t, "agent_name", ``, ``, `"q"`, `""`)
	return message + "}"
}

// anyAnthropic writes a message with content blocks, often a broken one.
func anyAnthropic(t *rapid.T) string {
	message := `{"role":"` + oneOf(t, "role", "user", "user", "assistant", "assistant", "system", "tool", "human") + `"`
	if oneOf(t, "content", "blocks", "blocks", "blocks", "string") == "string" {
		return message + anyField(t, "text", `"x"`) + anyField(t, "content", `"x"`, `""`, `null`, ``) + "}"
	}
	message += `,"content":` + anyList(t, 4, func() string {
		block := `{"type":"` + oneOf(t, "type", "text", "tool_use", "tool_use", "tool_result", "tool_result", "thinking", "image", "document", "server_tool_use") + `"`
		block += anyField(t, "id", anyID...) + anyField(t, "tool_use_id", anyID...) + anyField(t, "name", `"f"`, `"f"`, ``)
		block += anyField(t, "text", `"x"`, `""`, `1`, ``) + anyField(t, "input", `{"a": 1}`, `{}`, `null`, ``, `[1]`)
		block += anyField(t, "content", ``, `"r"`, `[]`, `[{"type":"text","text":"x"}]`, `null`, `7`) + anyField(t, "is_error", ``, ``, `true`, `false`)
		block += anyField(t, "thinking", ``, `"h"`) + anyField(t, "signature", ``, `"s"`) + anyField(t, "cache_control", ``, ``, `{}`)
		return block + anyField(t, "source", ``, `{"type":"base64","media_type":"image/png","data":"AA"}`, `{"type":"url","url":"u"}`) + "}"
	})
	return message + anyField(t, "is_error", ``, ``, `true`) + anyField(t, "stop_reason", ``, `"end_turn"`) + "}"
}

// TestAnyConversation checks the laws on conversations that are broken in every way at once.
func TestAnyConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]string{FormatOpenAI, FormatOpenAILegacy, FormatUnified, FormatPipeline, FormatAnthropic}).Draw(t, "format")
		element := anyMessage
		if format == FormatAnthropic {
			element = anyAnthropic
		}
		list := json.RawMessage(anyList(t, 8, func() string { return element(t) }))
		document, err := Messages(list, format)
		if err != nil {
			t.Fatalf("%v: %s", err, list)
		}
		checkLaws(t, document, list)
		log, conversation := imported(t, document)
		again, err := Messages(exported(t, log, conversation, FormatSource), format)
		if err != nil || !sameEntries(document.Entries, again.Entries) {
			t.Fatalf("read again, %s gives\n%q instead of\n%q (%v)", list, briefs(again.Entries), briefs(document.Entries), err)
		}
	})
}
