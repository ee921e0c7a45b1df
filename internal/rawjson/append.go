package rawjson

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends a text as Marshal writes it.
func AppendString(to []byte, text string) []byte {
	if !utf8.ValidString(text) {
		return append(to, MustMarshal(text)...)
	}
	to = append(to, '"')
	done := 0 // text before it is in to
	for i := 0; i < len(text); {
		if i += plainLength(text[i:]); i == len(text) {
			break
		}
		switch c := text[i]; {
		case c < utf8.RuneSelf:
			to = appendEscape(append(to, text[done:i]...), c)
			done = i + 1
		case c == 0xe2 && (text[i:i+3] == "\u2028" || text[i:i+3] == "\u2029"):
			to = append(append(to, text[done:i]...), `\u202`...)
			to = append(to, hexDigits[text[i+2]&0xf])
			i += 2
			done = i + 1
		}
		i++
	}
	return append(append(to, text[done:]...), '"')
}

// plainLength is how many bytes of valid UTF-8 at the beginning of a text are certainly written as they are. It compares
// eight bytes at a time.
func plainLength(text string) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	length := 0
	for ; len(text) >= 8; text = text[8:] {
		x := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
			uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
		quote, backslash, separator := x^('"'*ones), x^('\\'*ones), x^(0xe2*ones)
		// A byte of the mask is above 0x7f where a byte of x is below ' ', or one of the three is zero. Bytes after the
		// first one may be wrong.
		mask := (x - ' '*ones) & ^x
		mask |= (quote - ones) & ^quote
		mask |= (backslash - ones) & ^backslash
		mask |= (separator - ones) & ^separator
		if mask &= highs; mask != 0 {
			return length + bits.TrailingZeros64(mask)/8
		}
		length += 8
	}
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c == 0xe2 {
			return length + i
		}
	}
	return length + len(text)
}

// appendEscape appends a character of ASCII that a string cannot have as it is.
func appendEscape(to []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(to, '\\', c)
	case '\b':
		return append(to, '\\', 'b')
	case '\f':
		return append(to, '\\', 'f')
	case '\n':
		return append(to, '\\', 'n')
	case '\r':
		return append(to, '\\', 'r')
	case '\t':
		return append(to, '\\', 't')
	}
	return append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// AppendCompact appends a JSON value as Marshal writes a json.RawMessage: without white space between its tokens. It
// fails for a value that is not valid JSON.
func AppendCompact(to []byte, value json.RawMessage) ([]byte, error) {
	if !json.Valid(value) {
		return to, syntaxError(value)
	}
	for len(value) > 0 {
		length := bytes.IndexByte(value, '"')
		if length < 0 {
			length = len(value)
		}
		for _, c := range value[:length] {
			if !isSpace(c) {
				to = append(to, c)
			}
		}
		if value = value[length:]; len(value) > 0 {
			s := splitter{data: value}
			s.skipString()
			to, value = append(to, value[:s.at]...), value[s.at:]
		}
	}
	return to, nil
}

// Encoder appends the members of one JSON object, as Marshal writes them. The names of members are plain text.
type Encoder struct {
	To  []byte
	Err error // of Value and Any
}

// Open begins an object.
func (e *Encoder) Open() { e.To = append(e.To, '{') }

// Close ends an object.
func (e *Encoder) Close() { e.To = append(e.To, '}') }

// Name appends a member's name, whose value the caller appends.
func (e *Encoder) Name(name string) {
	if e.To[len(e.To)-1] != '{' {
		e.To = append(e.To, ',')
	}
	e.To = append(append(append(e.To, '"'), name...), '"', ':')
}

// String appends a member.
func (e *Encoder) String(name, value string) {
	e.Name(name)
	e.To = AppendString(e.To, value)
}

// Text appends a member, unless it is empty.
func (e *Encoder) Text(name, value string) {
	if value != "" {
		e.String(name, value)
	}
}

// Int appends a member.
func (e *Encoder) Int(name string, value int64) {
	e.Name(name)
	e.To = strconv.AppendInt(e.To, value, 10)
}

// Number appends a member, unless it is 0.
func (e *Encoder) Number(name string, value int64) {
	if value != 0 {
		e.Int(name, value)
	}
}

// Bool appends a member, unless it is false.
func (e *Encoder) Bool(name string, value bool) {
	if value {
		e.Name(name)
		e.To = append(e.To, "true"...)
	}
}

// Value appends a value that Marshal writes.
func (e *Encoder) Value(value any) {
	data, err := Marshal(value)
	if err != nil {
		e.Err = err
	}
	e.To = append(e.To, data...)
}

// Any appends a member that Marshal writes.
func (e *Encoder) Any(name string, value any) {
	e.Name(name)
	e.Value(value)
}
