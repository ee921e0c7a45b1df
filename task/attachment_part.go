package task

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// attachmentOf is what a part of a content attaches to its message. Its type is empty where the part is neither an
// image nor a file. A web address is its URL, a provider's id of a file its Ref. Bytes are never taken over: of a part
// that has nothing else it has neither, and whoever asks gives it one or leaves it out.
func attachmentOf(kind string, raw json.RawMessage) Attachment {
	a := Attachment{Type: attachmentType(kind)}
	if a.Type == "" {
		return a
	}
	var part mediaPart
	_ = json.Unmarshal(raw, &part) // what is of another kind says nothing
	a.Name = oneLine(string(cmp.Or(part.Name, part.File.Name, part.Title)), maxLabel)
	place := string(cmp.Or(part.Image.URL, part.File.URL, part.File.Data, part.Source.URL, part.Audio.URL, part.Video.URL, part.FileURL, part.Data))
	id := string(cmp.Or(part.FileID, part.File.FileID, part.Source.FileID))
	switch {
	case isOneWord(place) && isWebAddress(place):
		a.URL = place
	case isOneWord(id):
		a.Ref = id
	}
	return a
}

// isOneWord reports whether a text is a reference that nothing can follow on its line.
func isOneWord(text string) bool { return isReference(text) && !strings.Contains(text, " ") }

// attachmentType is the type of a part's attachment, empty for a part that is neither an image nor a file.
func attachmentType(kind string) AttachmentType {
	switch kind {
	case "image_url", "input_image", "image":
		return Image
	case "file", "input_file", "document", "input_audio", "audio_url", "video_url":
		return File
	}
	return ""
}

// placeholder stands in a message's text for a part that is no text, such as [image] or [file: report.pdf]. note, if
// any, says what became of it.
func placeholder(kind string, attached Attachment, note string) string {
	what := label(kind, 40)
	if attached.Type != "" {
		what = strings.TrimSuffix(strings.TrimPrefix(what, "input_"), "_url")
	}
	if name := label(attached.Name, 60); name != "" {
		what += ": " + name
	}
	if note != "" {
		what += ", " + note
	}
	return "[" + what + "]"
}

// mediaPart is what parts say of themselves in OpenAI's forms (chat, responses) and in Anthropic's.
type mediaPart struct {
	mediaSource             // a file of responses
	FileURL     shortText   `json:"file_url"` // likewise
	Title       shortText   `json:"title"`    // a document of Anthropic
	Image       imageSource `json:"image_url"`
	File        mediaSource `json:"file"`
	Audio       mediaSource `json:"audio_url"`
	Video       mediaSource `json:"video_url"`
	Source      mediaSource `json:"source"`
}

type mediaSource struct {
	URL    shortText `json:"url"`
	Data   shortText `json:"file_data"` // some services take an address here
	FileID shortText `json:"file_id"`
	Name   shortText `json:"filename"`
}

// imageSource is an object, or in responses the address itself.
type imageSource mediaSource

// UnmarshalJSON is part of json.Unmarshaler.
func (s *imageSource) UnmarshalJSON(data []byte) error {
	if kindOf(data) == "str" {
		return s.URL.UnmarshalJSON(data)
	}
	_ = json.Unmarshal(data, (*mediaSource)(s))
	return nil
}

// shortText is a JSON string that may be shown; any other value, and what is as long as bytes are, is empty.
type shortText string

// UnmarshalJSON is part of json.Unmarshaler.
func (t *shortText) UnmarshalJSON(data []byte) error {
	text := ""
	if len(data) <= maxShortText {
		text, _ = rawjson.String(data)
	}
	*t = shortText(text)
	return nil
}

// maxShortText is the most bytes of JSON of a text that is read: a reference, all of it escaped.
const maxShortText = 6*maxReference + len(`""`)
