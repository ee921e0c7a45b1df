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

// Attachment names the object that holds a part of an entry's content: a part that is not text and too large for the
// entry. The object's bytes are the part's Raw. The content has a placeholder in the part's position: a part of the
// same type without data. Only the log creates attachments, and it ignores the text of a placeholder, so a client
// cannot name an object that it did not append. [Log.Attachment] reads the part.
type Attachment struct {
	// Part is the part's index in the content list, from 0.
	Part int `json:"part"`
	// ID names the object within the conversation that the entry was written to.
	ID string `json:"id"`
	// Bytes is the object's size, SHA256 its hash in hex.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// MediaType is the media type that the part declares, such as image/png; empty where it declares none in a known
	// form.
	MediaType string `json:"media_type,omitempty"`
}

// Attachment reads a part that is stored as an object, one of the entry's Attachments, byte for byte. It fails with
// ErrObjectGone when the object is missing or too short, and with another error when its bytes do not match the hash.
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

// wholeParts returns an entry's content with all its attachments loaded.
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

// offloadParts stores the large non-text parts of an entry as objects. The entry's Attachments list them, also those
// that may have been stored when offloadParts fails.
func (l *Log) offloadParts(ctx context.Context, conversationID string, entry *Entry) error {
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

// placeholder returns the part that replaces an attachment of a type in its entry. Its object id only informs readers
// of the entry; see Attachment.
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

// mediaTypeOf returns the media type that a part declares where the protocols have a field for it: the data URL of an
// image or a file, the media type of a source, the format of audio.
func mediaTypeOf(part Part) string {
	var known struct {
		ImageURL struct {
			URL jsonPrefix `json:"url"`
		} `json:"image_url"`
		File struct {
			Data jsonPrefix `json:"file_data"`
		} `json:"file"`
		Source struct {
			MediaType jsonPrefix `json:"media_type"`
		} `json:"source"`
		Audio struct {
			Format jsonPrefix `json:"format"`
		} `json:"input_audio"`
	}
	_ = json.Unmarshal(part.Raw, &known) // a part of another kind declares none
	named := string(known.Source.MediaType)
	for _, url := range []jsonPrefix{known.ImageURL.URL, known.File.Data} {
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

// maxMediaType bounds a media type that is stored, in bytes.
const maxMediaType = 100

// isMediaType reports whether a text is two short plain names with a slash between.
func isMediaType(text string) bool {
	plain := !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+-./_", r)
	})
	kind, name, ok := strings.Cut(text, "/")
	return ok && plain && kind != "" && name != "" && len(text) <= maxMediaType
}

// jsonPrefix is the first bytes of a JSON string, without the rest, which may be long.
type jsonPrefix string

// UnmarshalJSON is part of json.Unmarshaler.
func (b *jsonPrefix) UnmarshalJSON(data []byte) error {
	text, ok := strings.CutPrefix(string(data[:min(len(data), maxMediaType+len("data:;"))]), `"`)
	if ok {
		text, _, _ = strings.Cut(text, `"`)
		*b = jsonPrefix(strings.ReplaceAll(text, `\/`, "/"))
	}
	return nil
}
