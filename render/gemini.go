package render

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/gemini"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// Gemini writes messages as the contents of a Gemini API request, and returns the texts of the leading system messages,
// which belong to the request's system instruction. Later system messages become contents of the user, in <system>
// tags. Contents of the model that follow each other are merged; the results of one message's calls are one content, in
// the order of the calls, and images and files that a tool returned follow in a content of the user. Contents that would
// begin with the model get a short one of the user in front of them.
//
// What a provider keeps of its own answers (thought signatures, ids of calls, code that it ran) is sent back to it
// unchanged, see package internal/wire/gemini.
func Gemini(messages []window.Message, o Options) (contents []gemini.Content, leadingSystem []string, err error) {
	w, err := writeGemini(messages, gemini.Options{Provider: o.Provider})
	if err != nil {
		return nil, nil, err
	}
	return w.out, w.system, nil
}

// signsCalls matches the models that require a signature on the first call of each of their contents, by their names.
var signsCalls = regexp.MustCompile(`gemini-([3-9]|\d\d)`)

// GeminiRequest writes the whole body of a Gemini API request, contents last. It fails when there is nothing to send.
// The model's name and whether the answer streams are in the path, not in the body. For a model of the third generation,
// the first call of a message that another provider made gets the signature that the API's documentation gives for this
// case.
func GeminiRequest(env continuo.Envelope, messages []window.Message, o Options) ([]byte, error) {
	w, err := writeGemini(messages, gemini.Options{Provider: o.Provider, SignCalls: signsCalls.MatchString(env.Model)})
	if err != nil {
		return nil, err
	}
	if len(w.out) == 0 {
		return nil, fmt.Errorf("render for Gemini: %w: no message to send: append a user message first", continuo.ErrInvalid)
	}
	if err := checkTools(env.Tools); err != nil {
		return nil, fmt.Errorf("render for Gemini: %w", err)
	}
	own := ownMembers(env, model.ProtocolGemini)
	var request gemini.Request
	sampleGemini(env, &request)
	if text := joinTexts(slices.Concat(env.System, w.system)); text != "" {
		request.SystemInstruction = &gemini.Content{Parts: []json.RawMessage{geminiText(text)}}
	}
	var functions []gemini.FunctionDeclaration
	for _, tool := range geminiOffered(env, withoutOwn(env.Tools, own)) {
		declared := gemini.FunctionDeclaration{Name: ToolName(tool.Name), Description: tool.Description}
		if !rawjson.IsNull(tool.Parameters) {
			declared.ParametersJSONSchema = tool.Parameters
		}
		functions = append(functions, declared)
	}
	if functions != nil {
		request.Tools = []json.RawMessage{rawjson.MustMarshal(gemini.Tool{FunctionDeclarations: functions})}
	}
	head, err := rawjson.Marshal(request)
	if err == nil {
		head, err = withOwn(head, own)
	}
	if err != nil {
		return nil, err
	}
	contents := make([]json.RawMessage, len(w.out))
	for i, content := range w.out {
		contents[i] = withList([]byte(`{"role":"`+content.Role+`"}`), "parts", content.Parts)
	}
	return withList(head, "contents", contents), nil
}

