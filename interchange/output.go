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
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// outputs are the large outputs of an export, which no step of it holds: a short word stands in for each
// text, and becomes the text when the finished JSON is written.
type outputs struct {
	ctx  context.Context
	log  *continuo.Log
	mark string // begins each word; nobody can have written it before
	// known are the texts by their words.
	known map[string]stretch
}

// stretch is a text in an output.
type stretch struct {
	entry          continuo.Entry // without content
	offset, length int64
}

func newOutputs(ctx context.Context, log *continuo.Log) *outputs {
	return &outputs{ctx: ctx, log: log, mark: "output-" + rand.Text() + "-", known: map[string]stretch{}}
}

// standIn gives entries with a preview the content that was appended, with words in the place of its texts.
// What was counted of the preview is left out.
func (o *outputs) standIn(entries iter.Seq2[continuo.Entry, error]) iter.Seq2[continuo.Entry, error] {
	return func(yield func(continuo.Entry, error) bool) {
		for entry, err := range entries {
			if err == nil && entry.Output != nil {
				err = o.replace(&entry)
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

func (o *outputs) replace(entry *continuo.Entry) (err error) {
	output := entry.Output
	whole := continuo.Entry{ConversationID: entry.ConversationID, Output: output}
	entry.Output, entry.Chars, entry.Tokens, entry.Tokenizer = nil, output.Chars, 0, ""
	entry.Content, err = output.Content(func(offset, length int64) (string, error) {
		word := fmt.Sprintf("%s%d", o.mark, len(o.known))
		o.known[word] = stretch{whole, offset, length}
		return word, nil
	})
	return err
}

// outputWriter writes finished JSON. A string must not be split between two calls of Write.
type outputWriter struct {
	io.Writer
	*outputs // nil when there are no words
}

// Write writes JSON with the texts in the place of their words.
func (w *outputWriter) Write(data []byte) (int, error) {
	if w.outputs == nil {
		return w.Writer.Write(data)
	}
	mark := []byte(`"` + w.mark)
	for rest := data; ; {
		begin := bytes.Index(rest, mark)
		if begin < 0 {
			_, err := w.Writer.Write(rest)
			return len(data), err
		}
		word, after, _ := bytes.Cut(rest[begin+1:], []byte(`"`))
		if _, err := w.Writer.Write(rest[:begin]); err != nil {
			return 0, err
		}
		if err := w.text(w.known[string(word)]); err != nil {
			return 0, err
		}
		rest = after
	}
}

// text writes a text as a JSON string. One that is a whole output is checked.
func (w *outputWriter) text(s stretch) error {
	if s.entry.Output == nil {
		return errors.New("a word stands in for no output")
	}
	_, _ = io.WriteString(w.Writer, `"`) // a bufio.Writer keeps its error
	sum := sha256.New()
	content := io.NewSectionReader(w.log.Output(w.ctx, &s.entry), s.offset, s.length)
	if err := writeText(w.Writer, io.TeeReader(content, sum)); err != nil {
		return err
	}
	if s.length == s.entry.Output.Bytes && hex.EncodeToString(sum.Sum(nil)) != s.entry.Output.SHA256 {
		return fmt.Errorf("output %s: its bytes are not those that were appended", s.entry.Output.ID)
	}
	_, err := io.WriteString(w.Writer, `"`)
	return err
}

// writeText writes what stands between the quotes of a JSON string.
func writeText(w io.Writer, text io.Reader) error {
	buffer := make([]byte, 64<<10)
	held := 0 // bytes of a character whose rest is still to be read
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

// wholeCharacters is where a text ends whose last character may be cut.
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
