package interchange

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Export writes a complete conversation of a log: content that is stored as objects is put back into the
// entries, and streamed. A missing object fails the export.
//
// FormatContinuo is lossless and can be imported again; only ids, and token counts of another tokenizer, are
// replaced. FormatOpenAI is one JSON list of messages that an API accepts, and FormatOpenAIJSONL the same as
// one line {"id", "messages"}: entries that are not shown to models and fields that the protocol does not
// have are left out. FormatSource, also the empty format, writes the conversation's original protocol, with
// the original messages, repairs undone and unknown fields included, and later entries in the same protocol;
// a conversation that was not imported is written as OpenAI chat with its unknown fields. It holds one
// conversation in memory, the others one entry, and all of them a part of an output, or one attachment.
func Export(ctx context.Context, w io.Writer, format string, log *continuo.Log, conversation continuo.Conversation) error {
	objects := newObjects(ctx, log)
	return export(w, format, conversation, objects.replaceLarge(log.Read(ctx, conversation, continuo.Range{})), objects)
}

// export writes entries, and objects in place of their placeholders.
func export(w io.Writer, format string, conversation continuo.Conversation, entries iter.Seq2[continuo.Entry, error], objects *objects) error {
	buffered := bufio.NewWriter(w)
	out := &objectWriter{Writer: buffered, objects: objects}
	var err error
	switch format {
	case FormatContinuo:
		err = exportOwn(out, conversation, entries, objects)
	case FormatOpenAI:
		err = exportOpenAI(out, "[\n", ",\n", "\n]\n", entries)
	case FormatOpenAIJSONL:
		begin := `{"messages":[`
		if conversation.ID != "" {
			begin = fmt.Sprintf(`{"id":%s,"messages":[`, rawjson.MustMarshal(conversation.ID))
		}
		err = exportOpenAI(out, begin, ",", "]}\n", entries)
	case FormatSource, "":
		err = exportSource(out, conversation, entries)
	default:
		err = invalid("unknown format %q: use %s, %s, %s or %s", format, FormatContinuo, FormatOpenAI, FormatOpenAIJSONL, FormatSource)
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return fmt.Errorf("export conversation %s: %w", conversation.ID, err)
	}
	return nil
}

// exportOpenAI writes the messages that a model may be sent.
func exportOpenAI(w io.Writer, begin, between, end string, entries iter.Seq2[continuo.Entry, error]) error {
	if _, err := io.WriteString(w, begin); err != nil {
		return err
	}
	first := true
	for entry, err := range entries {
		if err != nil {
			return err
		}
		if entry.Hidden {
			continue
		}
		if !first {
			_, _ = io.WriteString(w, between) // a bufio.Writer keeps its error
		}
		first = false
		data, err := rawjson.Marshal(strict(&entry))
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", entry.Seq, err)
		}
	}
	_, err := io.WriteString(w, end)
	return err
}

// strict returns a message with only the protocol's fields.
func strict(e *continuo.Entry) rawjson.Object {
	plain := continuo.Entry{Role: e.Role, Content: e.Content, Name: e.Name, ToolCallID: e.ToolCallID}
	for _, call := range e.ToolCalls {
		call.Extra = nil
		plain.ToolCalls = append(plain.ToolCalls, call)
	}
	switch {
	case e.Content.IsNull() && e.HasCalls():
		plain.Content = continuo.Null()
	case e.Content.IsNull(), e.Content.IsParts() && len(e.Content.Parts()) == 0:
		plain.Content = continuo.Text("")
	case e.Vendor[vendorKey] != nil && e.Content.IsParts():
		plain.Content = knownParts(e.Content)
	}
	return openAI{}.encode([]*draft{{entry: plain}})
}

// knownParts replaces blocks that only Anthropic supports by a line of text.
func knownParts(content continuo.Content) continuo.Content {
	parts := slices.Clone(content.Parts())
	for i, part := range parts {
		switch part.Type {
		case "text", "image_url", "input_audio", "file", "refusal":
		default:
			parts[i] = continuo.TextPart("[" + part.Type + "]")
		}
	}
	return continuo.Parts(parts...)
}

// exportSource writes the conversation's original protocol.
func exportSource(w io.Writer, conversation continuo.Conversation, entries iter.Seq2[continuo.Entry, error]) error {
	from := originOf(conversation)
	var drafts []*draft
	for entry, err := range entries {
		if err != nil {
			return err
		}
		r, imported := recordOf(&entry)
		if r.Added || entry.Hidden && !imported {
			continue
		}
		drafts = append(drafts, &draft{entry: entry, record: r, imported: imported})
	}
	if from.Format == FormatOpenAILegacy {
		markLegacy(drafts)
	}
	messages, err := rawjson.Marshal(sourceMessages(dialectOf(from.Format), drafts))
	if err != nil {
		return err
	}
	if from.List != "" {
		fields, err := rawjson.ParseObject(from.Fields)
		if err != nil {
			fields = nil
		}
		fields.Set(from.List, messages)
		messages = rawjson.MustMarshal(fields)
	}
	_, err = w.Write(append(messages, '\n'))
	return err
}

// originOf reads the original format of a conversation; OpenAI chat when it was not imported.
func originOf(conversation continuo.Conversation) origin {
	var metadata struct {
		Source origin `json:"source"`
	}
	if json.Unmarshal(conversation.Metadata, &metadata) != nil || !slices.Contains(readable, metadata.Source.Format) {
		return origin{Format: FormatOpenAI}
	}
	return metadata.Source
}

// sourceMessages writes the messages, imported ones restored and in the order of the source.
func sourceMessages(speech dialect, drafts []*draft) []rawjson.Object {
	byIndex(drafts)
	messages := []rawjson.Object{}
	for i := 0; i < len(drafts); {
		end := i + 1
		for end < len(drafts) && together(speech, drafts[end-1], drafts[end]) {
			end++
		}
		parts := sorted(slices.Clone(drafts[i:end]))
		message := speech.encode(parts)
		for _, d := range parts {
			message = d.record.restore(message)
		}
		messages = append(messages, message)
		i = end
	}
	return messages
}

// together reports whether two entries belong to one message.
func together(speech dialect, a, b *draft) bool {
	if a.imported || b.imported {
		return a.imported && b.imported && a.record.Index == b.record.Index && len(a.record.Blocks) > 0
	}
	return speech.joins(&a.entry, &b.entry)
}