// thinkingBudgets are the budgets in tokens that the API's documentation gives for the efforts of OpenAI.
var thinkingBudgets = map[string]int{"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576}

// thinkingConfig says how much a model thinks, nil for its own: a level from the third generation on, a budget before.
func thinkingConfig(env continuo.Envelope, asked *int) *gemini.ThinkingConfig {
	budget, known := thinkingBudgets[env.ReasoningEffort]
	if !known {
		return nil
	}
	if asked != nil {
		budget = *asked
	}
	config := &gemini.ThinkingConfig{IncludeThoughts: env.ReasoningEffort != "none"}
	if !signsCalls.MatchString(env.Model) {
		config.ThinkingBudget = &budget
		return config
	}
	switch config.ThinkingLevel = env.ReasoningEffort; env.ReasoningEffort {
	case "none":
		config.ThinkingLevel = "minimal"
	case "xhigh":
		config.ThinkingLevel = "high"
	}
	return config
}

// geminiWriter collects contents.
type geminiWriter struct {
	options gemini.Options
	begun   bool // a message other than a system message was seen
	system  []string
	out     []gemini.Content
}

func writeGemini(messages []window.Message, o gemini.Options) (*geminiWriter, error) {
	groups, err := groupsOf(messages)
	if err != nil {
		return nil, fmt.Errorf("render for Gemini: %w", err)
	}
	w := &geminiWriter{options: o}
	for i := range groups {
		w.group(&groups[i])
	}
	return w, nil
}

func (w *geminiWriter) group(g *group) {
	switch g.head.Role {
	case continuo.System:
		w.addSystem(g.head)
		return
	case continuo.User:
		w.begun = true
		parts := w.parts(w.entry(g.head, nil), gemini.Answered{})
		if len(parts) == 0 {
			parts = []json.RawMessage{geminiText(emptyMessage)}
		}
		w.add("user", parts)
		return
	}
	w.begun = true
	head := w.entry(g.head, nil)
	w.add("model", w.parts(head, gemini.Answered{}))
	calls := gemini.Calls(head, w.options)
	var results, media []json.RawMessage
	for _, m := range g.callOrder() {
		results = append(results, w.parts(w.entry(m, &media), calls[m.ToolCallID])...)
	}
	w.add("user", results)
	var inline []json.RawMessage
	for _, raw := range media {
		if part, ok := geminiMedia(raw); ok {
			inline = append(inline, part)
		}
	}
	w.add("user", inline)
}

func (w *geminiWriter) addSystem(m *window.Message) {
	text := m.Content.String()
	switch {
	case isBlank(text):
	case !w.begun:
		w.system = append(w.system, text)
	default:
		w.add("user", []json.RawMessage{geminiText(inSystemTags(text))})
	}
}

// add appends a content, or parts to the last one if both are of the model.
func (w *geminiWriter) add(role string, parts []json.RawMessage) {
	if len(parts) == 0 {
		return
	}
	for i, part := range parts {
		parts[i] = withoutLoneSurrogates(part)
	}
	if len(w.out) == 0 && role == "model" {
		w.out = append(w.out, gemini.Content{Role: "user", Parts: []json.RawMessage{geminiText(LeadIn)}})
	}
	if n := len(w.out); n > 0 && role == "model" && w.out[n-1].Role == role {
		w.out[n-1].Parts = append(w.out[n-1].Parts, parts...)
		return
	}
	w.out = append(w.out, gemini.Content{Role: role, Parts: parts})
}

// entry is a message as an entry: with the provider's own parts, if it has them, or else with names of tools and parts of
// the content that the API accepts. Images and files of a result are added to media.
func (w *geminiWriter) entry(m *window.Message, media *[]json.RawMessage) *continuo.Entry {
	entry := shownEntry(m)
	if m.Entry != nil {
		entry.PartType = m.Entry.PartType
	}
	if _, own := gemini.Own(entry, w.options); own {
		return entry
	}
	entry.ToolCalls = slices.Clone(entry.ToolCalls)
	for i := range entry.ToolCalls {
		entry.ToolCalls[i].Name = ToolName(entry.ToolCalls[i].Name)
	}
	if entry.Content.IsParts() {
		var parts []continuo.Part
		for _, part := range entry.Content.Parts() {
			if shown, _ := geminiPart(m.Role, part, media); shown != nil {
				parts = append(parts, *shown)
			}
		}
		entry.Content = continuo.Parts(parts...)
	}
	if entry.Role != continuo.Tool && entry.Content.IsBlank() {
		entry.Content = continuo.Text("")
	}
	return entry
}

// parts writes the parts of an entry.
func (w *geminiWriter) parts(entry *continuo.Entry, answered gemini.Answered) []json.RawMessage {
	return withoutEmpty(gemini.Parts(entry, answered, w.options))
}

// withoutEmpty leaves out parts with neither text nor anything else, which the API refuses.
func withoutEmpty(parts []json.RawMessage) []json.RawMessage {
	return slices.DeleteFunc(slices.Clone(parts), func(raw json.RawMessage) bool {
		part, err := gemini.ParsePart(raw)
		return err == nil && part.HasText && part.Text == "" && !part.Signed
	})
}

// geminiPart returns a part in a form that the Gemini API has, nil for thinking, which is left out. Not ok: the part is a
// text that names what cannot be sent.
func geminiPart(role continuo.Role, part continuo.Part, media *[]json.RawMessage) (shown *continuo.Part, ok bool) {
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
	chat := openAIMedia(part)
	if chat == nil {
		chat = part.Raw
	}
	_, sent := geminiMedia(chat)
	switch {
	case !sent:
	case role == continuo.User:
		made := partOf(chat)
		return &made, true
	case media != nil:
		return text(addMedia(media, part.Type, chat)), true
	}
	return text(unsupported(part)), false
}

// geminiMedia writes a part in the form of chat completions; not ok for one that the API cannot have.
func geminiMedia(chat json.RawMessage) (part json.RawMessage, ok bool) {
	part, ok = gemini.InputPart(partOf(chat))
	return part, ok && part != nil
}

// partOf reads a part.
func partOf(raw json.RawMessage) continuo.Part {
	var content continuo.Content
	if err := content.UnmarshalJSON(rawjson.MustMarshal([]json.RawMessage{raw})); err != nil || len(content.Parts()) != 1 {
		return continuo.Part{Raw: raw}
	}
	return content.Parts()[0]
}

func geminiText(text string) json.RawMessage { return gemini.TextPart(text, false) }

// UnsentGemini names the parts of messages that [Gemini] cannot represent.
func UnsentGemini(messages []window.Message, o Options) []continuo.MissingPart {
	return unsent(messages, func(m *window.Message, part continuo.Part) bool {
		if _, own := gemini.Own(shownEntry(m), gemini.Options{Provider: o.Provider}); own {
			return true
		}
		var media *[]json.RawMessage
		if m.Role == continuo.Tool {
			media = new([]json.RawMessage)
		}
		_, ok := geminiPart(m.Role, part, media)
		return ok
	})
}
