package continuo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/internal/plaintext"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Content is the content of a message: a string, null, or a list of parts, kept as received. The zero value is absent
// content, which JSON leaves out. A Content is immutable.
type Content struct {
	kind  contentKind
	text  string
	parts []Part
}

type contentKind uint8

const (
	contentAbsent contentKind = iota
	contentNull
	contentText
	contentParts
)

// Part is one element of a content list: text, an image, a file, audio, or a type that Continuo does not know. Raw is
// the whole element as received.
type Part struct {
	Type string
	Text string // set when Type is text or refusal
	Raw  json.RawMessage
}

// IsText reports whether the part's type is text or refusal.
func (p Part) IsText() bool { return p.Type == "text" || p.Type == "refusal" }

// Text returns string content.
func Text(text string) Content { return Content{kind: contentText, text: text} }

// Null returns explicit null content, as an assistant message with tool calls often has.
func Null() Content { return Content{kind: contentNull} }

// Parts returns list content.
func Parts(parts ...Part) Content { return Content{kind: contentParts, parts: parts} }

// TextPart returns a text part.
func TextPart(text string) Part {
	raw := rawjson.MustMarshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text})
	return Part{Type: "text", Text: text, Raw: raw}
}

// IsZero reports whether content is absent.
func (c Content) IsZero() bool { return c.kind == contentAbsent }

// IsNull reports whether content is absent or null.
func (c Content) IsNull() bool { return c.kind == contentAbsent || c.kind == contentNull }

// IsText reports whether content is a string.
func (c Content) IsText() bool { return c.kind == contentText }

// IsParts reports whether content is a list.
func (c Content) IsParts() bool { return c.kind == contentParts }

// Parts returns the parts of list content; the caller must not change them.
func (c Content) Parts() []Part { return c.parts }

// IsEmpty reports whether content is absent, null, an empty string or an empty list.
func (c Content) IsEmpty() bool {
	return c.IsNull() || c.kind == contentText && c.text == "" || c.kind == contentParts && len(c.parts) == 0
}

// IsBlank reports whether content shows nothing to a reader: it has no part that is not text, and its text is blank
// (plaintext.IsBlank). This is the one definition of an empty message.
func (c Content) IsBlank() bool {
	for _, part := range c.parts {
		if !part.IsText() {
			return false
		}
	}
	return plaintext.IsBlank(c.String())
}

// String returns the text of the content: the string, or the text parts joined by line ends.
func (c Content) String() string {
	if c.kind != contentParts {
		return c.text
	}
	var texts []string
	for _, part := range c.parts {
		if part.IsText() {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// MarshalJSON writes the content in the protocol's form; absent content is written as null.
func (c Content) MarshalJSON() ([]byte, error) {
	switch c.kind {
	case contentText:
		return rawjson.Marshal(c.text)
	case contentParts:
		raws := make([]json.RawMessage, len(c.parts))
		for i, part := range c.parts {
			raws[i] = part.Raw
		}
		return rawjson.Marshal(raws)
	default:
		return []byte("null"), nil
	}
}

// UnmarshalJSON reads a string, null, or a list of objects with a string type.
func (c *Content) UnmarshalJSON(data []byte) error {
	trimmed := bytes.TrimSpace(data)
	switch {
	case len(trimmed) == 0:
		return errors.New("content is empty JSON")
	case string(trimmed) == "null":
		*c = Null()
	case trimmed[0] == '"':
		var text string
		if err := json.Unmarshal(trimmed, &text); err != nil {
			return err
		}
		*c = Text(text)
	case trimmed[0] == '[':
		parts, err := parseParts(trimmed)
		if err != nil {
			return err
		}
		*c = Parts(parts...)
	default:
		return errors.New("content must be a string, null or a list of parts")
	}
	return nil
}

func parseParts(data []byte) ([]Part, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		return nil, err
	}
	parts := make([]Part, len(raws))
	for i, raw := range raws {
		part, err := parsePart(raw)
		if err != nil {
			return nil, fmt.Errorf("content part %d %w", i, err)
		}
		parts[i] = part
	}
	return parts, nil
}

// parsePart reads one part. Field names are case-sensitive, as they are for providers.
func parsePart(raw json.RawMessage) (Part, error) {
	object, err := rawjson.ParseObject(raw)
	kind, ok := rawjson.String(object.Get("type"))
	if err != nil || !ok || kind == "" {
		return Part{}, errors.New("must be an object with a type")
	}
	part := Part{Type: kind, Raw: raw}
	switch kind {
	case "text":
		if part.Text, ok = rawjson.String(object.Get("text")); !ok {
			return Part{}, errors.New("has type text but no text")
		}
	case "refusal":
		part.Text, _ = rawjson.String(object.Get("refusal"))
	}
	return part, nil
}
