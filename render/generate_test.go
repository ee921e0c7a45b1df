package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/window"
)

// genText draws texts that break things: blanks, structure of the transcript, separators, any runes.
func genText() *rapid.Generator[string] {
	pieces := rapid.SampledFrom([]string{
		"", " ", "\n", "\n\n", "\r\n", "\r", "\t", "\u2028", "\u0085", "\v", "\\", "\\\\", "hello", "§call: {}", "$user:", "$result: x",
		" $think:", "$ Respond :", "=== HISTORY ===", "=== CURRENT ===", "== current", "(showing last 1 of 2 messages)", "===", "$", "§", ":",
		"\u200b$call:", "\x1b$", "\x1b[31m", "\u202a", "(3 messages", "\\§think: x", "\n§ Respond:", "§user", "ключ", "日本", "👩‍👩‍👧", "\x00", "{\"a\":1}", "\\ud83d", "<b>&amp;</b>",
	})
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			text := ""
			for _, piece := range rapid.SliceOfN(pieces, 0, 8).Draw(t, "pieces") {
				text += piece
			}
			return text
		}),
		rapid.StringN(0, 20, -1),
	)
}

func genPart() *rapid.Generator[continuo.Part] {
	return rapid.Custom(func(t *rapid.T) continuo.Part {
		raw := rapid.SampledFrom([]string{
			`{"type":"text","text":"seen"}`, `{"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}`, `{"type":"text","text":"\ud83d lone"}`,
			`{"type":"refusal","refusal":"no"}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`,
			`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`, `{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AAAA"}}`,
			`{"type":"image_url"}`, `{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}`, `{"type":"input_audio","input_audio":{"data":"","format":"wav"}}`,
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"},"cache_control":{"type":"ephemeral"}}`,
			`{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}`, `{"type":"thinking","thinking":"hm","signature":"s"}`, `{"type":"hologram"}`,
		}).Draw(t, "part")
		var content continuo.Content
		if err := json.Unmarshal([]byte("["+raw+"]"), &content); err != nil {
			t.Fatal(err)
		}
		return content.Parts()[0]
	})
}

func genContent() *rapid.Generator[continuo.Content] {
	return rapid.OneOf(
		rapid.Map(genText(), continuo.Text),
		rapid.Map(rapid.SliceOfN(genPart(), 1, 4), func(parts []continuo.Part) continuo.Content { return continuo.Parts(parts...) }),
	)
}

func genCall() *rapid.Generator[continuo.ToolCall] {
	return rapid.Custom(func(t *rapid.T) continuo.ToolCall {
		call := continuo.FunctionCall(
			rapid.SampledFrom([]string{"call_0", "call_1", "call.0", "call:0", "call_0_2", "ü", "a very long id that no provider would make, of more than sixty-four bytes in all"}).Draw(t, "id"),
			rapid.SampledFrom([]string{"fs.read", "get_weather", "погода", "a name that is far too long for any provider to take it as it stands here"}).Draw(t, "name"),
			rapid.SampledFrom([]string{`{}`, `{"path": "a", "n": 1.50}`, ``, `{"a":`, `[1]`, `null`, `{"s":"\ud83d"}`, "{\"s\":\"\u2028\"}", `{"a":1} x`, `"text"`}).Draw(t, "arguments"),
		)
		if rapid.Bool().Draw(t, "extra") {
			call.Extra = json.RawMessage(`{"index": 0, "extra_content": {"x":1}}`)
		}
		if rapid.IntRange(0, 9).Draw(t, "custom") == 0 {
			call.Type = "custom"
		}
		return call
	})
}

// vendors are the providers of the generated entries.
var vendors = []string{"", "openai", "anthropic", "deepseek", "google"}

