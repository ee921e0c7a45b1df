package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// OpenAIChat writes messages as those of a chat completions request. An assistant message without content and
// calls is left out. Images that a tool returned follow its group in a user message, since a tool message can
// hold text only. Unknown fields that the log keeps are never sent.
func OpenAIChat(messages []window.Message, o Options) ([]json.RawMessage, error) {
	w := openAIWriter{options: o, out: make([]byte, 0, roomFor(messages))}
	if err := w.all(messages); err != nil {
		return nil, err
	}
	return w.messages(), nil
}

// ResponseFormat returns the text for continuo.Envelope.ResponseFormat that requests an answer valid for a
// JSON Schema, or, without one, any JSON object.
func ResponseFormat(name string, schema json.RawMessage, strict *bool) json.RawMessage {
	if schema == nil {
		return rawjson.MustMarshal(openaichat.ResponseFormat{Type: "json_object"})
	}
	return rawjson.MustMarshal(openaichat.ResponseFormat{Type: "json_schema", JSONSchema: &openaichat.JSONSchema{Name: ToolName(name), Schema: schema, Strict: strict}})
}

// IsAnyObject reports whether a [continuo.Envelope.ResponseFormat] requests any JSON object.
func IsAnyObject(format json.RawMessage) bool {
	read := responsesFormat(format)
	return read != nil && read.Type == "json_object"
}

// OpenAIChatRequest writes the whole body of a chat completions request, messages last. It fails when there
// is nothing to send.
//
// The limit of the answer is sent as max_completion_tokens to the provider named "openai", whose reasoning
// models refuse the older name, and as max_tokens to every other, because many compatible servers know no
// other; without a limit neither is sent. A streaming request asks for the usage.
func OpenAIChatRequest(env continuo.Envelope, messages []window.Message, o Options) ([]byte, error) {
	head, err := openAIHead(env, o)
	if err != nil {
		return nil, err
	}
	room := len(head) + roomFor(messages) + 64*len(env.System) + len("]}")
	for _, text := range env.System {
		room += len(text) + len(text)/16
	}
	w := openAIWriter{options: o, out: append(make([]byte, 0, room), head...), first: len(head)}
	for _, text := range env.System {
		w.system(text)
	}
	if err := w.all(messages); err != nil {
		return nil, err
	}
	if len(w.ends) == len(env.System) {
		return nil, fmt.Errorf("render for OpenAI chat: %w: no message to send: append a user message first", continuo.ErrInvalid)
	}
	if env.Roles == continuo.RolesStrict || env.Roles == continuo.RolesNoSystem {
		arranged, err := Arrange(w.messages(), env.Roles)
		if err != nil {
			return nil, fmt.Errorf("render for OpenAI chat: %w", err)
		}
		w.out = slices.Clone(head)
		for i, message := range arranged {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			w.out = append(w.out, message...)
		}
	}
	return append(w.out, "]}"...), nil
}

// openAIHead writes a body up to its first message.
func openAIHead(env continuo.Envelope, o Options) ([]byte, error) {
	if err := checkTools(env.Tools); err != nil {
		return nil, fmt.Errorf("render for OpenAI chat: %w", err)
	}
	own := ownMembers(env, model.ProtocolOpenAIChat)
	request := openaichat.Request{Model: env.Model, Stream: env.Stream, ResponseFormat: env.ResponseFormat}
	sampleChat(env, o, &request)
	if env.Stream {
		request.StreamOptions = &openaichat.StreamOptions{IncludeUsage: true}
	}
	switch {
	case own.Get("max_tokens") != nil || own.Get("max_completion_tokens") != nil:
	case o.Provider == vendorOpenAI:
		request.MaxCompletionTokens = env.MaxOutputTokens
	default:
		request.MaxTokens = env.MaxOutputTokens
	}
	tools := withoutOwn(env.Tools, own)
	if o.Provider != vendorOpenAI {
		tools = offered(env, tools)
	}
	for _, tool := range tools {
		function := openaichat.ToolFunction{Name: ToolName(tool.Name), Description: tool.Description}
		if !rawjson.IsNull(tool.Parameters) { // null, as it is read from the store, is none
			function.Parameters = tool.Parameters
		}
		request.Tools = append(request.Tools, openaichat.Tool{Type: "function", Function: function})
	}
	body, err := rawjson.Marshal(request)
	if err == nil {
		body, err = withOwn(body, own)
	}
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimSuffix(body, []byte("}")), `,"messages":[`...), nil
}

