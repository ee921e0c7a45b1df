package continuo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Output describes a tool output that is stored as an object. The entry's content is then a preview of it; [Log.Output]
// reads the complete output.
type Output struct {
	// ID names the object within the conversation that the entry was written to.
	ID string `json:"id"`
	// The size of the complete output as UTF-8; Lines is the number of its line ends plus one.
	Bytes int64 `json:"bytes"`
	Chars int   `json:"chars"`
	Lines int   `json:"lines"`
	// SHA256 is the hash of the complete output, in hex.
	SHA256 string `json:"sha256"`
	// Head and Tail are how many bytes of the output's beginning and end the content shows.
	Head int `json:"head"`
	Tail int `json:"tail"`
	// Parts are the text parts of content that was a list, in order; the complete output is their texts joined by line
	// ends. Empty when the content was a string.
	Parts []OutputPart `json:"parts,omitempty"`
}

// FilesFolder is the alias folder of the files that a conversation's calls wrote: a file is the arguments of a call,
// and its path the OutputRef of the call's result.
const FilesFolder = "@state/files/"

// runFolder is the alias folder of the inputs of runs and the outputs of their steps.
const runFolder = "@state/runs/"

// StepRef is the alias path of the outputs of a run's step in its newest visit: the OutputRef of the event that records
// them.
func StepRef(runID, nodeID string) string { return runFolder + runID + "/steps/" + nodeID + ".json" }

// InputsRef is the alias path of a run's inputs: the OutputRef of its first entry.
func InputsRef(runID string) string { return runFolder + runID + "/inputs.json" }

// OutputPart is a text part of an output.
type OutputPart struct {
	Bytes int64           `json:"bytes"` // of its text
	Raw   json.RawMessage `json:"raw"`   // the part with empty text
}

// Content returns the content as it was appended, with the texts that the callback returns: one for each part, or the
// one of a string. The callback's arguments are a range of the complete output.
func (o *Output) Content(text func(offset, length int64) (string, error)) (Content, error) {
	if len(o.Parts) == 0 {
		whole, err := text(0, o.Bytes)
		return Text(whole), err
	}
	parts, offset := make([]Part, len(o.Parts)), int64(0)
	for i, kept := range o.Parts {
		content, err := text(offset, kept.Bytes)
		if err != nil {
			return Content{}, err
		}
		object, err := rawjson.ParseObject(kept.Raw)
		if err != nil {
			return Content{}, fmt.Errorf("part %d of the output: %w", i, err)
		}
		object.Set("text", rawjson.MustMarshal(content))
		parts[i] = Part{Type: "text", Text: content, Raw: object.Raw()}
		offset += kept.Bytes + 1
	}
	return Parts(parts...), nil
}

// Output reads the complete text of an entry's content: from the object store, one chunk in memory at a time, where it
// is an object, otherwise from the content. Reads fail with ErrObjectGone when the object is missing. The reader is
// bound to ctx. It is safe for concurrent use by ReadAt.
func (l *Log) Output(ctx context.Context, entry *Entry) *io.SectionReader {
	if entry.Output == nil {
		text := entry.Content.String()
		return io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
	}
	reader := &outputReader{ctx: ctx, objects: l.options.Objects, name: ObjectName(entry.ConversationID, entry.Output.ID), output: entry.Output}
	return io.NewSectionReader(reader, 0, entry.Output.Bytes)
}

// WholeContent returns an entry's content as it was appended. It holds all of it in memory, and verifies the hashes of
// objects.
func (l *Log) WholeContent(ctx context.Context, entry *Entry) (Content, error) {
	switch {
	case len(entry.Attachments) > 0:
		return l.wholeParts(ctx, entry)
	case entry.Output == nil:
		return entry.Content, nil
	}
	var whole strings.Builder
	whole.Grow(int(entry.Output.Bytes))
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(&whole, sum), l.Output(ctx, entry)); err != nil {
		return Content{}, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != entry.Output.SHA256 {
		return Content{}, fmt.Errorf("output %s: its bytes are not those that were appended", entry.Output.ID)
	}
	return entry.Output.Content(func(offset, length int64) (string, error) {
		if offset < 0 || length < 0 || offset+length > int64(whole.Len()) {
			return "", fmt.Errorf("output %s: a part ends after the whole", entry.Output.ID)
		}
		return whole.String()[offset : offset+length], nil
	})
}

// stretchBytes is the size of the chunks in which an output is read.
const stretchBytes = 1 << 20

// outputReader reads an output and caches the chunk that was read last.
type outputReader struct {
	ctx     context.Context
	objects ObjectStore
	name    string
	output  *Output

	mu   sync.Mutex
	from int64 // the offset of data, when that is not nil
	data []byte
}

// ReadAt is part of io.ReaderAt. The section reader around it checks the output's bounds.
func (r *outputReader) ReadAt(into []byte, offset int64) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n < len(into) && offset < r.output.Bytes {
		if err := r.hold(offset - offset%stretchBytes); err != nil {
			return n, err
		}
		copied := copy(into[n:], r.data[offset-r.from:])
		n, offset = n+copied, offset+int64(copied)
	}
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}

func (r *outputReader) hold(from int64) error {
	if r.data != nil && r.from == from {
		return nil
	}
	want := min(stretchBytes, r.output.Bytes-from)
	data, err := readObject(r.ctx, r.objects, r.name, from, want)
	if err != nil {
		return err
	}
	r.from, r.data = from, data
	return nil
}

