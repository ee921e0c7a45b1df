package continuo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Attachment says where a part of an entry's content is kept that is no text and too large for its entry:
// in an object, whose bytes are the part's Raw. The content has a placeholder in its place, a part of the
// same type that says nothing. Only the log makes attachments; what a placeholder says counts for nothing,
// so that nobody can name an object who did not append it. [Log.Attachment] reads the part.
type Attachment struct {
	// Part is the place in the content's list, from 0.
	Part int `json:"part"`
	// ID names the object, among those of the conversation that the entry was written to.
	ID string `json:"id"`
	// Bytes and SHA256, in hex, are the object's.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// MediaType is what the part says it is, such as image/png; empty where it does not say so in a known way.
	MediaType string `json:"media_type,omitempty"`
}

// Attachment reads a part that is kept as an object, one of the entry's Attachments, byte for byte. It fails
// with ErrObjectGone when the object is not there or too short, and with another error when its bytes are
// others.
func (l *Log) Attachment(ctx context.Context, entry *Entry, attachment Attachment) (Part, error) {
	parts := entry.Content.parts
	if attachment.Part < 0 || attachment.Part >= len(parts) {
		return Part{}, fmt.Errorf("attachment %s: entry %d has no content part %d", attachment.ID, entry.Seq, attachment.Part)
	}
	raw, err := readObject(ctx, l.options.Objects, ObjectName(entry.ConversationID, attachment.ID), 0, attachment.Bytes)
	if err != nil {
		return Part{}, fmt.Errorf("attachment of entry %d: %w", entry.Seq, err)
	}
	if sumOf(raw) != attachment.SHA256 {
		return Part{}, fmt.Errorf("attachment %s of entry %d: its bytes are not those that were appended", attachment.ID, entry.Seq)
	}
	return Part{Type: parts[attachment.Part].Type, Raw: raw}, nil
}

// wholeParts is an entry's content with all its attachments.
func (l *Log) wholeParts(ctx context.Context, entry *Entry) (Content, error) {
	parts := slices.Clone(entry.Content.parts)
	for _, attachment := range entry.Attachments {
		part, err := l.Attachment(ctx, entry, attachment)
		if err != nil {
			return Content{}, err
		}
		parts[attachment.Part] = part
	}
	return Parts(parts...), nil
}

// setPartsAside makes objects of the large parts of an entry that are no text. What it made stands in the
// entry's Attachments, also where it fails.
func (l *Log) setPartsAside(ctx context.Context, conversationID string, entry *Entry) error {
	parts := slices.Clone(entry.Content.parts)
	for i, part := range parts {
		if part.IsText() || len(part.Raw) <= l.options.MaxInlinePart {
			continue
		}
		attachment := Attachment{
			Part: i, ID: l.NewID("att"), Bytes: int64(len(part.Raw)), SHA256: sumOf(part.Raw), MediaType: mediaTypeOf(part),
		}
		entry.Attachments = append(entry.Attachments, attachment)
		if err := l.options.Objects.PutObject(ctx, ObjectName(conversationID, attachment.ID), bytes.NewReader(part.Raw)); err != nil {
			return fmt.Errorf("keep content part %d: %w", i, err)
		}
		parts[i] = attachment.placeholder(part.Type)
	}
	if entry.Attachments != nil {
		entry.Content = Parts(parts...)
	}
	return nil
}

// placeholder is the part that stands in an entry for one of a type. Its id is for readers; see Attachment.
func (a *Attachment) placeholder(partType string) Part {
	raw := rawjson.MustMarshal(struct {
		Type   string `json:"type"`
		Object string `json:"continuo_object"`
	}{partType, a.ID})
	return Part{Type: partType, Raw: raw}
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// mediaTypeOf is what a part says it is, where the protocols have a place for it: the data URL of an image or
// a file, the media type of a source, the format of a sound.
func mediaTypeOf(part Part) string {
	var known struct {
		ImageURL struct {
			URL beginning `json:"url"`
		} `json:"image_url"`
		File struct {
			Data beginning `json:"file_data"`
		} `json:"file"`
		Source struct {
			MediaType beginning `json:"media_type"`
		} `json:"source"`
		Audio struct {
			Format beginning `json:"format"`
		} `json:"input_audio"`
	}
	_ = json.Unmarshal(part.Raw, &known) // what is of another kind says nothing
	named := string(known.Source.MediaType)
	for _, url := range []beginning{known.ImageURL.URL, known.File.Data} {
		if data, ok := strings.CutPrefix(string(url), "data:"); ok && named == "" {
			named, _, _ = strings.Cut(data, ";")
		}
	}
	if named == "" && known.Audio.Format != "" {
		named = "audio/" + string(known.Audio.Format)
	}
	if !isMediaType(named) {
		return ""
	}
	return named
}

// maxMediaType is the most bytes of a media type that is told.
const maxMediaType = 100

// isMediaType reports whether a text is two short plain words with a slash between.
func isMediaType(text string) bool {
	plain := !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+-./_", r)
	})
	kind, name, ok := strings.Cut(text, "/")
	return ok && plain && kind != "" && name != "" && len(text) <= maxMediaType
}

// beginning is how a JSON string begins, without the rest, which may be long.
type beginning string

// UnmarshalJSON is part of json.Unmarshaler.
func (b *beginning) UnmarshalJSON(data []byte) error {
	text, ok := strings.CutPrefix(string(data[:min(len(data), maxMediaType+len("data:;"))]), `"`)
	if ok {
		text, _, _ = strings.Cut(text, `"`)
		*b = beginning(strings.ReplaceAll(text, `\/`, "/"))
	}
	return nil
}