// roomFor estimates how many bytes messages take.
func roomFor(messages []window.Message) int {
	room := 0
	for i := range messages {
		m := &messages[i]
		room += 96 + len(m.ToolCallID)
		if m.Content.IsParts() {
			for _, part := range m.Content.Parts() {
				room += len(part.Raw)
			}
		} else {
			room += len(m.Content.String())
		}
		for c := range m.ToolCalls {
			call := &m.ToolCalls[c]
			room += 80 + len(call.ID) + len(call.Name) + len(call.Arguments)
		}
	}
	return room + room/16 // for escapes
}

// openAIWriter writes messages into one buffer, separated by commas.
type openAIWriter struct {
	options Options
	out     []byte
	first   int   // offset of the first message
	ends    []int // of the messages in out
}

// messages returns each message.
func (w *openAIWriter) messages() []json.RawMessage {
	if len(w.ends) == 0 {
		return nil
	}
	messages, begin := make([]json.RawMessage, len(w.ends)), w.first
	for i, end := range w.ends {
		messages[i], begin = w.out[begin:end:end], end+1
	}
	return messages
}

// begin begins a message and returns its offset.
func (w *openAIWriter) begin(role string) int {
	if len(w.ends) > 0 {
		w.out = append(w.out, ',')
	}
	begin := len(w.out)
	w.out = rawjson.AppendString(append(w.out, `{"role":`...), role)
	w.out = append(w.out, `,"content":`...)
	return begin
}

// end ends the message that begins at an offset. Raw says that it has values which are sent unchanged.
func (w *openAIWriter) end(begin int, raw bool) {
	w.out = append(w.out, '}')
	if raw {
		repairSurrogates(w.out[begin:])
	}
	w.ends = append(w.ends, len(w.out))
}

// member writes a string member, unless it is empty.
func (w *openAIWriter) member(key, value string) {
	if value != "" {
		w.out = rawjson.AppendString(append(append(append(w.out, ',', '"'), key...), '"', ':'), value)
	}
}

// system writes a system message of the envelope.
func (w *openAIWriter) system(text string) {
	begin := w.begin("system")
	w.out = rawjson.AppendString(w.out, text)
	w.end(begin, false)
}

// all writes the messages of a plan.
func (w *openAIWriter) all(messages []window.Message) error {
	groups, err := groupsOf(messages)
	if err != nil {
		return fmt.Errorf("render for OpenAI chat: %w", err)
	}
	w.ends = slices.Grow(w.ends, len(messages))
	for i := range groups {
		if err := w.group(&groups[i]); err != nil {
			return fmt.Errorf("render seq %d for OpenAI chat: %w", groups[i].head.Seq, err)
		}
	}
	return nil
}

func (w *openAIWriter) group(g *group) error {
	if g.head.Role != continuo.Assistant {
		return w.addMessage(g.head, "", nil)
	}
	ids, err := w.assistant(g.head)
	if err != nil {
		return err
	}
	var media []json.RawMessage
	for i := range g.results {
		m := &g.results[i]
		if err := w.addMessage(m, ids.of(m.ToolCallID), &media); err != nil {
			return err
		}
	}
	if len(media) == 0 {
		return nil
	}
	begin := w.begin("user")
	if w.out, err = appendList(w.out, media); err != nil {
		return err
	}
	w.end(begin, true)
	return nil
}

// addMessage writes a message of any role but assistant, whose content must not be null.
func (w *openAIWriter) addMessage(m *window.Message, callID string, media *[]json.RawMessage) (err error) {
	begin := w.begin(string(m.Role))
	content := len(w.out)
	if w.out, err = appendOpenAIContent(w.out, m, media); err != nil {
		return err
	}
	if string(w.out[content:]) == "null" {
		w.out = append(w.out[:content], `""`...)
	}
	w.member("name", speakerName(m.Name))
	w.member("tool_call_id", callID)
	w.end(begin, m.Content.IsParts())
	return nil
}

