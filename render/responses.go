package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// maxResponsesCallID is the limit of the Responses API, less the number that makes an id unique.
const maxResponsesCallID = 64 - len("_10000000")

// Responses writes messages as the input items of a Responses API request. What a provider keeps of its own answers
// (reasoning with encrypted content, the order of items, items of its own tools) is sent back to it unchanged, see
// package internal/wire/responses. Images and files that a tool returned are part of its result.
func Responses(messages []window.Message, o Options) ([]json.RawMessage, error) {
	groups, err := groupsOf(messages)
	if err != nil {
		return nil, fmt.Errorf("render for OpenAI responses: %w", err)
	}
	w := responsesWriter{options: o}
	for i := range groups {
		w.group(&groups[i])
	}
	return w.out, nil
}

// ResponsesRequest writes the whole body of a Responses API request, input last. It fails when there is nothing to
// send.
//
// The request is not stored at the provider: each one has the whole history. It asks for the encrypted content of
// reasoning, which the provider needs back, unless the envelope says that the model has none.
func ResponsesRequest(env continuo.Envelope, messages []window.Message, o Options) ([]byte, error) {
	input, err := Responses(messages, o)
	if err != nil {
		return nil, err
	}
	if len(input) == 0 {
		return nil, fmt.Errorf("render for OpenAI responses: %w: no message to send: append a user message first", continuo.ErrInvalid)
	}
	if err := checkTools(env.Tools); err != nil {
		return nil, fmt.Errorf("render for OpenAI responses: %w", err)
	}
	store := false
	own := ownMembers(env, model.ProtocolResponses)
	request := responses.Request{
		Model: env.Model, Stream: env.Stream, Store: &store, MaxOutputTokens: env.MaxOutputTokens, Instructions: joinTexts(env.System),
	}
	sampleResponses(env, o, &request)
	if !env.NoEncryptedReasoning {
		request.Include = []string{responses.IncludeEncryptedReasoning}
	}
	if format := responsesFormat(env.ResponseFormat); format != nil {
		if request.Text == nil {
			request.Text = &responses.Text{}
		}
		request.Text.Format = format
	}
	strict := false // the schemas of tools are not written for the strict subset
	for _, tool := range withoutOwn(env.Tools, own) {
		parameters := tool.Parameters
		if rawjson.IsNull(parameters) {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		request.Tools = append(request.Tools, rawjson.MustMarshal(responses.Tool{
			Type: "function", Name: ToolName(tool.Name), Description: tool.Description, Parameters: parameters, Strict: &strict,
		}))
	}
	head, err := rawjson.Marshal(request)
	if err == nil {
		head, err = withOwn(head, own)
	}
	if err != nil {
		return nil, err
	}
	return withList(head, "input", input), nil
}

// withList adds a member to an object: a list of values that are written already.
func withList(object []byte, name string, values []json.RawMessage) []byte {
	room := len(object) + len(name) + 8
	for _, value := range values {
		room += len(value) + 1
	}
	body := append(make([]byte, 0, room), object[:len(object)-1]...)
	if len(body) > 1 {
		body = append(body, ',')
	}
	body = append(append(append(body, '"'), name...), `":[`...)
	for i, value := range values {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, value...)
	}
	return append(body, "]}"...)
}

// responsesFormat translates the format of an answer from the form of chat completions.
func responsesFormat(chat json.RawMessage) *responses.Format {
	var format struct {
		Type       string           `json:"type"`
		JSONSchema responses.Format `json:"json_schema"`
	}
	if rawjson.IsNull(chat) || json.Unmarshal(chat, &format) != nil {
		return nil
	}
	format.JSONSchema.Type = format.Type
	return &format.JSONSchema
}

// joinTexts joins the texts of system messages, without blank ones.
func joinTexts(texts []string) string {
	var shown []string
	for _, text := range texts {
		if !isBlank(text) {
			shown = append(shown, text)
		}
	}
	return strings.Join(shown, "\n\n")
}

// responsesWriter collects items.
type responsesWriter struct {
	options Options
	ids     callIDs
	out     []json.RawMessage
}