// readObject reads a range of an object that the log refers to, all of it or ErrObjectGone.
func readObject(ctx context.Context, objects ObjectStore, name string, offset, length int64) ([]byte, error) {
	if objects == nil {
		return nil, fmt.Errorf("%w: %s, for there is no object store; name the one that it was written to", ErrObjectGone, name)
	}
	reader, err := objects.ReadObject(ctx, name, offset, length)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: %s; put it back from a backup of the object store", ErrObjectGone, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", name, err)
	}
	var data bytes.Buffer
	data.Grow(int(min(max(length, 0), maxReadAhead)) + bytes.MinRead)
	_, err = data.ReadFrom(io.LimitReader(reader, length))
	switch err := errors.Join(err, reader.Close()); {
	case err != nil:
		return nil, fmt.Errorf("read object %s: %w", name, err)
	case int64(data.Len()) < length:
		return nil, fmt.Errorf("%w: object %s ends at byte %d, before %d; put it back from a backup of the object store",
			ErrObjectGone, name, offset+int64(data.Len()), offset+length)
	}
	return data.Bytes(), nil
}

// maxReadAhead bounds the buffer that is allocated for an object before it is read.
const maxReadAhead = 64 << 20

// offload stores the large outputs and attachments of entries as objects and returns the entries to append, which have
// previews (prepare completes them) and placeholders. An object is stored before the entry that refers to it. An object
// without an entry is harmless, and drop removes it.
func (l *Log) offload(ctx context.Context, conversationID string, entries []Entry) (shorter []Entry, err error) {
	shorter = slices.Clone(entries)
	for i := range shorter {
		entry := &shorter[i]
		entry.Output, entry.Attachments = nil, nil // only the log sets these
		if l.options.Objects == nil {
			continue
		}
		text, parts, large := l.largeOutput(entry)
		if large {
			err = l.offloadOutput(ctx, conversationID, entry, text, parts)
		} else {
			err = l.offloadParts(ctx, conversationID, entry)
		}
		if err != nil {
			l.drop(ctx, conversationID, shorter[:i+1], nil)
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return shorter, nil
}

// offloadOutput stores an output's text as an object, and makes the entry's content a preview. Where it fails, the
// object may exist: then the entry's Output names it.
func (l *Log) offloadOutput(ctx context.Context, conversationID string, entry *Entry, text string, parts []OutputPart) error {
	output := &Output{
		ID: l.NewID("out"), Parts: parts,
		Bytes: int64(len(text)), Chars: utf8.RuneCountInString(text), Lines: strings.Count(text, "\n") + 1,
	}
	entry.Output = output
	sum := sha256.New()
	reader := io.TeeReader(strings.NewReader(text), sum)
	if err := l.options.Objects.PutObject(ctx, ObjectName(conversationID, output.ID), reader); err != nil {
		return fmt.Errorf("keep the output of %s: %w", entry.ToolCallID, err)
	}
	output.SHA256 = hex.EncodeToString(sum.Sum(nil))
	entry.Content = Text(output.preview(text, min(l.options.MaxInlineOutput, maxPreviewBytes)))
	return nil
}

// largeOutput returns the text of a tool output that is too large for its entry. A list of parts counts only when all
// of them are text: other parts must stay where models are shown them.
func (l *Log) largeOutput(entry *Entry) (text string, parts []OutputPart, large bool) {
	if entry.Role != Tool {
		return "", nil, false
	}
	size := len(entry.Content.text)
	for i, part := range entry.Content.parts {
		if part.Type != "text" {
			return "", nil, false
		}
		size += len(part.Text) + min(i, 1)
	}
	if size <= l.options.MaxInlineOutput {
		return "", nil, false
	}
	for _, part := range entry.Content.parts {
		object, err := rawjson.ParseObject(part.Raw)
		if err != nil {
			return "", nil, false
		}
		object.Set("text", json.RawMessage(`""`))
		parts = append(parts, OutputPart{Bytes: int64(len(part.Text)), Raw: object.Raw()})
	}
	return entry.Content.String(), parts, true
}

// maxPreviewBytes bounds the head and the tail of an output that its entry shows. The window cuts its shorter previews
// out of them.
const maxPreviewBytes = 24 << 10

// preview records how much of the output is shown, and returns the preview's text.
func (o *Output) preview(text string, most int) string {
	p := Preview{Head: headOf(text, most*2/3), Chars: o.Chars, Bytes: o.Bytes, Lines: o.Lines}
	p.Tail = tailOf(text[len(p.Head):], most/3)
	o.Head, o.Tail = len(p.Head), len(p.Tail)
	return p.String()
}

// nameOutput adds the path of the complete output to a preview.
func (e *Entry) nameOutput() {
	if e.Output == nil || e.OutputRef == "" {
		return
	}
	preview := e.Content.text
	e.Content = Text(wholeLine(preview) + fullOutput + e.OutputRef)
}

// drop removes the objects of entries that were not appended; stored are the entries that were. Failures are ignored: a
// check of the store finds leftover objects.
func (l *Log) drop(ctx context.Context, conversationID string, entries, stored []Entry) {
	ctx = context.WithoutCancel(ctx)
	named := map[string]bool{}
	for i := range stored {
		for _, id := range stored[i].Objects() {
			named[id] = true
		}
	}
	for i := range entries {
		for _, id := range entries[i].Objects() {
			if !named[id] {
				_ = l.options.Objects.DeleteObject(ctx, ObjectName(conversationID, id))
			}
		}
	}
}

// wasRefused reports whether a failed append certainly stored nothing. The store may report an error after the entries
// have become durable: then their objects must stay.
func wasRefused(err error) bool {
	var rule *RuleError
	var conflict *ConflictError
	if errors.As(err, &rule) || errors.As(err, &conflict) {
		return true
	}
	return slices.ContainsFunc([]error{ErrNotFound, ErrExists, ErrKeyReused, ErrArchived, ErrBusy, ErrLeaseLost, ErrNotRunning}, func(known error) bool { return errors.Is(err, known) })
}