func genEntry() *rapid.Generator[continuo.Entry] {
	return rapid.Custom(func(t *rapid.T) continuo.Entry {
		entry := continuo.Entry{
			Role:    rapid.SampledFrom([]continuo.Role{continuo.User, continuo.User, continuo.Assistant, continuo.Assistant, continuo.Assistant, continuo.System}).Draw(t, "role"),
			Content: genContent().Draw(t, "content"),
			Name:    rapid.SampledFrom([]string{"", "", "Ann", "Иван Петров", "a b\tc"}).Draw(t, "name"),
		}
		if entry.Role != continuo.Assistant {
			if rapid.IntRange(0, 3).Draw(t, "vendor") == 0 {
				entry.Vendor = map[string]json.RawMessage{"anthropic": json.RawMessage(`{"content":[{"type":"text","text":"own ","cache_control":{"type":"ephemeral"}},{"type":"text","text":" "},{"type":"tool_result","tool_use_id":"x"}]}`)}
			}
			return entry
		}
		if rapid.Bool().Draw(t, "null") {
			entry.Content = rapid.SampledFrom([]continuo.Content{continuo.Null(), {}}).Draw(t, "nothing")
		}
		if rapid.Bool().Draw(t, "thinks") {
			entry.Reasoning = &continuo.Reasoning{Text: genText().Draw(t, "thought"), Signature: rapid.SampledFrom([]string{"", "sig"}).Draw(t, "signature")}
		}
		if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
			entry.Error = &continuo.TurnError{Code: continuo.LLMError, Reason: continuo.ReasonNetwork}
		}
		if rapid.Bool().Draw(t, "calls") {
			entry.ToolCalls = rapid.SliceOfNDistinct(genCall(), 1, 4, func(c continuo.ToolCall) string { return c.ID }).Draw(t, "calls")
		}
		switch rapid.SampledFrom([]string{"", "openai", "openai", "anthropic", "anthropic", "google", "google", "deepseek"}).Draw(t, "vendor") {
		case "openai":
			entry.Vendor = map[string]json.RawMessage{"openai": rapid.OneOf(
				rapid.Just(json.RawMessage(`{"refusal": null, "annotations":[]}`)), genItems(entry),
			).Draw(t, "data")}
		case "google":
			entry.Vendor = map[string]json.RawMessage{"google": genParts(entry).Draw(t, "parts")}
		case "deepseek":
			entry.Vendor = map[string]json.RawMessage{"deepseek": json.RawMessage(`{"reasoning_content":"\ud800 hm","role":"x","content":[],"tool_calls":[]}`)}
		case "anthropic":
			entry.Vendor = map[string]json.RawMessage{"anthropic": genBlocks(entry.ToolCalls).Draw(t, "blocks")}
		}
		return entry
	})
}

// genBlocks draws what the Anthropic client stores of an answer with these calls.
func genBlocks(calls []continuo.ToolCall) *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		blocks := rapid.SliceOfN(rapid.SampledFrom([]string{
			`{"type":"thinking","thinking":"hm","signature":"c2ln"}`, `{"type":"redacted_thinking","data":"x"}`, `{"type":"text","text":"\n\n"}`,
			`{"type": "text", "text": "so", "citations": null}`, `{"type":"text","text":"end ","cache_control":{"type":"ephemeral"}}`,
			`{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}`,
		}), 0, 4).Draw(t, "others")
		for _, call := range calls {
			input := call.Arguments
			if !isObject(json.RawMessage(input)) {
				input = "{}"
			}
			at := rapid.IntRange(0, len(blocks)).Draw(t, "at")
			block := fmt.Sprintf(`{"type":"tool_use","id":%s,"name":"x","input":%s}`, rawjson.MustMarshal(call.ID), input)
			blocks = append(blocks[:at:at], append([]string{block}, blocks[at:]...)...)
		}
		list := ""
		for i, block := range blocks {
			if i > 0 {
				list += ","
			}
			list += block
		}
		return json.RawMessage(`{"content":[` + list + `]}`)
	})
}

func genResult(id string) *rapid.Generator[continuo.Entry] {
	return rapid.Custom(func(t *rapid.T) continuo.Entry {
		entry := continuo.Entry{
			Role: continuo.Tool, ToolCallID: id, Content: genContent().Draw(t, "result"), ToolName: "x",
			Outcome: rapid.SampledFrom([]string{"", "Read a"}).Draw(t, "outcome"),
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			entry.Extra = json.RawMessage(`{"is_error":true,"junk":1}`)
		case 1:
			entry.Vendor = map[string]json.RawMessage{"anthropic": json.RawMessage(`{"block":{"type":"tool_result","tool_use_id":"other","content":[{"type":"text","text":""},{"type":"text","text":"r"}],"is_error":true,"cache_control":{"type":"ephemeral"}}}`)}
		case 2:
			entry.Vendor = map[string]json.RawMessage{"anthropic": json.RawMessage(`{"content":[{"type":"tool_reference","tool_name":"x"}]}`)}
		}
		return entry
	})
}

// genLog draws the entries of a valid log whose groups are closed. The log's own rules have the last word.
func genLog() *rapid.Generator[[]continuo.Entry] {
	return rapid.Custom(func(t *rapid.T) []continuo.Entry {
		var entries []continuo.Entry
		var group continuo.Group
		add := func(entry continuo.Entry) {
			if group.Accept(&entry) == nil {
				entry.Seq = int64(len(entries) + 1)
				entries = append(entries, entry)
			}
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			add(genEntry().Draw(t, "entry"))
			for _, id := range rapid.Permutation(group.Open).Draw(t, "order") {
				add(genResult(id).Draw(t, "tool"))
			}
		}
		if len(group.Open) > 0 {
			t.Fatalf("generator left the calls %v open", group.Open)
		}
		return entries
	})
}

// messagesOf shows entries as a plan would, some of them cut down.
func messagesOf(t *rapid.T, entries []continuo.Entry) []window.Message {
	messages := wholeMessages(entries)
	for i := range messages {
		if rapid.IntRange(0, 5).Draw(t, "cut") > 0 {
			continue
		}
		if messages[i].Role == continuo.Tool {
			messages[i].Content = continuo.Text("a preview")
		}
		for n := range messages[i].ToolCalls {
			messages[i].ToolCalls = append([]continuo.ToolCall(nil), messages[i].ToolCalls...)
			messages[i].ToolCalls[n].Arguments = `{"arguments_preview":"…"}`
		}
	}
	return messages
}

