package fulltext

import (
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// TextsOf returns the searchable texts of an entry: a tool's outcome, the content, the names and arguments of
// the calls, and the error of an incomplete answer. Hidden entries and reasoning are not searched.
//
// JSON escapes are decoded in arguments and in content that is a JSON document, so that a string with \n or
// \u00e9 is split into the right words.
func TextsOf(entry *continuo.Entry) []string {
	if entry.Hidden {
		return nil
	}
	var texts []string
	add := func(text string) {
		if text != "" {
			texts = append(texts, text)
		}
	}
	add(entry.Outcome)
	add(readableContent(entry.Content.String()))
	for _, call := range entry.ToolCalls {
		add(call.Name)
		add(readable(call.Arguments))
	}
	if entry.Error != nil {
		add(entry.Error.Message)
	}
	return texts
}

// readableContent decodes the escapes of a JSON document, and leaves other text unchanged: a Windows path has
// none.
func readableContent(text string) string {
	if first := strings.TrimLeft(text, " \t\r\n"); first == "" || first[0] != '{' && first[0] != '[' && first[0] != '"' {
		return text
	}
	if strings.IndexByte(text, '\\') < 0 || !json.Valid([]byte(text)) {
		return text
	}
	return readable(text)
}

// readable decodes JSON escapes, and leaves all other text unchanged.
func readable(text string) string {
	at := strings.IndexByte(text, '\\')
	if at < 0 {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	for ; at >= 0; at = strings.IndexByte(text, '\\') {
		out.WriteString(text[:at])
		r, size := unescape(text[at:])
		out.WriteRune(r)
		text = text[at+size:]
	}
	out.WriteString(text)
	return out.String()
}

// unescape decodes the escape at the beginning of a text and returns its length; an invalid one is a
// backslash.
func unescape(text string) (rune, int) {
	if len(text) < 2 {
		return '\\', 1
	}
	switch text[1] {
	case 'n', 'r':
		return '\n', 2
	case 't', 'b', 'f':
		return '\t', 2
	case '"', '\\', '/':
		return rune(text[1]), 2
	case 'u':
		r, ok := unit(text)
		if !ok {
			return '\\', 1
		}
		if low, ok := unit(text[6:]); ok && utf16.IsSurrogate(r) {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return r, 6
	}
	return '\\', 1
}

// unit decodes one \uXXXX.
func unit(text string) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, b := range []byte(text[2:6]) {
		switch {
		case '0' <= b && b <= '9':
			r = r<<4 | rune(b-'0')
		case 'a' <= b|0x20 && b|0x20 <= 'f':
			r = r<<4 | rune(b|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
