package fulltext

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// kind is the role of a character in a word.
type kind uint8

const (
	parting kind = iota // ends a word
	letter              // of a word: letters, digits, and numbers such as ² that represent digits
	wide                // a separate token
	mark                // belongs to its base character; ignored without one
	joiner              // invisible within a word, such as the soft hyphen
)

// asciiFolds has the folded form of each ASCII letter and digit, 0 for all others.
var asciiFolds = func() (folds [utf8.RuneSelf]byte) {
	for b := range folds {
		switch {
		case '0' <= b && b <= '9', 'a' <= b && b <= 'z':
			folds[b] = byte(b)
		case 'A' <= b && b <= 'Z':
			folds[b] = byte(b) + 'a' - 'A'
		}
	}
	return folds
}()

// spaceless lists the scripts that are written without spaces between words. Tibetan is not one: it separates
// its syllables.
var spaceless = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Thai, unicode.Lao, unicode.Khmer,
	unicode.Myanmar, unicode.Tai_Le, unicode.New_Tai_Lue, unicode.Tai_Tham, unicode.Tai_Viet, unicode.Javanese,
	unicode.Balinese, unicode.Yi, unicode.Tangut, unicode.Nushu,
}

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if asciiFolds[r] != 0 {
			return letter
		}
		return parting
	case 0x4E00 <= r && r <= 0x9FFF:
		return wide
	case 0xAC00 <= r && r <= 0xD7A3, 'А' <= r && r <= 'я': // Hangul, Russian
		return letter
	case isJoiner(r):
		return joiner
	case r == '\uFF9E' || r == '\uFF9F': // voicing of half-width kana
		return mark
	case unicode.IsLetter(r) || unicode.Is(unicode.Nl, r):
		if isWide(r) {
			return wide
		}
		return letter
	case unicode.IsDigit(r):
		return letter
	case unicode.IsMark(r):
		return mark
	case unicode.Is(unicode.No, r) && isDigitLike(r):
		return letter
	}
	return parting
}

// isJoiner reports whether a character is invisible within a word. The zero-width space is not: it separates
// words.
func isJoiner(r rune) bool {
	switch r {
	case '\u00AD', '\u180E', '\u200C', '\u200D', '\u2060', '\uFEFF':
		return true
	}
	return false
}

func isWide(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case 0x3005 <= r && r <= 0x303C, r == 'ー', r == 'ｰ': // common to several scripts
		return true
	}
	return unicode.In(r, spaceless...)
}

// isDigitLike reports whether a number is another form of digits, such as ², and not of a fraction.
func isDigitLike(r rune) bool {
	forms := norm.NFKD.PropertiesString(string(r)).Decomposition()
	for _, b := range forms {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(forms) > 0
}

// isHangul reports whether a character is a Korean syllable or a part of one.
func isHangul(r rune) bool { return 0xAC00 <= r && r <= 0xD7A3 || 0x1100 <= r && r <= 0x11FF }
