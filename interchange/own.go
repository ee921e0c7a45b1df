package interchange

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Continuo's own form is JSON lines: {"continuo": "conversation", "version": 1, "conversation": {…}}, then
// one line per entry as the API serves it, then {"continuo": "end", "entries": N}. Before the first entry
// whose request had an envelope is a line {"continuo": "envelope", "sha256": "…", "text": "…"}, so that the
// request can be shown again after an import. A file may have several conversations.
const (
	ownKey      = "continuo"
	ownBegin    = "conversation"
	ownEnd      = "end"
	ownEnvelope = "envelope"
	ownVersion  = 1
	importedKey = "imported_from"
)

// ownLine is a line other than an entry.
type ownLine struct {
	Line         string                 `json:"continuo"`
	Version      int                    `json:"version,omitempty"`
	Conversation *continuo.Conversation `json:"conversation,omitempty"`
	Entries      *int                   `json:"entries,omitempty"`
	SHA256       string                 `json:"sha256,omitempty"` // of an envelope's text
	Text         string                 `json:"text,omitempty"`
}

// exportOwn writes Continuo's own form. Objects reads the envelopes; nil leaves them out.
func exportOwn(w io.Writer, conversation continuo.Conversation, entries iter.Seq2[continuo.Entry, error], objects *objects) error {
	written := map[string]bool{}
	if err := writeLine(w, ownLine{Line: ownBegin, Version: ownVersion, Conversation: &conversation}); err != nil {
		return err
	}
	count := 0
	for entry, err := range entries {
		if err == nil {
			err = writeEnvelope(w, &entry, objects, written)
		}
		if err == nil {
			err = writeLine(w, entry)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", count+1, err)
		}
		count++
	}
	return writeLine(w, ownLine{Line: ownEnd, Entries: &count})
}

// writeEnvelope writes the envelope of an entry's request, unless it was already written or no longer exists.
func writeEnvelope(w io.Writer, entry *continuo.Entry, objects *objects, written map[string]bool) error {
	if objects == nil || entry.Round == nil || entry.Round.Envelope == "" || written[entry.Round.Envelope] {
		return nil
	}
	hash := entry.Round.Envelope
	written[hash] = true
	text, err := objects.log.Text(objects.ctx, hash)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return writeLine(w, ownLine{Line: ownEnvelope, SHA256: hash, Text: string(text)})
}

