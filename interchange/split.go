package interchange

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxDepth bounds how deeply a source's JSON may be nested, well below the limit of encoding/json: values are
// stored some levels deeper.
const maxDepth = 1000

// splitter cuts a stream into JSON values without reading more than one into memory. It examines only
// brackets and strings; the caller checks whether a value is valid.
type splitter struct {
	in    *bufio.Reader
	limit int
	line  int // of the next byte, from 1
	// lines says that a complete value was on one line: each line is then a separate value, and an invalid
	// one ends with its line.
	lines bool
}

func newSplitter(in io.Reader, limit int) *splitter {
	return &splitter{in: bufio.NewReaderSize(in, 64<<10), limit: limit, line: 1}
}

// cutError means that a value is invalid but reading can continue.
type cutError struct{ error }

func (c cutError) Unwrap() error { return c.error }

func cut(format string, args ...any) error { return cutError{invalid(format, args...)} }

func isSkippable(err error) bool {
	var broken cutError
	return errors.As(err, &broken)
}

// peek skips white space and returns the next byte without consuming it.
func (s *splitter) peek() (byte, error) {
	for {
		b, err := s.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch b {
		case '\n':
			s.line++
		case ' ', '\t', '\r', '\x1e': // the last one begins records of RFC 7464
		default:
			return b, s.in.UnreadByte()
		}
	}
}

// take consumes the byte that peek returned.
func (s *splitter) take() { _, _ = s.in.ReadByte() }

// value reads the next value; top says that it is not an element of a list.
func (s *splitter) value(top bool) (raw []byte, line int, err error) {
	first, err := s.peek()
	if err != nil {
		return nil, s.line, err
	}
	scan := valueScan{splitter: s, top: top}
	line = s.line
	if first != '{' && first != '[' && first != '"' {
		err = scan.word()
		return scan.raw, line, err
	}
	err = scan.bracketed()
	if err == nil && top && line == s.line && s.atLineEnd() {
		s.lines = true
	}
	return scan.raw, line, err
}

func (s *splitter) atLineEnd() bool {
	next, err := s.in.Peek(1)
	return err != nil || next[0] == '\n' || next[0] == '\r'
}

// valueScan is the state of reading one value.
type valueScan struct {
	*splitter
	top               bool
	raw               []byte
	size, depth, most int
	last              byte // the last byte that is no white space
}

func (v *valueScan) add(b byte) {
	if v.size++; v.size <= v.limit {
		v.raw = append(v.raw, b)
	}
}

// word reads a value other than an object, a list or a string, to its end.
func (v *valueScan) word() error {
	for {
		b, err := v.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch b {
		case '\n', ' ', '\t', '\r', ',', ']', '}':
			if v.size > 0 {
				return v.in.UnreadByte()
			}
		}
		v.add(b)
	}
}

// bracketed reads an object, a list or a string.
func (v *valueScan) bracketed() error {
	for {
		b, err := v.in.ReadByte()
		if err != nil {
			return v.ended(err)
		}
		v.add(b)
		switch b {
		case '{', '[':
			v.depth++
			v.most = max(v.most, v.depth)
		case '}', ']':
			v.depth--
		case '"':
			if err := v.text(); err != nil {
				return err
			}
		case '\n':
			v.line++
			if v.cutHere() {
				return cut("the JSON is truncated at the end of line %d", v.line-1)
			}
			continue
		case ' ', '\t', '\r':
			continue
		}
		if v.depth <= 0 {
			return v.checkSize()
		}
		v.last = b
	}
}

// text reads the rest of a string.
func (v *valueScan) text() error {
	escaped := false
	for {
		b, err := v.in.ReadByte()
		if err != nil {
			return v.ended(err)
		}
		v.add(b)
		switch {
		case b == '\n':
			v.line++
			return cut("the JSON is truncated inside a string at the end of line %d", v.line-1)
		case escaped:
			escaped = false
		case b == '\\':
			escaped = true
		case b == '"':
			return nil
		}
	}
}

// cutHere reports whether a value that is incomplete at a line's end is a truncated line of JSON lines: in
// JSON, an object follows only a comma, a colon or the beginning of a list.
func (v *valueScan) cutHere() bool {
	if !v.top {
		return false
	}
	if v.lines {
		return true
	}
	next, err := v.in.Peek(1)
	return err == nil && next[0] == '{' && v.last != ',' && v.last != ':' && v.last != '['
}

func (v *valueScan) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return cut("the JSON is truncated at the end of the file")
	}
	return err
}

func (v *valueScan) checkSize() error {
	if v.size > v.limit {
		return cut("it has %d bytes, more than the limit of %d: raise the limit or split it", v.size, v.limit)
	}
	if v.most > maxDepth {
		return cut("its JSON is nested %d levels deep, more than %d", v.most, maxDepth)
	}
	return nil
}

// skipLine skips to the next line.
func (s *splitter) skipLine() error {
	for {
		b, err := s.in.ReadByte()
		if err != nil {
			return err
		}
		if b == '\n' {
			s.line++
			return nil
		}
	}
}

// checkJSON refuses text that is not one JSON value within the bounds.
func checkJSON(raw []byte, limit int) error {
	s := newSplitter(bytes.NewReader(raw), limit)
	_, _, err := s.value(false)
	if err == nil && !json.Valid(raw) {
		err = invalid("broken JSON")
	}
	return err
}
