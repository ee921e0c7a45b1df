package rawjson

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// escapeBytes is the length of an escape such as \ud83d.
const escapeBytes = len(`\ud83d`)

// Halves joins characters that a sender cut in two: one that counts in UTF-16, as JavaScript does, may end a string with
// the first half of a surrogate pair and begin one of a later JSON text with the second. Decoded by themselves, both
// would become the replacement character. The zero value is ready for use.
type Halves struct {
	first []byte // the escape that waits for its second half; nil for none
}

// Join returns a JSON text without the first half of a surrogate pair at the end of a string, which comes before the
// second half at the beginning of a string of a later text. It returns data itself where there is nothing to join, and
// does not change it.
func (h *Halves) Join(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	var joined []byte
	copied := 0
	for at := 0; at < len(data); at++ {
		if data[at] != '\\' {
			continue
		}
		unit, ok := escapedUnit(data[at:])
		switch {
		case !ok:
			at++ // the escaped character
		case !utf16.IsSurrogate(unit):
			at += escapeBytes - 1
		case isPair(unit, data[at+escapeBytes:]):
			at += 2*escapeBytes - 1
		default:
			end := at + escapeBytes
			switch {
			case isFirstHalf(unit) && end < len(data) && data[end] == '"':
				h.first = bytes.Clone(data[at:end])
				joined, copied = append(joined, data[copied:at]...), end
			case !isFirstHalf(unit) && h.first != nil && beginsString(data, at):
				joined, copied = append(append(joined, data[copied:at]...), h.first...), at
				h.first = nil
			}
			at = end - 1
		}
	}
	if copied == 0 {
		return data
	}
	return append(joined, data[copied:]...)
}

// isPair reports whether a first half and the escape at the beginning of data are a character.
func isPair(unit rune, data []byte) bool {
	low, ok := escapedUnit(data)
	return ok && utf16.DecodeRune(unit, low) != '\uFFFD'
}

func isFirstHalf(unit rune) bool { return unit < 0xdc00 }

// beginsString reports whether the quote that begins a string is right before a position.
func beginsString(data []byte, at int) bool {
	return at > 0 && data[at-1] == '"' && (at == 1 || data[at-2] != '\\')
}

// escapedUnit reads an escape such as \u00e9 at the beginning of data.
func escapedUnit(data []byte) (unit rune, ok bool) {
	if len(data) < escapeBytes || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	value, err := strconv.ParseUint(string(data[2:escapeBytes]), 16, 16)
	return rune(value), err == nil
}
