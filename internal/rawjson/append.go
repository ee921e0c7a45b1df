package rawjson

import (
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// isPlain has the characters of ASCII that a string has as they are.
var isPlain = func() (plain [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

// AppendString appends a text as Marshal writes it.
func AppendString(to []byte, text string) []byte {
	to = append(to, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if isPlain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			isInvalid := r == utf8.RuneError && size == 1
			if !isInvalid && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
			to = append(to, text[start:i]...)
			if isInvalid {
				to = append(to, `\ufffd`...)
			} else {
				to = append(to, `\u202`...)
				to = append(to, hexDigits[r&0xf])
			}
			i += size
			start = i
			continue
		}
		to = appendEscape(append(to, text[start:i]...), c)
		i++
		start = i
	}
	return append(append(to, text[start:]...), '"')
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
