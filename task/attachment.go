package task

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// AttachmentType is the kind of an attachment.
type AttachmentType string

// The types of attachments.
const (
	Code  AttachmentType = "code"
	Image AttachmentType = "image"
	File  AttachmentType = "file"
)

// Attachment is a non-text part of a message: a piece of code, an image, a file. It has at least one of Content, URL
// and Ref; an image has no Content, because bytes do not belong in a prompt.
type Attachment struct {
	Type     AttachmentType `json:"type"`
	Language string         `json:"language,omitempty"`
	Name     string         `json:"name,omitempty"`
	Content  string         `json:"content,omitempty"`
	URL      string         `json:"url,omitempty"` // http or https, without a password
	Ref      string         `json:"ref,omitempty"` // an alias path such as @project/main.go; of a part in the log, the API's path
	// Truncated says that Content is the beginning of OriginalLength characters.
	Truncated      bool `json:"truncated,omitempty"`
	OriginalLength int  `json:"original_length,omitempty"` // characters of the whole content
}

// The most characters of the texts that name an attachment.
const (
	maxLabel     = 100
	maxReference = 2048
)

func readAttachments(raw json.RawMessage, index int, limits Limits) ([]Attachment, error) {
	if rawjson.IsNull(raw) {
		return nil, nil
	}
	path := fmt.Sprintf("%s[%d].attachments", historyField, index)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, refuseAt(index, TypeError, path, "Message at index %d has attachments that must be a list, got %s", index, kindOf(raw))
	}
	if len(list) > limits.MaxAttachments {
		return nil, refuseAt(index, InvalidValue, path, "Message at index %d has %d attachments, at most %d are allowed", index, len(list), limits.MaxAttachments)
	}
	var attachments []Attachment
	for i, value := range list {
		attachment, e := readAttachment(value)
		if e != nil {
			return nil, refuseAt(index, e.Type, fmt.Sprintf("%s[%d]%s", path, i, e.Field), "Message at index %d attachment %d %s", index, i, e.Message)
		}
		attachments = append(attachments, attachment.bounded(limits))
	}
	return attachments, nil
}

// readAttachment reads one attachment. Its errors have a field and a message; the caller adds the path before them.
func readAttachment(raw json.RawMessage) (Attachment, *ValidationError) {
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return Attachment{}, refuse(TypeError, "", "must be a dict, got %s", kindOf(raw))
	}
	if object.Get("type") == nil {
		return Attachment{}, refuse(MissingField, ".type", "missing required field 'type'")
	}
	var a Attachment
	for _, field := range []struct {
		name string
		into *string
	}{{"type", (*string)(&a.Type)}, {"language", &a.Language}, {"name", &a.Name}, {"content", &a.Content}, {"url", &a.URL}, {"ref", &a.Ref}} {
		value := object.Get(field.name)
		text, ok := rawjson.String(value)
		if !ok && !rawjson.IsNull(value) {
			return Attachment{}, refuse(TypeError, "."+field.name, "has a %s that must be a string, got %s", field.name, kindOf(value))
		}
		*field.into = clean(text)
	}
	return a, a.check()
}

func (a *Attachment) check() *ValidationError {
	switch a.Type {
	case Code, Image, File:
	default:
		return refuse(InvalidValue, ".type", "has invalid type '%s', must be code|image|file", oneLine(string(a.Type), 80))
	}
	switch {
	case a.Type == Image && a.Content != "":
		return refuse(InvalidValue, ".content", "is an image with content: give its url or its ref instead")
	case a.Content == "" && a.URL == "" && a.Ref == "":
		return refuse(MissingField, ".content", "missing required field 'content', 'url' or 'ref'")
	case !isReference(a.URL) || a.URL != "" && !isWebAddress(a.URL):
		return refuse(InvalidValue, ".url", "has an invalid url: it must be an address with http or https, without a user, of at most %d characters", maxReference)
	case !isReference(a.Ref):
		return refuse(InvalidValue, ".ref", "has an invalid ref: it must be a path on one line, of at most %d characters", maxReference)
	}
	return nil
}

// isReference reports whether a text is one line and short enough to be shown whole.
func isReference(text string) bool { return oneLine(text, maxReference) == text }

func isWebAddress(text string) bool {
	address, err := url.Parse(text)
	return err == nil && (address.Scheme == "http" || address.Scheme == "https") && address.Host != "" && address.User == nil
}

// bounded truncates a content that is too long.
func (a Attachment) bounded(limits Limits) Attachment {
	a.Language, a.Name = oneLine(a.Language, maxLabel), oneLine(a.Name, maxLabel)
	if chars := utf8.RuneCountInString(a.Content); chars > limits.AttachmentMaxChars {
		a.Content, a.Truncated, a.OriginalLength = firstChars(a.Content, limits.AttachmentMaxChars), true, chars
	}
	return a
}

// The indents of attachments. Every line of a message's content begins with at least four spaces, so that none looks
// like an attachment.
const (
	attachmentIndent = "  📎 "
	codeIndent       = "        "
)

// write writes the attachment below its message: a line with its kind and location, then its content.
func (a *Attachment) write(b *strings.Builder) {
	b.WriteString(attachmentIndent)
	b.WriteString(label(string(a.Type), maxLabel))
	if a.Language != "" {
		fmt.Fprintf(b, " (%s)", label(a.Language, maxLabel))
	}
	if a.Truncated {
		fmt.Fprintf(b, " [TRUNCATED, original: %d chars]", a.OriginalLength)
	}
	for _, text := range []string{oneLine(without("[]", a.Name), maxLabel), oneLine(a.URL, maxReference), oneLine(a.Ref, maxReference)} {
		if text != "" {
			b.WriteString(" " + text)
		}
	}
	b.WriteByte('\n')
	if a.Content != "" {
		writeIndented(b, codeIndent, codeIndent, a.Content)
	}
}
