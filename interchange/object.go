package interchange

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// objects are the large outputs and attachments of an export, which is streamed: a short placeholder replaces
// each text and the data of each attachment, and is replaced by them while the finished JSON is written.
type objects struct {
	ctx  context.Context
	log  *continuo.Log
	mark string // random prefix of each placeholder, which no content can contain
	// known maps placeholders to their content.
	known map[string]stretch
}

// stretch is a text of an entry's output, or the JSON of its attachment.
type stretch struct {
	entry          *continuo.Entry
	attachment     *continuo.Attachment // nil for a text of the output
	offset, length int64
}

func newObjects(ctx context.Context, log *continuo.Log) *objects {
	return &objects{ctx: ctx, log: log, mark: "object-" + rand.Text() + "-", known: map[string]stretch{}}
}

// placeholderEnd ends each placeholder.
const placeholderEnd = "."

func (o *objects) placeholder(s stretch) string {
	placeholder := fmt.Sprintf("%s%d%s", o.mark, len(o.known), placeholderEnd)
	o.known[placeholder] = s
	return placeholder
}

// replaceLarge restores the appended content of entries, with placeholders for the parts stored as objects. Counts
// that were made of a preview are removed.
func (o *objects) replaceLarge(entries iter.Seq2[continuo.Entry, error]) iter.Seq2[continuo.Entry, error] {
	return func(yield func(continuo.Entry, error) bool) {
		for entry, err := range entries {
			switch {
			case err != nil:
			case entry.Output != nil:
				err = o.replaceOutput(&entry)
			case len(entry.Attachments) > 0:
				err = o.replaceAttachments(&entry)
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

func (o *objects) replaceOutput(entry *continuo.Entry) (err error) {
	kept := &continuo.Entry{ConversationID: entry.ConversationID, Output: entry.Output}
	output := entry.Output
	entry.Output, entry.Chars, entry.Tokens, entry.Tokenizer = nil, output.Chars, 0, ""
	entry.Content, err = output.Content(func(offset, length int64) (string, error) {
		return o.placeholder(stretch{entry: kept, offset: offset, length: length}), nil
	})
	return err
}

// replaceAttachments holds one attachment at a time, whole.
func (o *objects) replaceAttachments(entry *continuo.Entry) error {
	kept := &continuo.Entry{ConversationID: entry.ConversationID, Seq: entry.Seq, Content: entry.Content}
	parts := slices.Clone(entry.Content.Parts())
	for _, attachment := range entry.Attachments {
		part, err := o.log.Attachment(o.ctx, kept, attachment)
		if err != nil {
			return err
		}
		if begin, end := longestData(part.Raw); end-begin > smallData {
			placeholder := o.placeholder(stretch{kept, &attachment, int64(begin), int64(end - begin)})
			part.Raw = slices.Concat(part.Raw[:begin], []byte(placeholder), part.Raw[end:])
		}
		parts[attachment.Part] = part
	}
	entry.Attachments, entry.Content = nil, continuo.Parts(parts...)
	return nil
}

// smallData is the size in bytes up to which data are not replaced: no name in a protocol is that long.
const smallData = 1 << 10

// longestData finds the longest part of JSON that is base64 and ends a string; it contains no escapes, so
// that every encoder writes it unchanged. It is empty if there is none.
func longestData(raw []byte) (begin, end int) {
	from := 0
	for i, c := range raw {
		switch {
		case isBase64(c):
			continue
		case c == '"' && i-from > end-begin:
			begin, end = from, i
		}
		from = i + 1
		if c == '\\' {
			from = i + len(`\u0000`) // after the longest escape
		}
	}
	return begin, end
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' || c == '-' || c == '_'
}

// objectWriter writes finished JSON. A string must not be split between two calls of Write.
type objectWriter struct {
	io.Writer
	*objects // nil without placeholders
}

// Write writes JSON and replaces placeholders by their content.
func (w *objectWriter) Write(data []byte) (int, error) {
	if w.objects == nil {
		return w.Writer.Write(data)
	}
	for rest := data; ; {
		begin := bytes.Index(rest, []byte(w.mark))
		if begin < 0 {
			_, err := w.Writer.Write(rest)
			return len(data), err
		}
		if _, err := w.Writer.Write(rest[:begin]); err != nil {
			return 0, err
		}
		placeholder, after, _ := bytes.Cut(rest[begin:], []byte(placeholderEnd))
		if err := w.stretch(w.known[string(placeholder)+placeholderEnd]); err != nil {
			return 0, err
		}
		rest = after
	}
}

func (w *objectWriter) stretch(s stretch) error {
	switch {
	case s.entry == nil:
		return errors.New("a placeholder refers to no object")
	case s.attachment == nil:
		return w.text(s)
	}
	part, err := w.log.Attachment(w.ctx, s.entry, *s.attachment)
	if err == nil {
		_, err = w.Writer.Write(part.Raw[s.offset : s.offset+s.length])
	}
	return err
}

// text writes a text between the quotes of a JSON string. A whole output is verified.
func (w *objectWriter) text(s stretch) error {
	sum := sha256.New()
	content := io.NewSectionReader(w.log.Output(w.ctx, s.entry), s.offset, s.length)
	if err := writeText(w.Writer, io.TeeReader(content, sum)); err != nil {
		return err
	}
	if s.length == s.entry.Output.Bytes && hex.EncodeToString(sum.Sum(nil)) != s.entry.Output.SHA256 {
		return fmt.Errorf("output %s: its bytes are not those that were appended", s.entry.Output.ID)
	}
	return nil
}

// writeText writes the text between the quotes of a JSON string.
func writeText(w io.Writer, text io.Reader) error {
	buffer := make([]byte, 64<<10)
	held := 0 // bytes of a character that is not complete yet
	for {
		n, err := io.ReadFull(text, buffer[held:])
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		whole := buffer[:held+n]
		if !ended {
			whole = whole[:wholeCharacters(whole)]
		}
		quoted := rawjson.MustMarshal(string(whole))
		if _, err := w.Write(quoted[1 : len(quoted)-1]); err != nil || ended {
			return err
		}
		held = copy(buffer, buffer[len(whole):held+n])
	}
}

// wholeCharacters returns the length of a text without an incomplete last character.
func wholeCharacters(text []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if utf8.FullRune(text[at:]) {
				break
			}
			return at
		}
	}
	return len(text)
}
