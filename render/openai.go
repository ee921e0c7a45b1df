package render

import (
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/window"
)

// OpenAIChat writes messages as those of a chat completions request. An assistant message without content and
// calls is left out. Images that a tool returned follow its group in a user message, since a tool message can
// hold text only. Unknown fields that the log keeps are never sent.
func OpenAIChat(messages []window.Message, o Options) ([]json.RawMessage, error) {
	groups, err := groupsOf(messages)
	if err != nil {
		return nil, fmt.Errorf("render for OpenAI chat: %w", err)
	}
	w := openAIWriter{options: o}
	for _, g := range groups {
		if err := w.group(g); err != nil {
			return nil, fmt.Errorf("render seq %d for OpenAI chat: %w", g.head.Seq, err)
		}
	}
	return w.out, nil
}

// ResponseFormat returns the text for continuo.Envelope.ResponseFormat that requests an answer valid for a
// JSON Schema, or, without one, any JSON object.
func ResponseFormat(name string, schema json.RawMessage) json.RawMessage {
	if schema == nil {
		return rawjson.MustMarshal(openaichat.ResponseFormat{Type: "json_object"})
	}
	return rawjson.MustMarshal(openaichat.ResponseFormat{Type: "json_schema", JSONSchema: &openaichat.JSONSchema{Name: ToolName(name), Schema: schema}})
}

// OpenAIChatRequest writes the whole body of a chat completions request, messages last. It fails when there
// is nothing to send.
//
// The limit of the answer is sent as max_completion_tokens to the provider named "openai", whose reasoning
// models refuse the older name, and as max_tokens to every other, because many compatible servers know no
// other; without a limit neither is sent. A streaming request asks for the usage.
func OpenAIChatRequest(env continuo.Envelope, messages []window.Message, o Options) ([]byte, error) {
	rendered, err := OpenAIChat(messages, o)
	if err != nil {
		return nil, err
	}
	if len(rendered) == 0 {
		return nil, fmt.Errorf("render for OpenAI chat: %w: no message to send: append a user message first", continuo.ErrInvalid)
	}
	if err := checkTools(env.Tools); err != nil {
		return nil, fmt.Errorf("render for OpenAI chat: %w", err)
	}
	request := openaichat.Request{Model: env.Model, Stream: env.Stream, Temperature: env.Temperature, ResponseFormat: env.ResponseFormat}
	if env.Stream {
		request.StreamOptions = &openaichat.StreamOptions{IncludeUsage: true}
	}
	if o.Provider == "openai" {
		request.MaxCompletionTokens = env.MaxOutputTokens
	} else {
		request.MaxTokens = env.MaxOutputTokens
	}
	for _, tool := range env.Tools {
		request.Tools = append(request.Tools, openaichat.Tool{Type: "function", Function: openaichat.ToolFunction{
			Name: ToolName(tool.Name), Description: tool.Description, Parameters: tool.Parameters,
		}})
	}
	for _, text := range env.System {
		request.Messages = append(request.Messages, rawjson.MustMarshal(openaichat.InputMessage{
			Role: "system", Content: rawjson.MustMarshal(text),
		}))
	}
	if request.Messages, err = Arrange(append(request.Messages, rendered...), env.Roles); err != nil {
		return nil, fmt.Errorf("render for OpenAI chat: %w", err)
	}
	return rawjson.Marshal(request)
}

// openAIWriter collects rendered messages.
type openAIWriter struct {
	options Options
	out     []json.RawMessage
}

func (w *openAIWriter) group(g group) error {
	if g.head.Role != continuo.Assistant {
		return w.said(g.head, "", nil)
	}
	ids, err := w.assistant(g.head)
	if err != nil {
		return err
	}
	var media []json.RawMessage
	for _, m := range g.results {
		if err := w.said(m, ids[m.ToolCallID], &media); err != nil {
			return err
		}
	}
	if len(media) == 0 {
		return nil
	}
	content, err := rawjson.Marshal(media)
	if err != nil {
		return err
	}
	return w.add(openaichat.InputMessage{Role: "user", Content: content}, nil)
}

// said writes a message of any role but assistant, whose content must not be null.
func (w *openAIWriter) said(m *window.Message, callID string, media *[]json.RawMessage) error {
	content, err := openAIContent(m, media)
	if err != nil {
		return err
	}
	if string(content) == "null" {
		content = json.RawMessage(`""`)
	}
	return w.add(openaichat.InputMessage{Role: string(m.Role), Content: content, Name: speakerName(m.Name), ToolCallID: callID}, nil)
}

// assistant writes an assistant message, unless it is empty, and returns the ids of its calls in the request.
func (w *openAIWriter) assistant(m *window.Message) (map[string]string, error) {
	extra := w.options.vendor(m).Without("role", "content", "name", "tool_calls", "tool_call_id", "function_call")
	content, err := openAIContent(m, nil)
	if err != nil {
		return nil, err
	}
	silent := string(content) == "null" && len(m.ToolCalls) == 0
	if silent && rawjson.IsNull(extra.Get("refusal")) && rawjson.IsNull(extra.Get("audio")) {
		return nil, nil
	}
	message := openaichat.InputMessage{Role: "assistant", Content: content, Name: speakerName(m.Name)}
	ids := w.callIDs(m)
	for _, call := range m.ToolCalls {
		call.Name = ToolName(call.Name)
		call.ID = ids[call.ID]
		if !w.options.owns(m) {
			call.Extra = nil
		}
		raw, err := call.MarshalJSON()
		if err != nil {
			return nil, err
		}
		message.ToolCalls = append(message.ToolCalls, raw)
	}
	return ids, w.add(message, extra)
}

// callIDs returns the ids of a message's calls in the request.
func (w *openAIWriter) callIDs(m *window.Message) map[string]string {
	ids := make(map[string]string, len(m.ToolCalls))
	var given callIDs
	for _, call := range m.ToolCalls {
		id := call.ID
		if !w.options.owns(m) {
			id = shorten(id, id, maxOpenAICallID)
		}
		ids[call.ID] = given.take(id)
	}
	return ids
}

// add appends a message, with further members at its end.
func (w *openAIWriter) add(message openaichat.InputMessage, extra rawjson.Object) error {
	raw, err := rawjson.Marshal(message)
	if err != nil {
		return err
	}
	if len(extra) > 0 {
		more, err := rawjson.Marshal(extra)
		if err != nil {
			return err
		}
		raw = append(append(raw[:len(raw)-1], ','), more[1:]...)
	}
	w.out = append(w.out, repairSurrogates(raw))
	return nil
}