// assistant writes an assistant message, unless it is empty, and returns the ids of its calls in the request.
func (w *openAIWriter) assistant(m *window.Message) (callNames, error) {
	extra := w.options.vendor(m).Without("role", "content", "name", "tool_calls", "tool_call_id", "function_call", responses.VendorItems)
	before := len(w.out)
	begin := w.begin("assistant")
	content := len(w.out)
	var err error
	if w.out, err = appendOpenAIContent(w.out, m, nil); err != nil {
		return callNames{}, err
	}
	silent := string(w.out[content:]) == "null" && len(m.ToolCalls) == 0
	if silent && rawjson.IsNull(extra.Get("refusal")) && rawjson.IsNull(extra.Get("audio")) {
		w.out = w.out[:before]
		return callNames{}, nil
	}
	w.member("name", speakerName(m.Name))
	ids := w.callIDs(m)
	raw, err := w.calls(m, ids)
	if err != nil {
		return callNames{}, err
	}
	if len(extra) > 0 {
		more, err := rawjson.Marshal(extra)
		if err != nil {
			return callNames{}, err
		}
		w.out = append(append(w.out, ','), more[1:len(more)-1]...)
	}
	w.end(begin, raw || len(extra) > 0 || m.Content.IsParts())
	return ids, nil
}

// calls writes a message's calls. Raw says that they have values which are sent unchanged.
func (w *openAIWriter) calls(m *window.Message, ids callNames) (raw bool, err error) {
	owned := w.options.owns(m)
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		if i == 0 {
			w.out = append(w.out, `,"tool_calls":[`...)
		} else {
			w.out = append(w.out, ',')
		}
		if owned && len(call.Extra) > 0 {
			own := *call
			own.ID, own.Name = ids.at(i), ToolName(call.Name)
			written, err := own.MarshalJSON()
			if err != nil {
				return false, err
			}
			w.out, raw = append(w.out, written...), true
			continue
		}
		w.call(call, ids.at(i))
	}
	if len(m.ToolCalls) > 0 {
		w.out = append(w.out, ']')
	}
	return raw, nil
}

// call writes a call as [continuo.ToolCall.MarshalJSON] does, without unknown fields.
func (w *openAIWriter) call(call *continuo.ToolCall, id string) {
	w.out = rawjson.AppendString(append(w.out, `{"id":`...), id)
	arguments := `,"arguments":`
	if call.Type == "custom" {
		w.out, arguments = append(w.out, `,"type":"custom","custom":{"name":`...), `,"input":`
	} else {
		w.out = append(w.out, `,"type":"function","function":{"name":`...)
	}
	w.out = rawjson.AppendString(w.out, ToolName(call.Name))
	w.out = rawjson.AppendString(append(w.out, arguments...), call.Arguments)
	w.out = append(w.out, "}}"...)
}

// callNames are the ids of a message's calls in the request.
type callNames struct {
	calls []continuo.ToolCall
	ids   []string // nil where they are those of the log
}

// at returns the id of a call by its index.
func (n callNames) at(i int) string {
	if n.ids == nil {
		return n.calls[i].ID
	}
	return n.ids[i]
}

// of returns the id of a call by its id in the log; "" for an unknown one.
func (n callNames) of(logged string) string {
	for i := range n.calls {
		if n.calls[i].ID == logged {
			return n.at(i)
		}
	}
	return ""
}

// callIDs returns the ids of a message's calls in the request.
func (w *openAIWriter) callIDs(m *window.Message) callNames {
	names := callNames{calls: m.ToolCalls}
	tooLong := func(call continuo.ToolCall) bool { return len(call.ID) > maxOpenAICallID }
	if w.options.owns(m) || !slices.ContainsFunc(m.ToolCalls, tooLong) {
		return names
	}
	var given callIDs
	for _, call := range m.ToolCalls {
		names.ids = append(names.ids, given.take(shorten(call.ID, call.ID, maxOpenAICallID)))
	}
	return names
}
