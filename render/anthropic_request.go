package render

import (
	"encoding/json"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// DefaultMaxTokens is the limit of an Anthropic answer, in tokens, when the envelope gives none: the API
// requires a limit.
const DefaultMaxTokens = 4096

// AnthropicRequest writes the whole body of a Messages API request, messages last. It fails when there is
// nothing to send.
//
// Cache marks (cache_control ephemeral) are on the last tool, on the last system block and on the last block
// of the last message that may have one. They are set only here, except for those of a client's own tools and system
// blocks: where it has any, none is added there. Marks in stored blocks are dropped, so that there are never more than
// four, unless the client sends more. The mark on the last message is the only part that the next request
// removes: the API does not compare marks, so its cache still hits, but two successive bodies are equal only
// up to the end of the marked block. The API looks for cache entries 20 blocks back; when the newest messages
// add more than that, a second mark is set at the position of the previous request's mark.
func AnthropicRequest(env continuo.Envelope, messages []window.Message, o Options) ([]byte, error) {
	w, err := writeAnthropic(messages, o, env.NoOldThinking)
	if err != nil {
		return nil, err
	}
	if len(w.out) == 0 {
		return nil, fmt.Errorf("render for Anthropic: %w: no message to send: append a user message first", continuo.ErrInvalid)
	}
	if err := checkTools(env.Tools); err != nil {
		return nil, fmt.Errorf("render for Anthropic: %w", err)
	}
	env.System = slices.Concat(env.System, w.system)
	markCached(w.out, maxCacheMarks-clientMarks(ownMembers(env, model.ProtocolAnthropic)))
	return anthropicBody(env, w.out, mayThink(messages, o))
}

// anthropicBody writes a body with messages that are already marked; thinks says that its model may think.
func anthropicBody(env continuo.Envelope, messages []blockMessage, thinks bool) ([]byte, error) {
	own := ownMembers(env, model.ProtocolAnthropic)
	marked := clientMarks(own) > 0
	request := anthropic.Request{Model: env.Model, Stream: env.Stream}
	if own.Get("system") == nil {
		request.System = systemBlocks(env.System, !marked)
	} else {
		system := clientSystem(own, env.System, !marked)
		own = own.Without("system")
		own.Set("system", system)
	}
	sampleAnthropic(env, thinks, &request)
	for _, tool := range offered(env, withoutOwn(env.Tools, own)) {
		request.Tools = append(request.Tools, anthropicTool(tool))
	}
	request.Tools = append(request.Tools, rawList(own.Get("tools"))...)
	if n := len(request.Tools); n > 0 && !marked {
		request.Tools[n-1] = withMark(request.Tools[n-1])
	}
	room := 0
	for _, m := range messages {
		room += 32
		for _, block := range m.blocks {
			room += len(block) + 1
		}
	}
	head, err := rawjson.Marshal(request)
	if err == nil {
		head, err = withOwn(head, own.Without("tools"))
	}
	if err != nil {
		return nil, err
	}
	body := append(make([]byte, 0, len(head)+len(`,"messages":[`)+room), head[:len(head)-len("}")]...)
	body = append(body, `,"messages":[`...)
	for i, m := range messages {
		if i > 0 {
			body = append(body, ',')
		}
		body = m.appendTo(body)
	}
	return append(body, "]}"...), nil
}

func anthropicTool(spec continuo.ToolSpec) json.RawMessage {
	schema := spec.Parameters
	if rawjson.IsNull(schema) {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	return rawjson.MustMarshal(anthropic.Tool{Name: ToolName(spec.Name), Description: spec.Description, InputSchema: schema})
}

// maxCacheMarks is how many cache marks a request may have.
const maxCacheMarks = 4

// clientMarks is how many cache marks a client has set outside of its messages.
func clientMarks(own rawjson.Object) int {
	count := 0
	if !rawjson.IsNull(own.Get("cache_control")) {
		count++
	}
	for _, list := range []string{"tools", "system"} {
		for _, raw := range rawList(own.Get(list)) {
			if from, to, ok := rawjson.Find(raw, "cache_control"); ok && !rawjson.IsNull(raw[from:to]) {
				count++
			}
		}
	}
	return count
}

// clientSystem is the system prompt of a client as it came, with the texts that follow it.
func clientSystem(own rawjson.Object, texts []string, marks bool) json.RawMessage {
	blocks := rawList(own.Get("system"))
	for _, block := range systemBlocks(texts[min(len(blocks), len(texts)):], false) {
		blocks = append(blocks, rawjson.MustMarshal(block))
	}
	if n := len(blocks); n > 0 && marks {
		blocks[n-1] = withMark(blocks[n-1])
	}
	return rawjson.MustMarshal(blocks)
}

func systemBlocks(texts []string, marks bool) []anthropic.TextBlock {
	var blocks []anthropic.TextBlock
	for _, text := range texts {
		if !isBlank(text) {
			blocks = append(blocks, anthropic.TextBlock{Type: "text", Text: text})
		}
	}
	if n := len(blocks); n > 0 && marks {
		blocks[n-1].CacheControl = ephemeral()
	}
	return blocks
}

func ephemeral() *anthropic.CacheControl { return &anthropic.CacheControl{Type: "ephemeral"} }

// cacheLookback is how many blocks before a mark the API looks for an earlier entry.
const cacheLookback = 20

// markCached marks the end of the messages, without blocks that the next request does not have, and the end
// of the last request's messages when that is too far back: with most marks.
func markCached(messages []blockMessage, most int) {
	if most <= 0 {
		return
	}
	last := len(messages) - 1
	for last > 0 && len(messages[last].blocks) == messages[last].passing {
		last--
	}
	mark(&messages[last])
	added := len(messages[last].blocks)
	for i := last - 1; i >= 0; i-- {
		if messages[i].role == "user" {
			if added >= cacheLookback && most > 1 {
				mark(&messages[i])
			}
			return
		}
		added += len(messages[i].blocks)
	}
}

// mark sets a cache mark on the last block that may have one and that the next request also has.
func mark(m *blockMessage) {
	for i, raw := range slices.Backward(m.blocks[:len(m.blocks)-m.passing]) {
		switch typeOf(raw) {
		case "text", "image", "document", "tool_use", "tool_result":
			m.blocks[i] = withMark(raw)
			return
		}
	}
}

// withMark adds a cache mark to a block.
func withMark(block json.RawMessage) json.RawMessage {
	marked := append(slices.Clone(block[:len(block)-1]), `,"cache_control":`...)
	return append(append(marked, rawjson.MustMarshal(ephemeral())...), '}')
}
