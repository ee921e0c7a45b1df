package interchange

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Read yields the conversations of a file, in order: JSON or JSON lines, gzip-packed or not. The name is used
// only in messages. An error of one conversation names it, is yielded with a Document that has only its
// Source, and reading continues; an error of the reader itself ends the sequence. Memory is bounded by one
// conversation.
func Read(name string, in io.Reader, o Options) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		o, err := o.filled()
		if err == nil {
			in, err = plain(in)
		}
		if err != nil {
			yield(Document{Source: name}, fmt.Errorf("read %s: %w", name, err))
			return
		}
		r := &reader{name: name, options: o, split: newSplitter(in, o.MaxBytes), yield: yield}
		r.run()
	}
}

// plain decompresses gzip, drops a byte order mark, and refuses UTF-16.
func plain(in io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(in)
	if head, _ := buffered.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("unpack gzip: %w", err)
		}
		buffered = bufio.NewReader(unpacked)
	}
	head, _ := buffered.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = buffered.Discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return nil, invalid("the text is UTF-16: convert it to UTF-8 first")
	}
	return buffered, nil
}

// reader turns the values of one file into documents. Its methods report false when reading must stop.
type reader struct {
	name    string
	options Options
	split   *splitter
	yield   func(Document, error) bool
	own     *ownExport // the current export in Continuo's own form, nil for none
	count   int        // of documents and errors
}

func (r *reader) run() {
	for {
		first, err := r.split.peek()
		switch {
		case errors.Is(err, io.EOF):
			if r.closeOwn() && r.count == 0 {
				r.fail(r.name, invalid("the file is empty"))
			}
			return
		case err != nil:
			r.fail(r.name, err)
			return
		case first == '[':
			if !r.closeOwn() || !r.list() {
				return
			}
		default:
			if !r.object() {
				return
			}
		}
	}
}

func (r *reader) yieldDocument(document Document, err error) bool {
	r.count++
	document.Position = r.count
	if err != nil {
		document, err = Document{Source: document.Source}, fmt.Errorf("read %s: %w", document.Source, err)
	}
	return r.yield(document, err)
}

func (r *reader) fail(location string, err error) bool {
	return r.yieldDocument(Document{Source: location}, err)
}

func (r *reader) lineLocation(line int) string { return fmt.Sprintf("%s, line %d", r.name, line) }

// object reads one value that is not a list: a conversation, or a line of Continuo's own form.
func (r *reader) object() bool {
	raw, line, err := r.split.value(true)
	location := r.lineLocation(line)
	if err != nil {
		return r.fail(location, err) && isSkippable(err)
	}
	object, err := parseObject(raw)
	switch {
	case err != nil:
		return r.fail(location, err)
	case object.Get(ownKey) != nil:
		return r.ownLine(raw, line)
	case r.own != nil:
		r.own.add(raw, line, r.options.MaxBytes)
		return true
	}
	return r.conversation(raw, location)
}

// conversation reads one whole conversation: an object or a bare list.
func (r *reader) conversation(raw []byte, location string) bool {
	source, err := parseSource(raw)
	if err == nil && source.list == "" && len(source.messages) == 0 {
		err = invalid("the list is empty: it has no messages")
	}
	if err != nil {
		return r.fail(location, err)
	}
	source.position, source.file = location, r.name
	return r.yieldDocument(source.document(r.options))
}

// list reads a list: of messages, which is one conversation, or of conversations, one at a time.
func (r *reader) list() bool {
	_, _ = r.split.peek()
	start := r.split.line
	r.split.take()
	location := r.lineLocation(start)
	whole := []byte("[") // a list of messages, reassembled
	for n := 0; ; n++ {
		raw, line, err := r.element()
		if err != nil {
			return r.reportListError(location, line, err)
		}
		if raw == nil {
			break
		}
		if n == 0 && !isMessage(raw) {
			return r.conversations(start, raw, line)
		}
		if n > 0 {
			whole = append(whole, ',')
		}
		if whole = append(whole, raw...); len(whole) > r.options.MaxBytes {
			return r.reportListError(location, line, invalid("the list has more than the limit of %d bytes: raise the limit or split it", r.options.MaxBytes))
		}
	}
	r.split.lines = r.split.lines || start == r.split.line && r.split.atLineEnd()
	return r.conversation(append(whole, ']'), location)
}

// conversations reads a list of conversations, the first of which is already read.
func (r *reader) conversations(start int, raw []byte, line int) bool {
	for n := 0; raw != nil; n++ {
		if !r.conversation(raw, fmt.Sprintf("%s, element %d (line %d)", r.name, n, line)) {
			return false
		}
		var err error
		if raw, line, err = r.element(); err != nil {
			return r.reportListError(fmt.Sprintf("%s, element %d", r.name, n+1), line, err)
		}
	}
	r.split.lines = r.split.lines || start == r.split.line && r.split.atLineEnd()
	return true
}

// element reads the next element of a list, nil at the list's end.
func (r *reader) element() ([]byte, int, error) {
	for {
		next, err := r.split.peek()
		if errors.Is(err, io.EOF) {
			err = cut("the list is truncated at the end of the file")
		}
		if err != nil {
			return nil, r.split.line, err
		}
		switch next {
		case ',':
			r.split.take()
		case ']':
			r.split.take()
			return nil, r.split.line, nil
		default:
			return r.split.value(false)
		}
	}
}

// reportListError reports a list that cannot be read further. In JSON lines, reading continues with the next line.
func (r *reader) reportListError(location string, line int, err error) bool {
	if !r.fail(location, err) || !r.split.lines || !isSkippable(err) {
		return false
	}
	return r.split.line > line || r.split.skipLine() == nil
}

// isMessage reports whether a list's first element is a message and not a conversation.
func isMessage(raw []byte) bool {
	if len(raw) > 0 && raw[0] == '[' {
		return false
	}
	var head map[string]json.RawMessage
	if json.Unmarshal(raw, &head) != nil {
		return true
	}
	for _, name := range listNames {
		if head[name] != nil && head["role"] == nil {
			return false
		}
	}
	return true
}

func parseObject(raw []byte) (rawjson.Object, error) {
	object, err := rawjson.ParseObject(raw)
	if errors.Is(err, rawjson.ErrNotObject) {
		return nil, invalid("a conversation must be a JSON object or list")
	}
	if err != nil {
		return nil, invalid("broken JSON: %v", err)
	}
	return object, nil
}
