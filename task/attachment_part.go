package task

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// attachmentOf is the attachment that a part of a content makes. Its type is empty if the part is neither an image nor
// a file. A web address becomes its URL, a provider's file id its Ref. Bytes are never copied: for a part that has only
// bytes, both are empty, and the caller sets one or drops the attachment.
func attachmentOf(kind string, raw json.RawMessage) Attachment {
	a := Attachment{Type: attachmentType(kind)}
	if a.Type == "" {
		return a
	}
	var part mediaPart
	_ = json.Unmarshal(raw, &part) // members of another type are ignored
	a.Name = oneLine(string(cmp.Or(part.Name, part.File.Name, part.Title)), maxLabel)
	location := string(cmp.Or(part.Image.URL, part.File.URL, part.File.Data, part.Source.URL, part.Audio.URL, part.Video.URL, part.FileURL, part.Data))
	id := string(cmp.Or(part.FileID, part.File.FileID, part.Source.FileID))
	switch {
	case isOneWord(location) && isWebAddress(location):
		a.URL = location
	case isOneWord(id):
		a.Ref = id
	}
	return a
}

// isOneWord reports whether a text is a reference without spaces, so that nothing can follow it on its line.
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

// placeholder replaces a non-text part in a message's text, such as [image] or [file: report.pdf]. note, if any, says
// what happened to it.
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

// mediaPart has the members of media parts in OpenAI's formats (chat, responses) and in Anthropic's.
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
	Data   shortText `json:"file_data"` // some services accept an address here
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

// shortText is a JSON string that may be shown; any other value, or a string that is long enough to be bytes, is read
// as empty.
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

// maxShortText is the most bytes of JSON of a text that is read: a reference with every character escaped.
const maxShortText = 6*maxReference + len(`""`)