func writeLine(w io.Writer, value any) error {
	data, err := rawjson.Marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// ownExport is a partly read export in Continuo's own form.
type ownExport struct {
	location string
	head     ownLine
	lines    [][]byte // the original lines, the header first, within the limit
	numbers  []int    // the line number of each in the file
	size     int
	// envelopes maps SHA-256 hashes to texts.
	envelopes map[string]string
}

func (o *ownExport) add(raw []byte, number, limit int) {
	if o.size += len(raw); o.size <= limit {
		o.lines, o.numbers = append(o.lines, raw), append(o.numbers, number)
	}
}

// addEnvelope verifies an envelope and keeps it, within the limit.
func (o *ownExport) addEnvelope(line ownLine, size, limit int) error {
	sum := sha256.Sum256([]byte(line.Text))
	switch {
	case hex.EncodeToString(sum[:]) != line.SHA256:
		return invalid("the text of the envelope %q has another SHA-256", line.SHA256)
	case json.Unmarshal([]byte(line.Text), &continuo.Envelope{}) != nil:
		return invalid("the envelope %q cannot be read", line.SHA256)
	}
	if o.size += size; o.size <= limit {
		o.envelopes[line.SHA256] = line.Text
	}
	return nil
}

// claimEnvelope adds the envelope of an entry's request to the document, if the export has it. A hash alone
// is dropped: it may be that of another project's envelope.
func (o *ownExport) claimEnvelope(entry *continuo.Entry, document *Document) {
	if entry.Round == nil || entry.Round.Envelope == "" {
		return
	}
	text, ok := o.envelopes[entry.Round.Envelope]
	if !ok {
		entry.Round.Envelope = ""
		return
	}
	if !slices.Contains(document.Envelopes, text) {
		document.Envelopes = append(document.Envelopes, text)
	}
}

// ownLine reads a line other than an entry.
func (r *reader) ownLine(raw []byte, number int) bool {
	var line ownLine
	location := r.lineLocation(number)
	if err := json.Unmarshal(raw, &line); err != nil {
		return r.fail(location, invalid("the line with the field %q cannot be read: %s", ownKey, rawjson.Explain(err)))
	}
	switch {
	case line.Line == ownEnd && r.own != nil:
		own := r.own
		r.own = nil
		own.add(raw, number, r.options.MaxBytes)
		return r.yieldDocument(own.document(line, r.options.MaxBytes))
	case line.Line == ownEnvelope && r.own != nil:
		if err := r.own.addEnvelope(line, len(raw), r.options.MaxBytes); err != nil {
			own := r.own
			r.own = nil
			return r.fail(location, own.named(err))
		}
		return true
	case line.Line != ownBegin:
		return r.fail(location, invalid("field %s must be %q or, after it, %q or %q", ownKey, ownBegin, ownEnvelope, ownEnd))
	case line.Version > ownVersion:
		return r.fail(location, invalid("the export has version %d, and this program knows %d: update it", line.Version, ownVersion))
	case !r.closeOwn():
		return false
	case line.Conversation == nil:
		return r.fail(location, invalid("the header has no conversation"))
	}
	r.own = &ownExport{location: location, head: line, envelopes: map[string]string{}}
	r.own.add(raw, number, r.options.MaxBytes)
	return true
}

// closeOwn reports an export whose end line is missing.
func (r *reader) closeOwn() bool {
	own := r.own
	if own == nil {
		return true
	}
	r.own = nil
	return r.fail(own.location, own.named(invalid("the export is truncated after %d entries: its end line is missing", len(own.lines)-1)))
}

func (o *ownExport) named(err error) error {
	return fmt.Errorf("conversation %q: %w", o.head.Conversation.ID, err)
}

// document checks an export by the log's rules. An export that violates them was not written by Continuo.
func (o *ownExport) document(end ownLine, maxBytes int) (Document, error) {
	document := Document{Source: o.location, Format: FormatContinuo}
	if o.size > maxBytes {
		return document, o.named(invalid("it has %d bytes, more than the limit of %d: raise the limit", o.size, maxBytes))
	}
	lines := o.lines[1 : len(o.lines)-1]
	if end.Entries == nil || *end.Entries != len(lines) {
		return document, o.named(invalid("the end line does not count the %d entries before it: lines are missing or too many", len(lines)))
	}
	report := &repairs{}
	var group continuo.Group
	for i, raw := range lines {
		entry, err := readOwn(report.clean(i, raw), &group)
		if err != nil {
			return document, o.named(invalid("entry %d (line %d): %v", i, o.numbers[i+1], err))
		}
		o.claimEnvelope(&entry, &document)
		document.Entries = append(document.Entries, entry)
	}
	for _, line := range lines {
		document.raw = append(document.raw, line)
	}
	document.Repairs = report.sorted()
	var err error
	document.Conversation, err = o.conversation(report)
	return document, err
}

// unreadable says which field of an entry cannot be read, and what it must be.
func unreadable(raw json.RawMessage, err error) error {
	object, _ := rawjson.ParseObject(raw)
	problem := rawjson.ExplainMember(object, err, func(member []byte) error { return json.Unmarshal(member, &continuo.Entry{}) })
	return errors.New(strings.Replace(problem, ": entry: ", ": ", 1))
}

func readOwn(raw json.RawMessage, group *continuo.Group) (entry continuo.Entry, err error) {
	if err := json.Unmarshal(raw, &entry); err != nil {
		return entry, unreadable(raw, err)
	}
	if !storable(entry.CreatedAt) {
		return entry, fmt.Errorf("field created_at is out of range")
	}
	if broken := group.Accept(&entry); broken != nil {
		return entry, fmt.Errorf("it breaks the rule %s: %s", broken.Rule, broken.Message)
	}
	if again, err := rawjson.Marshal(entry); err != nil || json.Unmarshal(again, &continuo.Entry{}) != nil {
		return entry, fmt.Errorf("it cannot be stored as it is")
	}
	return entry, nil
}

// conversation creates new values for the conversation's fields; its old id and key are kept in the metadata.
func (o *ownExport) conversation(report *repairs) (continuo.Conversation, error) {
	old := *o.head.Conversation
	old.Metadata = report.clean(-1, old.Metadata)
	var metadata rawjson.Object
	if !rawjson.IsNull(old.Metadata) {
		var err error
		if metadata, err = rawjson.ParseObject(old.Metadata); err != nil {
			return continuo.Conversation{}, o.named(invalid("field metadata must be an object"))
		}
	}
	from := struct {
		ID  string `json:"id"`
		Key string `json:"key,omitempty"`
	}{old.ID, old.Key}
	metadata.Set(importedKey, rawjson.MustMarshal(from))
	made := continuo.Conversation{Title: old.Title, Metadata: metadata.Raw(), Key: old.Key, UserID: old.UserID, CreatedAt: old.CreatedAt, UpdatedAt: old.UpdatedAt}
	if made.Key == "" {
		made.Key = keyFrom(old.ID)
	}
	if knownMode(old.ActiveMode) {
		made.ActiveMode = old.ActiveMode
	}
	return made, nil
}
