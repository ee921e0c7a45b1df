package rawjson

import (
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Scanner reads one JSON text from its beginning to its end, for a decoder that knows which form to expect. Every
// method reports false where the text continues in any other way than expected: also in a valid one that is unusual,
// such as white space between values. The decoder then gives up, and the text is read by encoding/json. A text that is
// read to its end (End) is valid JSON if each value of Raw is.
//
// Strings that are returned may share the memory of the text.
type Scanner struct {
	text   string
	at     int
	copies bool // short strings are copied
}

// NewScanner returns a scanner at the beginning of a text. It reports false for a text that is not UTF-8.
//
// Strings that are less than half of a text of more than 16 KiB are copied, so that they do not keep it in memory.
func NewScanner(text string) (Scanner, bool) {
	return Scanner{text: text, copies: len(text) > 16<<10}, utf8.ValidString(text)
}

// End reports whether the whole text was read.
func (s *Scanner) End() bool { return s.at == len(s.text) }

// Rest returns what was not read.
func (s *Scanner) Rest() string { return s.text[min(s.at, len(s.text)):] }

// Peek returns the next byte, 0 at the end.
func (s *Scanner) Peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// Skip reads a literal.
func (s *Scanner) Skip(literal string) bool {
	if !strings.HasPrefix(s.text[s.at:], literal) {
		return false
	}
	s.at += len(literal)
	return true
}

// Object reads an object. Member is called at the value of each member, which it reads; the names have no escapes.
func (s *Scanner) Object(member func(name string) bool) bool {
	if !s.Skip("{") {
		return false
	}
	if s.Skip("}") {
		return true
	}
	for {
		name, ok := s.plain()
		if !ok || !s.Skip(":") || !member(name) {
			return false
		}
		if !s.Skip(",") {
			return s.Skip("}")
		}
	}
}

// List reads a list. Element is called at each element, which it reads.
func (s *Scanner) List(element func() bool) bool {
	if !s.Skip("[") {
		return false
	}
	if s.Skip("]") {
		return true
	}
	for {
		if !element() {
			return false
		}
		if !s.Skip(",") {
			return s.Skip("]")
		}
	}
}

// Int reads an integer of at most 18 digits.
func (s *Scanner) Int() (int64, bool) {
	start := s.at
	s.Skip("-")
	first := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	digits := s.at - first
	if digits == 0 || digits > 18 || digits > 1 && s.text[first] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(s.text[start:s.at], 10, 64)
	return n, err == nil
}

// Bool reads true or false.
func (s *Scanner) Bool() (value, ok bool) {
	if s.Skip("true") {
		return true, true
	}
	return false, s.Skip("false")
}

// String reads a string.
func (s *Scanner) String() (string, bool) {
	if !s.Skip(`"`) {
		return "", false
	}
	start := s.at
	switch s.toSpecial(); s.Peek() {
	case '"':
		text := s.text[start:s.at]
		s.at++
		return s.owned(text), true
	case '\\':
		return s.unescaped(start)
	}
	return "", false // a control character, or the end
}

// Plain reads a string that has no escapes, as it is in the text.
func (s *Scanner) Plain() (string, bool) {
	text, ok := s.plain()
	return s.owned(text), ok
}

// plain is Plain for a string that is not kept.
func (s *Scanner) plain() (string, bool) {
	if !s.Skip(`"`) {
		return "", false
	}
	start := s.at
	s.toSpecial()
	text := s.text[start:s.at]
	return text, s.Skip(`"`)
}

// owned returns a string that keeps not much more than itself in memory.
func (s *Scanner) owned(text string) string {
	if s.copies && len(text) < len(s.text)/2 {
		return strings.Clone(text)
	}
	return text
}

// toSpecial moves to the next byte that is not part of a string or not only itself: a quote, a backslash, a control
// character.
func (s *Scanner) toSpecial() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; s.at+8 <= len(s.text); s.at += 8 {
		t := s.text[s.at : s.at+8]
		x := uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
		// The lowest byte of which the top bit is set here is one of those: a borrow reaches higher bytes only.
		quote, backslash := x^(ones*'"'), x^(ones*'\\')
		special := ((x-ones*' ')&^x | (quote-ones)&^quote | (backslash-ones)&^backslash) & tops
		if special != 0 {
			s.at += bits.TrailingZeros64(special) / 8
			return
		}
	}
	for s.at < len(s.text) && s.text[s.at] >= ' ' && s.text[s.at] != '"' && s.text[s.at] != '\\' {
		s.at++
	}
}

// simpleEscapes are the characters that escapes of one letter stand for.
var simpleEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}

// unescaped reads the rest of a string that began at start, from its first escape.
func (s *Scanner) unescaped(start int) (string, bool) {
	var text strings.Builder
	text.Grow(s.toQuote() - start)
	for {
		text.WriteString(s.text[start:s.at])
		if s.Skip(`"`) {
			return text.String(), true
		}
		if s.at+1 >= len(s.text) || s.text[s.at] != '\\' {
			return "", false
		}
		escape := s.text[s.at+1]
		s.at += 2
		if simple := simpleEscapes[escape]; simple != 0 {
			text.WriteByte(simple)
		} else if escape == 'u' {
			r, ok := s.unicode()
			if !ok {
				return "", false
			}
			text.WriteRune(r)
		} else {
			return "", false
		}
		start = s.at
		s.toSpecial()
	}
}

// toQuote returns about where the string ends: not before its text without escapes would.
func (s *Scanner) toQuote() int {
	end := s.at
	for {
		quote := strings.IndexByte(s.text[end:], '"')
		if quote < 0 {
			return len(s.text)
		}
		end += quote + 1
		if s.text[end-2] != '\\' {
			return end
		}
	}
}

// unicode reads the four digits of an escape, or the eight of a surrogate pair.
func (s *Scanner) unicode() (rune, bool) {
	r, ok := s.hex()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if !s.Skip(`\u`) {
		return 0, false
	}
	low, ok := s.hex()
	r = utf16.DecodeRune(r, low)
	return r, ok && r != utf8.RuneError
}

func (s *Scanner) hex() (rune, bool) {
	if s.at+4 > len(s.text) {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s.text[s.at : s.at+4]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	s.at += 4
	return r, true
}

// maxRawDepth bounds the nesting of a value of Raw, far below the limit of encoding/json.
const maxRawDepth = 1000

// Raw reads a value other than null without looking at what it is: it may not be valid JSON.
func (s *Scanner) Raw() (string, bool) {
	start, depth := s.at, 0
	for {
		switch c := s.Peek(); {
		case c == '"':
			if !s.skipString() {
				return "", false
			}
		case c == '{' || c == '[':
			depth++
			s.at++
		case (c == '}' || c == ']') && depth > 0:
			depth--
			s.at++
		case depth > 0 && c != 0:
			s.at++
			continue
		case c == 't' || c == 'f' || c == '-' || c >= '0' && c <= '9':
			s.skipScalar()
		default:
			return "", false
		}
		if depth == 0 {
			return s.text[start:s.at], true
		}
		if depth > maxRawDepth {
			return "", false
		}
	}
}

func (s *Scanner) skipScalar() {
	for s.at < len(s.text) && !strings.ContainsRune(",}] \t\r\n", rune(s.text[s.at])) {
		s.at++
	}
}

func (s *Scanner) skipString() bool {
	s.at++
	for {
		s.toSpecial()
		switch s.Peek() {
		case '"':
			s.at++
			return true
		case '\\':
			s.at += 2
		default:
			return false
		}
	}
}
