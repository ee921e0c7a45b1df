package gemini

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// The members of an entry's vendor data.
const (
	VendorParts = "parts"
	// VendorJoined says whether the parts are in the content of the entry before; absent: as usual.
	VendorJoined = "joined"
)

// DummySignature is what the API's documentation gives for the signature of a call that another model made, where a
// model requires one.
const DummySignature = "skip_thought_signature_validator"

// Options configures the translation.
type Options struct {
	// Provider is the key of the vendor data; with "" none are read or kept.
	Provider string
	// SignCalls gives the first call of an entry DummySignature, if the entry has no signed calls of the provider's own.
	SignCalls bool
}

// Parts returns the parts of an entry; there may be none for an assistant entry. Answers is the call that a tool entry
// answers, and its own part, nil when the provider did not make it. A part of the content that the API cannot have is
// left out: see [InputPart]. An empty text has no part.
func Parts(entry *continuo.Entry, answers Answered, o Options) []json.RawMessage {
	if own, ok := Own(entry, o); ok {
		return own
	}
	switch entry.Role {
	case continuo.Assistant:
		return assistantParts(entry, ownParts(entry, o.Provider), o)
	case continuo.Tool:
		return []json.RawMessage{responsePart(entry, answers)}
	}
	return inputParts(entry.Content)
}

// Own returns the parts that an entry keeps for the provider; not ok when it keeps none, or when its content or calls are
// not those of the parts any more.
func Own(entry *continuo.Entry, o Options) (parts []json.RawMessage, ok bool) {
	own := ownParts(entry, o.Provider)
	if own == nil || !repeats(own, entry) {
		return nil, false
	}
	return raws(own), true
}

// Answered is the call that a result answers.
type Answered struct {
	Name string
	// ID is the id that the call has in the request; most have none.
	ID string
}

// Calls returns what results of an entry's calls answer, by the calls' ids in the entry. The ids of calls that the
// provider made are those of its parts.
func Calls(entry *continuo.Entry, o Options) map[string]Answered {
	calls := make(map[string]Answered, len(entry.ToolCalls))
	for _, call := range entry.ToolCalls {
		calls[call.ID] = Answered{Name: call.Name}
	}
	own := ownParts(entry, o.Provider)
	if own == nil || !repeats(own, entry) {
		return calls
	}
	n := 0
	for _, part := range own {
		if part.Call != nil {
			calls[entry.ToolCalls[n].ID] = Answered{Name: part.Call.Name, ID: part.Call.ID}
			n++
		}
	}
	return calls
}

// ownParts returns the parts that an entry keeps for a provider, nil when it has none.
func ownParts(entry *continuo.Entry, provider string) []Part {
	if provider == "" || entry.Vendor[provider] == nil {
		return nil
	}
	vendor, err := rawjson.ParseObject(entry.Vendor[provider])
	if err != nil {
		return nil
	}
	compact, err := rawjson.AppendCompact(nil, vendor.Get(VendorParts)) // as a store returns it
	if err != nil {
		return nil
	}
	var raws []json.RawMessage
	if json.Unmarshal(compact, &raws) != nil || len(raws) == 0 {
		return nil
	}
	parts, err := parse(raws)
	if err != nil {
		return nil
	}
	return parts
}

func parse(raws []json.RawMessage) ([]Part, error) {
	parts := make([]Part, len(raws))
	for i, raw := range raws {
		part, err := ParsePart(raw)
		if err != nil {
			return nil, err
		}
		parts[i] = part
	}
	return parts, nil
}

// repeats reports whether parts have the content and the calls of an entry: it is shown as it was stored.
func repeats(parts []Part, entry *continuo.Entry) bool {
	var read continuo.Entry
	var err error
	switch entry.Role {
	case continuo.Assistant:
		read = assistantOf(parts)
	case continuo.Tool:
		if len(parts) != 1 || parts[0].Response == nil {
			return false
		}
		read = resultOf(parts[0])
	default:
		read, err = userOf(parts)
	}
	if err != nil || len(read.ToolCalls) != len(entry.ToolCalls) {
		return false
	}
	for i, call := range entry.ToolCalls {
		if theirs := read.ToolCalls[i]; theirs.ID != call.ID || theirs.Name != call.Name || theirs.Arguments != call.Arguments {
			return false
		}
	}
	if !read.Content.IsParts() && !entry.Content.IsParts() {
		return read.Content.String() == entry.Content.String()
	}
	return bytes.Equal(rawjson.MustMarshal(read.Content), rawjson.MustMarshal(entry.Content))
}

// textOf writes a text.
func textOf(text string) json.RawMessage {
	part := append(make([]byte, 0, len(text)+len(text)/16+12), `{"text":`...)
	return append(rawjson.AppendString(part, text), '}')
}

// callPart is a call as it is written.
type callPart struct {
	FunctionCall     FunctionCall `json:"functionCall"`
	ThoughtSignature string       `json:"thoughtSignature,omitempty"`
}

// assistantParts writes an assistant entry whose own parts, if any, are not those that are shown.
func assistantParts(entry *continuo.Entry, own []Part, o Options) (parts []json.RawMessage) {
	if text := entry.Content.String(); text != "" {
		parts = append(parts, textOf(text))
	}
	signatures := callSignatures(own)
	signed := len(signatures) == len(entry.ToolCalls)
	for i, call := range entry.ToolCalls {
		part := callPart{FunctionCall: FunctionCall{Name: call.Name, Args: argsOf(call.Arguments)}}
		switch {
		case signed:
			part.ThoughtSignature = signatures[i]
		case i == 0 && o.SignCalls:
			part.ThoughtSignature = DummySignature
		}
		parts = append(parts, rawjson.MustMarshal(part))
	}
	return parts
}