func (w *responsesWriter) group(g *group) {
	ids := make(map[string]string, len(g.head.ToolCalls))
	calls := make(map[string]continuo.ToolCall, len(g.head.ToolCalls))
	for _, call := range g.head.ToolCalls {
		ids[call.ID] = w.ids.take(shorten(call.ID, call.ID, maxResponsesCallID))
		calls[call.ID] = call
	}
	to := responses.Options{Provider: w.options.Provider, Unstored: true, CallID: func(id string) string {
		if renamed, ok := ids[id]; ok {
			return renamed
		}
		return id
	}}
	w.message(g.head, continuo.ToolCall{}, to)
	for _, m := range g.callOrder() {
		w.message(m, calls[m.ToolCallID], to)
	}
}

// message writes a message; answers is the call whose result it is.
func (w *responsesWriter) message(m *window.Message, answers continuo.ToolCall, to responses.Options) {
	entry := shownEntry(m)
	if own, ok := responses.Own(entry, to); ok {
		w.add(own)
		return
	}
	adaptForResponses(entry)
	w.add(responses.Items(entry, answers, to))
}

func (w *responsesWriter) add(items []json.RawMessage) {
	for _, item := range items {
		w.out = append(w.out, withoutLoneSurrogates(item))
	}
}

// shownEntry is a message as an entry, with the vendor data of its entry.
func shownEntry(m *window.Message) *continuo.Entry {
	entry := &continuo.Entry{Role: m.Role, Content: m.Content, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID}
	if m.Entry != nil {
		entry.Vendor = m.Entry.Vendor
	}
	return entry
}

// adaptForResponses gives an entry names of tools and parts that the Responses API accepts.
func adaptForResponses(entry *continuo.Entry) {
	entry.ToolCalls = slices.Clone(entry.ToolCalls)
	for i := range entry.ToolCalls {
		entry.ToolCalls[i].Name = ToolName(entry.ToolCalls[i].Name)
	}
	if !entry.Content.IsParts() {
		return
	}
	var parts []continuo.Part
	for _, part := range entry.Content.Parts() {
		if shown, _ := responsesPart(entry.Role, part); shown != nil {
			parts = append(parts, *shown)
		}
	}
	entry.Content = continuo.Parts(parts...)
}

// responsesPart returns a part in a form that the Responses API has, nil for thinking, which is left out. Not ok: the
// part is a text that names what cannot be sent.
func responsesPart(role continuo.Role, part continuo.Part) (shown *continuo.Part, ok bool) {
	text := func(text string) *continuo.Part {
		made := continuo.TextPart(text)
		return &made
	}
	if part.IsText() {
		return &part, true
	}
	if role == continuo.Assistant && isThinking(part.Type) {
		return nil, true
	}
	if document, ok := documentText(part); ok {
		return text(document), true
	}
	if role == continuo.Assistant || role == continuo.System {
		return text(unsupported(part)), false
	}
	if chat := openAIMedia(part); chat != nil {
		var made continuo.Content
		if err := made.UnmarshalJSON(rawjson.MustMarshal([]json.RawMessage{chat})); err == nil {
			part = made.Parts()[0]
		}
	}
	if _, sent := responses.Part(part); sent {
		return &part, true
	}
	return text(unsupported(part)), false
}

// withoutLoneSurrogates replaces halves of surrogate pairs, which APIs refuse.
func withoutLoneSurrogates(raw json.RawMessage) json.RawMessage {
	if loneSurrogate(raw, 0) < 0 {
		return raw
	}
	repaired := bytes.Clone(raw)
	for at := loneSurrogate(repaired, 0); at >= 0; at = loneSurrogate(repaired, at) {
		copy(repaired[at:], replacementEscape)
	}
	return repaired
}

// UnsentResponses names the parts of messages that [Responses] cannot represent.
func UnsentResponses(messages []window.Message, o Options) []continuo.MissingPart {
	return unsent(messages, func(m *window.Message, part continuo.Part) bool {
		if _, own := responses.Own(shownEntry(m), responses.Options{Provider: o.Provider}); own {
			return true
		}
		_, ok := responsesPart(m.Role, part)
		return ok
	})
}