func wholeMessages(entries []continuo.Entry) []window.Message {
	var messages []window.Message
	for i := range entries {
		e := &entries[i]
		messages = append(messages, window.Message{
			Seq: e.Seq, Role: e.Role, Content: e.Content, ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID, Name: e.Name, Entry: e,
		})
	}
	return messages
}

// boundaries returns the lengths at which messages can be cut without cutting a group.
func boundaries(messages []window.Message) []int {
	var ends []int
	for i := range messages {
		if messages[i].Role != continuo.Tool {
			ends = append(ends, i)
		}
	}
	return append(ends, len(messages))
}

// refused returns the violations that an API would refuse.
func refused(violations []Violation) []Violation {
	var hard []Violation
	for _, v := range violations {
		if !v.Lint {
			hard = append(hard, v)
		}
	}
	return hard
}

// The generator must reach the cases that the properties are about.
func TestGeneratedLogsAreVaried(t *testing.T) {
	groups, parallel, own := 0, 0, map[string]int{}
	for seed := range 50 {
		for _, entry := range genLog().Example(seed) {
			switch {
			case len(entry.ToolCalls) > 1:
				parallel++
				fallthrough
			case len(entry.ToolCalls) == 1:
				groups++
				for provider := range entry.Vendor {
					own[provider]++
				}
			}
		}
	}
	if groups < 20 || parallel < 10 || own["anthropic"] < 3 || own["openai"] < 3 || own["google"] < 3 {
		t.Errorf("50 logs have %d groups, %d of them parallel, with data of vendors %v", groups, parallel, own)
	}
}

// genItems draws what the client of the Responses API stores of an answer; the items may not be those of the entry.
func genItems(entry continuo.Entry) *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		others := rapid.SampledFrom([]string{
			"", "", `{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}`, `{"type": "reasoning", "summary": [{"type":"summary_text","text":"\ud83d"}]}`,
			`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`, `{"type":"web_search_call","status":"completed"}`, `{"type":"compaction","encrypted_content":"gB"}`,
		})
		items := []string{others.Draw(t, "first")}
		if text := entry.Content.String(); text != "" && rapid.IntRange(0, 3).Draw(t, "message") > 0 {
			items = append(items, fmt.Sprintf(`{"type":"message","role":"assistant", "content":[{"type":"output_text","text":%s}]}`, rawjson.MustMarshal(text)))
		}
		for _, call := range entry.ToolCalls {
			kind, arguments := "function_call", "arguments"
			if call.Type == "custom" {
				kind, arguments = "custom_tool_call", "input"
			}
			status := rapid.SampledFrom([]string{"completed", "incomplete"}).Draw(t, "status")
			items = append(items, others.Draw(t, "other"), fmt.Sprintf(`{"type":%q,"status":%q,"call_id":%s,"name":%s,%q:%s}`,
				kind, status, rawjson.MustMarshal(call.ID), rawjson.MustMarshal(ToolName(call.Name)), arguments, rawjson.MustMarshal(call.Arguments)))
		}
		items = append(items, others.Draw(t, "last"))
		return json.RawMessage(`{"items":[` + listOf(items) + `]}`)
	})
}

// genParts draws what the client of the Gemini API stores of an answer; the parts may not be those of the entry.
func genParts(entry continuo.Entry) *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		others := rapid.SampledFrom([]string{
			"", "", `{"text":"hm","thought":true}`, `{"text": "", "thoughtSignature": "c2ln"}`, `{"executableCode":{"code":"1"}}`, `{"text":""}`, `{"text":"\ud83d","thought":true}`,
		})
		parts := []string{others.Draw(t, "first")}
		if text := entry.Content.String(); text != "" && rapid.IntRange(0, 3).Draw(t, "text") > 0 {
			parts = append(parts, fmt.Sprintf(`{"text": %s}`, rawjson.MustMarshal(text)))
		}
		for _, call := range entry.ToolCalls {
			args := call.Arguments
			if !isObject(json.RawMessage(args)) {
				args = `{}`
			}
			parts = append(parts, others.Draw(t, "other"), fmt.Sprintf(`{"functionCall":{"id":%s,"name":%s,"args":%s},"thoughtSignature":"c2ln"}`,
				rawjson.MustMarshal(call.ID), rawjson.MustMarshal(ToolName(call.Name)), args))
		}
		return json.RawMessage(`{"parts":[` + listOf(parts) + `]}`)
	})
}

// listOf joins the elements of a list that are not empty.
func listOf(elements []string) string {
	return strings.Join(slices.DeleteFunc(elements, func(element string) bool { return element == "" }), ",")
}
