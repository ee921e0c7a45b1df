package render

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// replacementEscape is U+FFFD as a JSON escape.
const replacementEscape = `\ufffd`

// repairSurrogates replaces each escaped lone surrogate in data, such as \ud83d, by the replacement character: APIs
// refuse a request with one. Text that went through Go strings has none, but parts, arguments and vendor data
// are sent unchanged. data must be valid JSON.
func repairSurrogates(data []byte) {
	for at := loneSurrogate(data, 0); at >= 0; at = loneSurrogate(data, at) {
		copy(data[at:], replacementEscape)
	}
}

// loneSurrogate returns the offset of the first lone surrogate escape at or after from, -1 when there is
// none. from must not be inside an escape.
func loneSurrogate(data []byte, from int) int {
	if !bytes.Contains(data[from:], []byte(`\u`)) || !bytes.Contains(data[from:], []byte(`\ud`)) && !bytes.Contains(data[from:], []byte(`\uD`)) {
		return -1
	}
	for i := from; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		unit, ok := unicodeEscape(data[i:])
		switch {
		case !ok:
			i++ // the escaped character
		case !utf16.IsSurrogate(unit):
			i += 5
		default:
			low, ok := unicodeEscape(data[i+6:])
			if !ok || utf16.DecodeRune(unit, low) == '\uFFFD' {
				return i
			}
			i += 11
		}
	}
	return -1
}

// unicodeEscape reads an escape like \u00e9 at the beginning of data.
func unicodeEscape(data []byte) (unit rune, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	value, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(value), err == nil
}
