package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
)

// ErrNotList says that the JSON value is not a list.
var ErrNotList = errors.New("not a JSON list")

// ParseList reads the elements of a JSON list, each untouched.
func ParseList(data []byte) ([]json.RawMessage, error) {
	if !json.Valid(data) {
		return nil, syntaxError(data)
	}
	s := splitter{data: data}
	if !s.open('[') {
		return nil, ErrNotList
	}
	var elements []json.RawMessage
	for s.next(']') {
		elements = append(elements, s.value())
	}
	return elements, nil
}

// syntaxError is the error of encoding/json for invalid JSON.
func syntaxError(data []byte) error {
	var value json.RawMessage
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	return errors.New("not valid JSON")
}

// splitter iterates over valid JSON. It finds where values end without decoding them.
type splitter struct {
	data []byte
	at   int
}

func (s *splitter) skipSpace() {
	for s.at < len(s.data) && isSpace(s.data[s.at]) {
		s.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// open reports whether a list or an object begins here, and advances past its bracket.
func (s *splitter) open(bracket byte) bool {
	s.skipSpace()
	if s.at >= len(s.data) || s.data[s.at] != bracket {
		return false
	}
	s.at++
	return true
}

// next advances to the next element, or past the closing bracket, and reports whether there is an element.
func (s *splitter) next(closing byte) bool {
	s.skipSpace()
	if s.data[s.at] == ',' {
		s.at++
		s.skipSpace()
	}
	if s.data[s.at] == closing {
		s.at++
		return false
	}
	return true
}

// value returns a copy of the value that begins here, and advances past it.
func (s *splitter) value() json.RawMessage { return bytes.Clone(s.part()) }

// part is value without the copy.
func (s *splitter) part() json.RawMessage {
	begin := s.at
	s.skipValue()
	return s.data[begin:s.at]
}

// key returns the key that begins here, and advances to its value.
func (s *splitter) key() string {
	quoted := s.part()
	s.skipSpace()
	s.at++ // the colon
	s.skipSpace()
	switch string(quoted) { // not copied: the keys of most messages
	case `"role"`:
		return "role"
	case `"content"`:
		return "content"
	case `"type"`:
		return "type"
	case `"text"`:
		return "text"
	case `"id"`:
		return "id"
	case `"name"`:
		return "name"
	case `"function"`:
		return "function"
	case `"arguments"`:
		return "arguments"
	case `"tool_calls"`:
		return "tool_calls"
	case `"tool_call_id"`:
		return "tool_call_id"
	}
	name, _ := String(quoted) // keys are strings
	return name
}

func (s *splitter) skipValue() {
	depth := 0
	for s.at < len(s.data) {
		switch c := s.data[s.at]; {
		case c == '"':
			s.skipString()
			if depth == 0 {
				return
			}
			continue
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']') && depth == 0, depth == 0 && (c == ',' || isSpace(c)):
			return // the end of a number or a literal
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				s.at++
				return
			}
		}
		s.at++
	}
}

// skipString advances past the string that begins here.
func (s *splitter) skipString() {
	s.at++
	quote := -1
	for {
		if quote < s.at {
			quote = s.at + bytes.IndexByte(s.data[s.at:], '"')
		}
		escape := bytes.IndexByte(s.data[s.at:quote], '\\')
		if escape < 0 {
			s.at = quote + 1
			return
		}
		s.at += escape + 2 // past the escaped character, which may be the quote
	}
}

// Span is a part of a text: text[Start:End].
type Span struct{ Start, End int }

// ElementSpans returns where the elements of a list are that is a member of a JSON object; nil where that member is no
// list. The text must be valid JSON.
func ElementSpans(data []byte, member string) (spans []Span) {
	s := splitter{data: data}
	if !s.open('{') {
		return nil
	}
	for s.next('}') {
		if name := s.key(); name != member || s.data[s.at] != '[' {
			s.skipValue()
			continue
		}
		s.at++
		spans = []Span{} // of the last member of that name
		for s.next(']') {
			start := s.at
			s.skipValue()
			spans = append(spans, Span{start, s.at})
		}
	}
	return spans
}
