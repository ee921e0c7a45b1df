package responses

import (
	"encoding/json"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
)

// Part writes a part of the log as one of a user message or of a function's output; not ok for a part that the API
// cannot have there. Parts of chat completions are translated, those of this API are unchanged.
func Part(part continuo.Part) (raw json.RawMessage, ok bool) {
	switch part.Type {
	case "text", "refusal":
		return rawjson.MustMarshal(textPart{Type: "input_text", Text: part.Text}), true
	case "image_url":
		var image struct {
			ImageURL struct {
				URL    string `json:"url"`
				Detail string `json:"detail"`
			} `json:"image_url"`
		}
		if json.Unmarshal(part.Raw, &image) == nil && image.ImageURL.URL != "" {
			return rawjson.MustMarshal(ContentPart{Type: "input_image", ImageURL: image.ImageURL.URL, Detail: image.ImageURL.Detail}), true
		}
	case "file":
		var file struct {
			File struct {
				openaichat.File
				FileID string `json:"file_id"`
			} `json:"file"`
		}
		if json.Unmarshal(part.Raw, &file) == nil && file.File.FileData+file.File.FileID != "" {
			return rawjson.MustMarshal(ContentPart{
				Type: "input_file", Filename: file.File.Filename, FileData: file.File.FileData, FileID: file.File.FileID,
			}), true
		}
	case "input_image", "input_file", "input_audio":
		return part.Raw, true
	}
	return nil, false
}

// textPart is a text, which may be empty.
type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// appendInput appends the content of a user or system message, or of a function's output. A part that the API cannot
// have is left out; the caller replaces it before.
func appendInput(to []byte, content continuo.Content) []byte {
	if !content.IsParts() {
		return rawjson.AppendString(to, content.String())
	}
	parts := []json.RawMessage{}
	for _, part := range content.Parts() {
		if raw, ok := Part(part); ok {
			parts = append(parts, raw)
		}
	}
	return append(to, rawjson.MustMarshal(parts)...)
}

// outputContent writes the content of an assistant message, nil when there is nothing to write.
func outputContent(content continuo.Content) json.RawMessage {
	if !content.IsParts() {
		if content.String() == "" {
			return nil
		}
		return rawjson.AppendString(nil, content.String())
	}
	var parts []json.RawMessage
	for _, part := range content.Parts() {
		switch {
		case part.Type == "text" && part.Text != "":
			parts = append(parts, rawjson.MustMarshal(textPart{Type: "output_text", Text: part.Text}))
		case part.Type == "refusal":
			parts = append(parts, rawjson.MustMarshal(struct {
				Type    string `json:"type"`
				Refusal string `json:"refusal"`
			}{"refusal", part.Text}))
		}
	}
	if parts == nil {
		return nil
	}
	return rawjson.MustMarshal(parts)
}

// contentOf reads the content of a client's message or of a function's output. Parts become those of chat completions
// where these can have everything, and stay as they are elsewhere.
func contentOf(raw json.RawMessage) (continuo.Content, error) {
	if text, ok := rawjson.String(raw); ok {
		return continuo.Text(text), nil
	}
	if rawjson.IsNull(raw) {
		return continuo.Text(""), nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return continuo.Text(string(rawjson.MustMarshal(raw))), nil // an object, such as the output of a shell
	}
	translated := make([]json.RawMessage, len(list))
	for i, part := range list {
		translated[i] = chatPart(part)
	}
	var content continuo.Content
	err := content.UnmarshalJSON(rawjson.MustMarshal(translated))
	return content, err
}

// chatPart is a part in the form of chat completions; the part itself where that form does not have all of it.
func chatPart(raw json.RawMessage) json.RawMessage {
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return raw
	}
	var part ContentPart
	if json.Unmarshal(raw, &part) != nil {
		return raw
	}
	var chat json.RawMessage
	switch part.Type {
	case "input_text", "output_text", "text":
		return continuo.TextPart(part.Text).Raw
	case "input_image":
		image := rawjson.Object{{Key: "url", Value: rawjson.MustMarshal(part.ImageURL)}}
		if part.Detail != "" {
			image.Set("detail", rawjson.MustMarshal(part.Detail))
		}
		chat = rawjson.MustMarshal(rawjson.Object{{Key: "type", Value: rawjson.MustMarshal("image_url")}, {Key: "image_url", Value: image.Raw()}})
	case "input_file":
		chat = rawjson.MustMarshal(openaichat.FilePart{Type: "file", File: openaichat.File{Filename: part.Filename, FileData: part.FileData}})
	default:
		return raw
	}
	back, ok := Part(continuo.Part{Type: map[string]string{"input_image": "image_url", "input_file": "file"}[part.Type], Raw: chat})
	if !ok || !sameMembers(back, object) {
		return raw
	}
	return chat
}

// sameMembers reports whether an object has the members of another, in any order.
func sameMembers(raw json.RawMessage, other rawjson.Object) bool {
	object, err := rawjson.ParseObject(raw)
	if err != nil || len(object) != len(other) {
		return false
	}
	for _, member := range other {
		if string(object.Get(member.Key)) != string(rawjson.MustMarshal(member.Value)) {
			return false
		}
	}
	return true
}
