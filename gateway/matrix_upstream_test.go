package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/model"
)

// scripted is an answer in no protocol's form. Each vendor writes it in its own, streamed and whole.
type scripted struct {
	reasoning, text string
	calls           []scriptedCall
	finish          string // stop, length, tools or refusal
}

type scriptedCall struct{ id, name, arguments string }

// The usage of each scripted answer: of the input, read from the cache, of the output, of the reasoning.
const (
	inputTokens, cachedTokens, outputTokens, reasoningTokens = 100, 60, 30, 10
)

func quoted(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// answerOf writes an answer as a vendor does.
func (s scripted) answerOf(protocol string, streamed bool) string {
	switch protocol {
	case model.ProtocolOpenAIChat:
		return s.chat(streamed)
	case model.ProtocolResponses:
		return s.responses(streamed)
	case model.ProtocolAnthropic:
		return s.messages(streamed)
	}
	return s.gemini(streamed)
}

func (s scripted) chat(streamed bool) string {
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		inputTokens, outputTokens, inputTokens+outputTokens, cachedTokens, reasoningTokens)
	finish := map[string]string{"stop": "stop", "length": "length", "tools": "tool_calls", "refusal": "content_filter"}[s.finish]
	var calls []string
	for i, call := range s.calls {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, i, call.id, call.name, quoted(call.arguments)))
	}
	message := fmt.Sprintf(`{"role":"assistant","content":%s,"reasoning_content":%s,"tool_calls":[%s]}`, quoted(s.text), quoted(s.reasoning), strings.Join(calls, ","))
	if !streamed {
		return fmt.Sprintf(`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":%s,"finish_reason":%q}],"usage":%s}`, message, finish, usage)
	}
	return chatChunk(message, "null") + chatChunk("{}", quoted(finish)) + data(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":`+usage+`}`) + data("[DONE]")
}

func (s scripted) responses(streamed bool) string {
	var items []string
	if s.reasoning != "" {
		items = append(items, fmt.Sprintf(`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":%s}],"encrypted_content":"ZW5j"}`, quoted(s.reasoning)))
	}
	switch {
	case s.finish == "refusal":
		items = append(items, fmt.Sprintf(`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":%s}]}`, quoted(s.text)))
	case s.text != "":
		items = append(items, fmt.Sprintf(`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, quoted(s.text)))
	}
	for i, call := range s.calls {
		items = append(items, fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":"completed","call_id":%q,"name":%q,"arguments":%s}`, i, call.id, call.name, quoted(call.arguments)))
	}
	status, details := "completed", "null"
	if s.finish == "length" {
		status, details = "incomplete", `{"reason":"max_output_tokens"}`
	}
	whole := fmt.Sprintf(`{"id":"resp_u","object":"response","created_at":1,"status":%q,"model":"m","error":null,"incomplete_details":%s,"output":[%s],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}}`,
		status, details, strings.Join(items, ","), inputTokens, cachedTokens, outputTokens, reasoningTokens, inputTokens+outputTokens)
	if !streamed {
		return whole
	}
	wire := named(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_u","object":"response","status":"in_progress","model":"m","output":[]}}`)
	for i, item := range items {
		wire += named(fmt.Sprintf(`{"type":"response.output_item.added","sequence_number":%d,"output_index":%d,"item":%s}`, 2*i+1, i, withoutContent(item))) +
			named(fmt.Sprintf(`{"type":"response.output_item.done","sequence_number":%d,"output_index":%d,"item":%s}`, 2*i+2, i, item))
	}
	return wire + named(fmt.Sprintf(`{"type":"response.%s","sequence_number":%d,"response":%s}`, status, 2*len(items)+1, whole))
}

// withoutContent is an item as it begins.
func withoutContent(item string) string {
	var members map[string]any
	if err := json.Unmarshal([]byte(item), &members); err != nil {
		panic(err)
	}
	for name, empty := range map[string]any{"content": []any{}, "summary": []any{}, "arguments": "", "status": "in_progress"} {
		if _, has := members[name]; has {
			members[name] = empty
		}
	}
	return quoted(members)
}

func (s scripted) messages(streamed bool) string {
	usage := fmt.Sprintf(`{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":0,"output_tokens":%d}`, inputTokens-cachedTokens, cachedTokens, outputTokens)
	stop := map[string]string{"stop": "end_turn", "length": "max_tokens", "tools": "tool_use", "refusal": "refusal"}[s.finish]
	var blocks []string
	if s.reasoning != "" {
		blocks = append(blocks, fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":"c2ln"}`, quoted(s.reasoning)))
	}
	if s.text != "" {
		blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":%s}`, quoted(s.text)))
	}
	for _, call := range s.calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, call.id, call.name, call.arguments))
	}
	if !streamed {
		return fmt.Sprintf(`{"id":"m1","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":%s}`, strings.Join(blocks, ","), stop, usage)
	}
	wire := named(`{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":` + usage + `}}`)
	for i, block := range blocks {
		start, deltas := asDeltas(block)
		wire += named(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, start))
		for _, delta := range deltas {
			wire += named(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, quoted(delta)))
		}
		wire += named(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	return wire + named(fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, stop, outputTokens)) + named(`{"type":"message_stop"}`)
}

// asDeltas is a block as it begins, and what is added to it.
func asDeltas(block string) (start string, deltas []map[string]any) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(block), &members); err != nil {
		panic(err)
	}
	for _, piece := range []struct{ member, kind, as, empty string }{
		{"thinking", "thinking_delta", "thinking", `""`}, {"signature", "signature_delta", "signature", `""`}, {"text", "text_delta", "text", `""`}, {"input", "input_json_delta", "partial_json", "{}"},
	} {
		value, has := members[piece.member]
		if !has {
			continue
		}
		members[piece.member] = json.RawMessage(piece.empty)
		delta := map[string]any{"type": piece.kind, piece.as: value}
		if piece.member == "input" {
			delta[piece.as] = string(value)
		}
		deltas = append(deltas, delta)
	}
	return quoted(members), deltas
}

func (s scripted) gemini(streamed bool) string {
	finish := map[string]string{"stop": "STOP", "length": "MAX_TOKENS", "tools": "STOP", "refusal": "SAFETY"}[s.finish]
	var parts []string
	if s.reasoning != "" {
		parts = append(parts, fmt.Sprintf(`{"text":%s,"thought":true}`, quoted(s.reasoning)))
	}
	if s.text != "" {
		parts = append(parts, fmt.Sprintf(`{"text":%s}`, quoted(s.text)))
	}
	for _, call := range s.calls {
		parts = append(parts, fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s},"thoughtSignature":"c2ln"}`, call.id, call.name, call.arguments))
	}
	whole := fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":%q,"index":0}],"usageMetadata":{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d},"modelVersion":"m"}`,
		strings.Join(parts, ","), finish, inputTokens, cachedTokens, outputTokens-reasoningTokens, reasoningTokens, inputTokens+outputTokens)
	if !streamed {
		return whole
	}
	return data(whole)
}
