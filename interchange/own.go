package interchange

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Continuo's own form is JSON lines: {"continuo": "conversation", "version": 1, "conversation": {…}}, then
// one line per entry as the API serves it, then {"continuo": "end", "entries": N}. Several conversations
// may stand in one file.
const (
	ownKey      = "continuo"
	ownBegin    = "conversation"
	ownEnd      = "end"
	ownVersion  = 1
	importedKey = "imported_from"
)

// ownLine is a header or an end line.
type ownLine struct {
	Line         string                 `json:"continuo"`
	Version      int                    `json:"version,omitempty"`
	Conversation *continuo.Conversation `json:"conversation,omitempty"`
	Entries      *int                   `json:"entries,omitempty"`
}

// exportOwn writes Continuo's own form.
func exportOwn(w io.Writer, conversation continuo.Conversation, entries iter.Seq2[continuo.Entry, error]) error {
	if err := writeLine(w, ownLine{Line: ownBegin, Version: ownVersion, Conversation: &conversation}); err != nil {
		return err
	}
	count := 0
	for entry, err := range entries {
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

func writeLine(w io.Writer, value any) error {
	data, err := rawjson.Marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// ownExport is an export in Continuo's own form, as far as it was read.
type ownExport struct {
	place string
	head  ownLine
	lines [][]byte // as they came, the header first, as long as they fit into the limit
	size  int
}

func (o *ownExport) add(raw []byte, limit int) {
	if o.size += len(raw); o.size <= limit {
		o.lines = append(o.lines, raw)
	}
}

// ownLine reads a header or an end line.
func (r *reader) ownLine(raw []byte, place string) bool {
	var line ownLine
	if err := json.Unmarshal(raw, &line); err != nil {
		return r.fail(place, invalid("the line with the field %q cannot be read: %v", ownKey, err))
	}
	switch {
	case line.Line == ownEnd && r.own != nil:
		own := r.own
		r.own = nil
		own.add(raw, r.options.MaxBytes)
		return r.give(own.document(line, r.options.MaxBytes))
	case line.Line != ownBegin:
		return r.fail(place, invalid("field %s must be %q or, after entries, %q", ownKey, ownBegin, ownEnd))
	case line.Version > ownVersion:
		return r.fail(place, invalid("the export has version %d, and this program knows %d: update it", line.Version, ownVersion))
	case !r.closeOwn():
		return false
	case line.Conversation == nil:
		return r.fail(place, invalid("the header has no conversation"))
	}
	r.own = &ownExport{place: place, head: line}
	r.own.add(raw, r.options.MaxBytes)
	return true
}

// closeOwn reports an export whose end line is missing.
func (r *reader) closeOwn() bool {
	own := r.own
	if own == nil {
		return true
	}
	r.own = nil
	return r.fail(own.place, own.named(invalid("the export breaks off after %d entries, before its end line", len(own.lines)-1)))
}

func (o *ownExport) named(err error) error {
	return fmt.Errorf("conversation %q: %w", o.head.Conversation.ID, err)
}

// document checks an export by the log's rules. What breaks them was not written by Continuo.
func (o *ownExport) document(end ownLine, maxBytes int) (Document, error) {
	document := Document{Source: o.place, Format: FormatContinuo}
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
			return document, o.named(invalid("entry %d: %v", i, err))
		}
		document.Entries = append(document.Entries, entry)
	}
	document.Repairs = report.sorted()
	var err error
	document.Conversation, err = o.conversation(report)
	return document, err
}

func readOwn(raw json.RawMessage, group *continuo.Group) (entry continuo.Entry, err error) {
	if err := json.Unmarshal(raw, &entry); err != nil {
		return entry, err
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

// conversation makes the conversation's fields anew; its old id and key stand in the metadata.
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
	made := continuo.Conversation{Title: old.Title, Metadata: metadata.Raw(), Key: keyOf(o.lines...)}
	if knownMode(old.ActiveMode) {
		made.ActiveMode = old.ActiveMode
	}
	return made, nil
}
