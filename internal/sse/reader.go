package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// DefaultMaxBytes bounds one line, and the data of one event: 32 MiB, as in the official Go client of
// the OpenAI API.
const DefaultMaxBytes = 32 << 20

// ErrTooLong says that a line or an event's data is longer than the reader's limit.
var ErrTooLong = errors.New("the event is too long")

// Reader reads events from a stream. It is not safe for concurrent use.
type Reader struct {
	in       *bufio.Reader
	maxBytes int
	started  bool // past the position of a possible BOM
	skipLF   bool // the last line ended with CR: an LF that follows belongs to it
	keepsRaw bool
	raw      []byte // the bytes read since the last TakeRaw; only if keepsRaw
	line     []byte

	data    []byte
	hasData bool
	kind    string
	id      string
	retry   time.Duration
}

// bufferBytes is small, since each open stream has a buffer; most events have some hundred bytes.
const bufferBytes = 4 << 10

// NewReader reads from source; maxBytes bounds a line and an event's data, 0 for DefaultMaxBytes.
func NewReader(source io.Reader, maxBytes int) *Reader {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	return &Reader{in: bufio.NewReaderSize(source, bufferBytes), maxBytes: maxBytes}
}

// Next returns the next event that has data, as soon as its last byte has arrived. At the end of the stream it returns
// io.EOF; an error of the source is returned unchanged, and the part of an event read before it is dropped.
func (r *Reader) Next() (Event, error) {
	r.data, r.hasData, r.kind = r.data[:0], false, ""
	for {
		ended, err := r.readLine()
		if err != nil && err != io.EOF {
			return Event{}, err
		}
		if ended && len(r.line) == 0 {
			if r.hasData {
				return r.event(false), nil
			}
			r.kind = ""
			continue
		}
		if err := r.field(r.line); err != nil {
			return Event{}, err
		}
		if err == io.EOF {
			if r.hasData {
				return r.event(true), nil
			}
			return Event{}, io.EOF
		}
	}
}

// Ready reports whether all of the next event, or of comments before it, has arrived.
func (r *Reader) Ready() bool {
	chunk, _ := r.in.Peek(r.in.Buffered())
	for _, end := range []string{"\n\n", "\n\r\n", "\r\r"} {
		if bytes.Contains(chunk, []byte(end)) {
			return true
		}
	}
	return false
}

func (r *Reader) event(cut bool) Event {
	return Event{ID: r.id, Type: r.kind, Data: r.data, Retry: r.retry, Cut: cut}
}

// readLine reads the next line, without its end, into r.line. It returns false if the stream ended before the line did;
// the error is then io.EOF.
func (r *Reader) readLine() (ended bool, err error) {
	r.line = r.line[:0]
	for {
		if _, err := r.in.Peek(1); err != nil {
			return false, err
		}
		chunk, _ := r.in.Peek(r.in.Buffered())
		if r.skipLF {
			r.skipLF = false
			if chunk[0] == '\n' {
				r.discard(chunk[:1])
				continue
			}
		}
		at := lineEnd(chunk)
		taken := chunk
		if at >= 0 {
			taken = chunk[:at]
		}
		if len(r.line)+len(taken) > r.maxBytes {
			return false, fmt.Errorf("%w: a line has more than %d bytes", ErrTooLong, r.maxBytes)
		}
		r.line = append(r.line, taken...)
		if at < 0 {
			r.discard(chunk)
			continue
		}
		r.skipLF = chunk[at] == '\r'
		r.discard(chunk[:at+1])
		if !r.started {
			r.started = true
			r.line = bytes.TrimPrefix(r.line, []byte("\uFEFF"))
		}
		return true, nil
	}
}

// KeepRaw makes the reader keep the bytes that it reads, for TakeRaw.
func (r *Reader) KeepRaw() { r.keepsRaw = true }

// TakeRaw returns the bytes of the stream up to the end of the newest event that were not returned before: of one or
// more events, their comments and blank lines included. They are valid until the next call of Next.
func (r *Reader) TakeRaw() []byte {
	raw := r.raw
	r.raw = r.raw[:0]
	return raw
}

// discard removes bytes from the input that have been read.
func (r *Reader) discard(read []byte) {
	if r.keepsRaw {
		r.raw = append(r.raw, read...)
	}
	_, _ = r.in.Discard(len(read))
}

// lineEnd finds the first CR or LF, -1 when there is none.
func lineEnd(chunk []byte) int {
	at := bytes.IndexByte(chunk, '\n')
	if at >= 0 {
		chunk = chunk[:at]
	}
	if cr := bytes.IndexByte(chunk, '\r'); cr >= 0 {
		return cr
	}
	return at
}

// field processes one line that is not blank. A comment has an empty name and is ignored like any unknown field.
func (r *Reader) field(line []byte) error {
	if !r.started {
		r.started = true
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if r.hasData {
			r.data = append(r.data, '\n')
		}
		r.hasData = true
		if len(r.data)+len(value) > r.maxBytes {
			return fmt.Errorf("%w: its data has more than %d bytes", ErrTooLong, r.maxBytes)
		}
		r.data = append(r.data, value...)
	case "event":
		r.kind = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return nil
}
