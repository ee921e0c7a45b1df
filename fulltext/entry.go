package fulltext

import (
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// TextsOf are the texts of an entry that a search looks at: what a tool did, the content, the names and arguments
// of the calls, and why the answer broke off. What is hidden from models is not searched, nor is their reasoning.
//
// The escapes of JSON are read, in arguments and in content that is a JSON document, so that the words of a string
// with \n or \u00e9 in it are words.
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

// readableContent reads the escapes of a JSON document, and of nothing else: a path of Windows has none.
func readableContent(text string) string {
	if first := strings.TrimLeft(text, " \t\r\n"); first == "" || first[0] != '{' && first[0] != '[' && first[0] != '"' {
		return text
	}
	if strings.IndexByte(text, '\\') < 0 || !json.Valid([]byte(text)) {
		return text
	}
	return readable(text)
}

// readable replaces the escapes of JSON by what they stand for, and leaves all else as it is.
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

// unescape reads the escape at the begin of a text and returns its length; what is none, is a backslash.
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

// unit reads one \uXXXX.
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