// callSignatures returns the signatures of the calls among parts, "" for none.
func callSignatures(parts []Part) (signatures []string) {
	for _, part := range parts {
		if part.Call != nil {
			object, _ := rawjson.ParseObject(part.Raw)
			signature, _ := rawjson.String(member(object, "thoughtSignature", "thought_signature"))
			signatures = append(signatures, signature)
		}
	}
	return signatures
}

// argsOf returns the arguments of a call if they are a JSON object, and else an object that holds their text.
func argsOf(arguments string) json.RawMessage {
	if _, err := rawjson.ParseObject(json.RawMessage(arguments)); err == nil && json.Valid([]byte(arguments)) {
		return json.RawMessage(arguments)
	}
	return rawjson.MustMarshal(map[string]string{"arguments": arguments})
}

// responsePart writes the result of a call.
func responsePart(entry *continuo.Entry, answers Answered) json.RawMessage {
	key := "output"
	if entry.ToolFailed() {
		key = "error"
	}
	text := entry.Content.String()
	part := rawjson.Encoder{To: make([]byte, 0, len(text)+len(text)/16+len(answers.Name)+96)}
	part.Open()
	part.Name("functionResponse")
	part.Open()
	part.Text("id", answers.ID)
	part.String("name", answers.Name)
	part.Name("response")
	part.Open()
	part.String(key, text)
	return append(part.To, "}}}"...)
}

// inputParts writes the content of a user.
func inputParts(content continuo.Content) (parts []json.RawMessage) {
	if !content.IsParts() {
		if content.String() == "" {
			return nil
		}
		return []json.RawMessage{textOf(content.String())}
	}
	for _, part := range content.Parts() {
		if raw, ok := InputPart(part); ok && raw != nil {
			parts = append(parts, raw)
		}
	}
	return parts
}

// InputPart writes a part of a user's message, in the form of chat completions or of this API; nil for an empty text.
// Not ok for a part that the API cannot have.
func InputPart(part continuo.Part) (raw json.RawMessage, ok bool) {
	switch part.Type {
	case "text", "refusal":
		if part.Text == "" {
			return nil, true
		}
		return textOf(part.Text), true
	case "image_url":
		var image struct {
			ImageURL struct {
				URL string `json:"url"`
			} `json:"image_url"`
		}
		if json.Unmarshal(part.Raw, &image) == nil {
			return dataPart(image.ImageURL.URL)
		}
	case "file":
		var file struct {
			File struct {
				FileData string `json:"file_data"`
			} `json:"file"`
		}
		if json.Unmarshal(part.Raw, &file) == nil {
			return dataPart(file.File.FileData)
		}
	case "input_audio":
		var audio struct {
			InputAudio struct{ Data, Format string } `json:"input_audio"`
		}
		if json.Unmarshal(part.Raw, &audio) == nil && audio.InputAudio.Data != "" && audio.InputAudio.Format != "" {
			return inlineData("audio/"+audio.InputAudio.Format, audio.InputAudio.Data)
		}
	case typeOfPart:
		object, err := rawjson.ParseObject(part.Raw)
		return compact(object.Get("part")), err == nil && object.Get("part") != nil
	}
	return nil, false
}

// dataPart writes a data URL, or the address of a file.
func dataPart(url string) (raw json.RawMessage, ok bool) {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		file := rawjson.Object{}
		if kind := mimeTypes[strings.ToLower(path.Ext(strings.SplitN(url, "?", 2)[0]))]; kind != "" {
			file.Set("mimeType", rawjson.MustMarshal(kind))
		}
		file.Set("fileUri", rawjson.MustMarshal(url))
		return rawjson.MustMarshal(rawjson.Object{{Key: "fileData", Value: file.Raw()}}), true
	}
	head, data, found := strings.Cut(strings.TrimPrefix(url, "data:"), ",")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	kind, _, _ = strings.Cut(kind, ";")
	if !strings.HasPrefix(url, "data:") || !found || !isBase64 || kind == "" || data == "" {
		return nil, false
	}
	return inlineData(kind, data)
}

// mimeTypes are the types of files by the ends of their addresses.
var mimeTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif", ".heic": "image/heic",
	".pdf": "application/pdf", ".mp4": "video/mp4", ".mp3": "audio/mpeg", ".wav": "audio/wav",
}

func inlineData(kind, data string) (raw json.RawMessage, ok bool) {
	if _, err := base64.StdEncoding.DecodeString(data); err != nil {
		return nil, false
	}
	return rawjson.MustMarshal(rawjson.Object{{Key: "inlineData", Value: rawjson.MustMarshal(struct {
		MimeType string `json:"mimeType"`
		Data     string `json:"data"`
	}{kind, data})}}), true
}

// Vendor returns the vendor data that keep parts.
func Vendor(parts []json.RawMessage) json.RawMessage {
	return rawjson.MustMarshal(rawjson.Object{{Key: VendorParts, Value: rawjson.MustMarshal(parts)}})
}

// callID returns the id of a call in its entry: its own, or "call_" and its index, with a number where an earlier call
// of the content has the same one. Package model makes the same ids.
func callID(own string, index int, taken map[string]bool) string {
	if own == "" {
		own = fmt.Sprintf("call_%d", index)
	}
	id := own
	for n := 2; taken[id]; n++ {
		id = fmt.Sprintf("%s_%d", own, n)
	}
	taken[id] = true
	return id
}
